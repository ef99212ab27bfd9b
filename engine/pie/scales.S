// Scales: from halves to floats, on the sums of transposed products, and of inputs. pie.h says what each function takes.

	.section .iram1, "ax"

// A half's exponent and fraction, moved to their places in a float, make one whose exponent is 112 too small. Below 2^-14 a
// half has no such exponent: it is its bits times 2^-24, of which float.s takes 15 and a multiplication the other 9.
//
// a2 halves, a3 floats, a4 n, a5 the least half with an exponent, a6 112 in a float's exponent.

	.global	chiplm_pie_widen
	.align	4
chiplm_pie_widen:
	entry	a1, 32
	movi	a5, 0x400
	movi	a6, 0x380
	slli	a6, a6, 20
	movi	a8, 1
	float.s	f1, a8, 9
	loopnez	a4, .Lwidened
	l16ui	a7, a2, 0
	addi	a2, a2, 2
	slli	a8, a7, 13
	add	a8, a8, a6
	bltu	a7, a5, .Lno_exponent
.Lwiden:
	s32i	a8, a3, 0
	addi	a3, a3, 4
.Lwidened:
	retw
.Lno_exponent:
	float.s	f0, a7, 15
	mul.s	f0, f0, f1
	rfr	a8, f0
	j	.Lwiden

// Four rows a turn, so that no instruction waits for the one before; then the rows that are left, one by one.
//
// a2 sums, a3 scales, a4 y, a5 rows, a6 rows that are left.

	.global	chiplm_pie_add_group
	.align	4
chiplm_pie_add_group:
	entry	a1, 32
	extui	a6, a5, 0, 2
	srli	a5, a5, 2
	loopnez	a5, .Ladded_four
	l32i	a8, a2, 0
	l32i	a9, a2, 4
	l32i	a10, a2, 8
	l32i	a11, a2, 12
	float.s	f0, a8, 0
	float.s	f1, a9, 0
	float.s	f2, a10, 0
	float.s	f3, a11, 0
	lsi	f4, a3, 0
	lsi	f5, a3, 4
	lsi	f6, a3, 8
	lsi	f7, a3, 12
	mul.s	f0, f0, f4
	mul.s	f1, f1, f5
	mul.s	f2, f2, f6
	mul.s	f3, f3, f7
	lsi	f4, a4, 0
	lsi	f5, a4, 4
	lsi	f6, a4, 8
	lsi	f7, a4, 12
	add.s	f4, f4, f0
	add.s	f5, f5, f1
	add.s	f6, f6, f2
	add.s	f7, f7, f3
	addi	a2, a2, 16
	addi	a3, a3, 16
	ssi	f4, a4, 0
	ssi	f5, a4, 4
	ssi	f6, a4, 8
	ssi	f7, a4, 12
	addi	a4, a4, 16
.Ladded_four:
	loopnez	a6, .Ladded
	l32i	a8, a2, 0
	addi	a2, a2, 4
	float.s	f0, a8, 0
	lsip	f4, a3, 4
	lsi	f5, a4, 0
	mul.s	f0, f0, f4
	add.s	f5, f5, f0
	ssip	f5, a4, 4
.Ladded:
	retw

// a2 y, a3 n, a4 scale. Four at a time, as above.

	.global	chiplm_pie_scale
	.align	4
chiplm_pie_scale:
	entry	a1, 32
	wfr	f15, a4
	extui	a5, a3, 0, 2
	srli	a3, a3, 2
	loopnez	a3, .Lscaled_four
	lsi	f0, a2, 0
	lsi	f1, a2, 4
	lsi	f2, a2, 8
	lsi	f3, a2, 12
	mul.s	f0, f0, f15
	mul.s	f1, f1, f15
	mul.s	f2, f2, f15
	mul.s	f3, f3, f15
	ssip	f0, a2, 4
	ssip	f1, a2, 4
	ssip	f2, a2, 4
	ssip	f3, a2, 4
.Lscaled_four:
	loopnez	a5, .Lscaled
	lsi	f0, a2, 0
	mul.s	f0, f0, f15
	ssip	f0, a2, 4
.Lscaled:
	retw

// a2 sums, a3 more, a4 n.

	.global	chiplm_pie_add_sums
	.align	4
chiplm_pie_add_sums:
	entry	a1, 32
	srli	a4, a4, 2
	loopnez	a4, .Lsummed
	ee.vld.128.ip q1, a3, 16
	ee.vld.128.ip q0, a2, 0
	nop
	ee.vadds.s32 q0, q0, q1
	ee.vst.128.ip q0, a2, 16
.Lsummed:
	retw
