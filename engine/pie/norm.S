/* The two passes of a norm: the sum of squares in eight partial sums, and (x * r) * gain. What lies between, a square root
 * and two divisions, is left to C. */

	.section .iram1,"ax"

	.align	4
	.global	chiplm_pie_squares
	.type	chiplm_pie_squares, @function
chiplm_pie_squares:
	entry	a1, 32
	// a2 x, a3 n. Partial sums in f0 to f7: 2 loads, 8 products, 8 sums a turn of eight values
	const.s	f0, 0
	const.s	f1, 0
	const.s	f2, 0
	const.s	f3, 0
	const.s	f4, 0
	const.s	f5, 0
	const.s	f6, 0
	const.s	f7, 0
	srli	a3, a3, 3
	loopnez	a3, .Lsquares
	ee.ldf.128.ip	f11, f10, f9, f8, a2, 16
	ee.ldf.128.ip	f15, f14, f13, f12, a2, 16
	mul.s	f8, f8, f8
	mul.s	f9, f9, f9
	mul.s	f10, f10, f10
	mul.s	f11, f11, f11
	mul.s	f12, f12, f12
	mul.s	f13, f13, f13
	mul.s	f14, f14, f14
	mul.s	f15, f15, f15
	add.s	f0, f0, f8
	add.s	f1, f1, f9
	add.s	f2, f2, f10
	add.s	f3, f3, f11
	add.s	f4, f4, f12
	add.s	f5, f5, f13
	add.s	f6, f6, f14
	add.s	f7, f7, f15
.Lsquares:					// ((p0+p4) + (p2+p6)) + ((p1+p5) + (p3+p7))
	add.s	f0, f0, f4
	add.s	f2, f2, f6
	add.s	f1, f1, f5
	add.s	f3, f3, f7
	add.s	f0, f0, f2
	add.s	f1, f1, f3
	add.s	f0, f0, f1
	rfr	a2, f0
	retw.n

	.align	4
	.global	chiplm_pie_gain
	.type	chiplm_pie_gain, @function
chiplm_pie_gain:
	entry	a1, 32
	// a2 x, a3 r, a4 gain, a5 n, a6 y. A turn of eight: 6 loads and stores, 16 products, 1 stall after the second gains
	// and 2 before the last store
	wfr	f15, a3
	srli	a5, a5, 3
	loopnez	a5, .Lgain
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	ee.ldf.128.ip	f7, f6, f5, f4, a2, 16
	ee.ldf.128.ip	f11, f10, f9, f8, a4, 16
	mul.s	f0, f0, f15
	mul.s	f1, f1, f15
	mul.s	f2, f2, f15
	mul.s	f3, f3, f15
	mul.s	f4, f4, f15
	mul.s	f5, f5, f15
	mul.s	f6, f6, f15
	mul.s	f7, f7, f15
	mul.s	f0, f0, f8
	mul.s	f1, f1, f9
	mul.s	f2, f2, f10
	mul.s	f3, f3, f11
	ee.ldf.128.ip	f11, f10, f9, f8, a4, 16
	mul.s	f4, f4, f8
	mul.s	f5, f5, f9
	mul.s	f6, f6, f10
	mul.s	f7, f7, f11
	ee.stf.128.ip	f3, f2, f1, f0, a6, 16
	ee.stf.128.ip	f7, f6, f5, f4, a6, 16
.Lgain:
	retw.n
