/* Steps of one instruction or two a value, eight values a turn: x + y, the gate of relu, rotations. Floats move between
 * memory and registers four at a time, so loads and stores cost a quarter of a cycle a value. */

	.section .iram1,"ax"

	.align	4
	.global	chiplm_pie_add
	.type	chiplm_pie_add, @function
chiplm_pie_add:
	entry	a1, 32
	// a2 x, a3 y, a4 n
	mov	a5, a2
	srli	a4, a4, 3
	loopnez	a4, .Ladd
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	ee.ldf.128.ip	f11, f10, f9, f8, a3, 16
	ee.ldf.128.ip	f7, f6, f5, f4, a2, 16
	ee.ldf.128.ip	f15, f14, f13, f12, a3, 16
	add.s	f0, f0, f8
	add.s	f1, f1, f9
	add.s	f2, f2, f10
	add.s	f3, f3, f11
	add.s	f4, f4, f12
	add.s	f5, f5, f13
	add.s	f6, f6, f14
	add.s	f7, f7, f15
	ee.stf.128.ip	f3, f2, f1, f0, a5, 16
	ee.stf.128.ip	f7, f6, f5, f4, a5, 16
.Ladd:
	retw.n

/* y_i = (y_i + x_i * a) * b. */

	.align	4
	.global	chiplm_pie_blend
	.type	chiplm_pie_blend, @function
chiplm_pie_blend:
	entry	a1, 32
	// a2 y, a3 x, a4 a, a5 b, a6 n
	wfr	f14, a4
	wfr	f15, a5
	mov	a7, a2
	srli	a6, a6, 2
	loopnez	a6, .Lblend
	ee.ldf.128.ip	f3, f2, f1, f0, a3, 16
	ee.ldf.128.ip	f7, f6, f5, f4, a2, 16
	mul.s	f0, f0, f14
	mul.s	f1, f1, f14
	mul.s	f2, f2, f14
	mul.s	f3, f3, f14
	add.s	f0, f4, f0
	add.s	f1, f5, f1
	add.s	f2, f6, f2
	add.s	f3, f7, f3
	mul.s	f0, f0, f15
	mul.s	f1, f1, f15
	mul.s	f2, f2, f15
	mul.s	f3, f3, f15
	ee.stf.128.ip	f3, f2, f1, f0, a7, 16
.Lblend:
	retw.n

/* gate_i > 0 ? gate_i * up_i : 0; a gate that is no number is not above 0. */

	.align	4
	.global	chiplm_pie_gate
	.type	chiplm_pie_gate, @function
chiplm_pie_gate:
	entry	a1, 32
	// a2 gate, a3 up, a4 n
	const.s	f15, 0
	mov	a5, a2
	srli	a4, a4, 3
	loopnez	a4, .Lgate
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	ee.ldf.128.ip	f11, f10, f9, f8, a3, 16
	ee.ldf.128.ip	f7, f6, f5, f4, a2, 16
	mul.s	f8, f0, f8
	mul.s	f9, f1, f9
	mul.s	f10, f2, f10
	mul.s	f11, f3, f11
	olt.s	b0, f15, f0
	olt.s	b1, f15, f1
	olt.s	b2, f15, f2
	olt.s	b3, f15, f3
	ee.ldf.128.ip	f3, f2, f1, f0, a3, 16
	movf.s	f8, f15, b0
	movf.s	f9, f15, b1
	movf.s	f10, f15, b2
	movf.s	f11, f15, b3
	mul.s	f0, f4, f0
	mul.s	f1, f5, f1
	mul.s	f2, f6, f2
	mul.s	f3, f7, f3
	olt.s	b4, f15, f4
	olt.s	b5, f15, f5
	olt.s	b6, f15, f6
	olt.s	b7, f15, f7
	ee.stf.128.ip	f11, f10, f9, f8, a5, 16
	movf.s	f0, f15, b4
	movf.s	f1, f15, b5
	movf.s	f2, f15, b6
	movf.s	f3, f15, b7
	ee.stf.128.ip	f3, f2, f1, f0, a5, 16
.Lgate:
	retw.n

/* The pairs (a, b) turned: a * cos - b * sin, a * sin + b * cos. Two pairs a turn, whose products fill 16 registers. */

	.align	4
	.global	chiplm_pie_rotate
	.type	chiplm_pie_rotate, @function
chiplm_pie_rotate:
	entry	a1, 32
	// a2 x, a3 half of its values, a4 cosines, a5 sines
	slli	a6, a3, 2
	add	a6, a2, a6
	srli	a3, a3, 1
	loopnez	a3, .Lrotate
	ee.ldf.64.ip	f5, f4, a4, 8
	ee.ldf.64.ip	f1, f0, a2, 0
	ee.ldf.64.ip	f3, f2, a6, 0
	ee.ldf.64.ip	f7, f6, a5, 8
	mul.s	f8, f0, f4
	mul.s	f9, f1, f5
	mul.s	f10, f2, f6
	mul.s	f11, f3, f7
	mul.s	f12, f0, f6
	mul.s	f13, f1, f7
	mul.s	f14, f2, f4
	mul.s	f15, f3, f5
	sub.s	f8, f8, f10
	sub.s	f9, f9, f11
	add.s	f12, f12, f14
	add.s	f13, f13, f15
	ee.stf.64.ip	f9, f8, a2, 8
	ee.stf.64.ip	f13, f12, a6, 8
.Lrotate:
	retw.n
