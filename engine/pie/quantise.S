/* What quantises a vector of floats to 8 bits: its largest magnitude, the codes, and the sums of codes by chunks.
 *
 * The largest magnitude is found among bits, in the vector unit: without their signs floats are ordered as integers are, with
 * NaN and infinity above every number. Two streams, since a load is ready two instructions later: 4 instructions for eight
 * values. Codes come from round.s, which rounds to nearest, ties to even. */

	.section .iram1,"ax"

	.align	4
	.global	chiplm_pie_top
	.type	chiplm_pie_top, @function
chiplm_pie_top:
	entry	a1, 32
	// a2 x, a3 n
	movi	a8, -1
	srli	a8, a8, 1
	ee.movi.32.q	q7, a8, 0
	ee.movi.32.q	q7, a8, 1
	ee.movi.32.q	q7, a8, 2
	ee.movi.32.q	q7, a8, 3
	ee.zero.q	q5
	ee.zero.q	q6
	srli	a3, a3, 3
	addi	a3, a3, -1			// the last eight load nothing behind them
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	loopnez	a3, .Ltop
	ee.andq	q2, q0, q7
	ee.vmax.s32.ld.incp	q0, a2, q5, q5, q2
	ee.andq	q3, q1, q7
	ee.vmax.s32.ld.incp	q1, a2, q6, q6, q3
.Ltop:
	ee.andq	q2, q0, q7
	ee.andq	q3, q1, q7
	ee.vmax.s32	q5, q5, q2
	ee.vmax.s32	q6, q6, q3
	ee.vmax.s32	q5, q5, q6
	ee.movi.32.a	q5, a8, 0
	ee.movi.32.a	q5, a9, 1
	ee.movi.32.a	q5, a10, 2
	ee.movi.32.a	q5, a11, 3
	max	a8, a8, a9
	max	a10, a10, a11
	max	a2, a8, a10
	retw.n

/* Code of x is rne(x * r), r being 127 / m rounded and m the largest magnitude. No code needs clamping: with u = 2^-24,
 * abs(x * r) is at most m * (127 / m) * (1 + u) rounded once more, which is below 127 * (1 + 3u) and rounds to 127. The
 * codes of a vector that has NaNs or infinities are not asked for: its r is 0. */

	.align	4
	.global	chiplm_pie_codes
	.type	chiplm_pie_codes, @function
chiplm_pie_codes:
	entry	a1, 32
	// a2 x, a3 n, a4 r, a5 codes, a6 padded
	wfr	f15, a4
	sub	a6, a6, a3
	srli	a6, a6, 2			// words of zeros
	srli	a7, a3, 3
	loopnez	a7, .Lcodes
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	ee.ldf.128.ip	f7, f6, f5, f4, a2, 16
	mul.s	f0, f0, f15
	mul.s	f1, f1, f15
	mul.s	f2, f2, f15
	mul.s	f3, f3, f15
	mul.s	f4, f4, f15
	mul.s	f5, f5, f15
	mul.s	f6, f6, f15
	mul.s	f7, f7, f15
	round.s	a8, f0, 0
	round.s	a9, f1, 0
	round.s	a10, f2, 0
	round.s	a11, f3, 0
	round.s	a12, f4, 0
	round.s	a13, f5, 0
	round.s	a14, f6, 0
	round.s	a15, f7, 0
	s8i	a8, a5, 0
	s8i	a9, a5, 1
	s8i	a10, a5, 2
	s8i	a11, a5, 3
	s8i	a12, a5, 4
	s8i	a13, a5, 5
	s8i	a14, a5, 6
	s8i	a15, a5, 7
	addi	a5, a5, 8
.Lcodes:
	movi	a8, 0
	loopnez	a6, .Lpadding
	s32i	a8, a5, 0
	addi	a5, a5, 4
.Lpadding:
	retw.n

/* The sum of the 32 codes of each chunk: a product with ones. */

	.align	4
	.global	chiplm_pie_sums
	.type	chiplm_pie_sums, @function
chiplm_pie_sums:
	entry	a1, 32
	// a2 codes, a3 chunks, a4 sums
	movi	a8, 257
	slli	a9, a8, 16
	or	a8, a8, a9
	ee.movi.32.q	q7, a8, 0
	ee.movi.32.q	q7, a8, 1
	ee.movi.32.q	q7, a8, 2
	ee.movi.32.q	q7, a8, 3
	loopnez	a3, .Lsums
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	ee.zero.accx
	ee.vmulas.s8.accx	q0, q7
	ee.vmulas.s8.accx	q1, q7
	rur.accx_0	a8
	s32i	a8, a4, 0
	addi	a4, a4, 4
.Lsums:
	retw.n
