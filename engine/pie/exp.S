/* chiplm_pie_exp: v_i = exp(v_i - most), in place, exactly as docs/numerics.md has it.
 *
 * Four values a turn: sums and products take 4 cycles, so four chains side by side leave no stall. Constants come from memory,
 * four by one load, since sixteen registers hold four chains of three values and one row of constants:
 *
 *   f0-f3    x, then r                f4-f7     t = x * log2(e) + 1.5 * 2^23, then the row C2, c0, c1, c2
 *   f12-f15  n, then p                f8-f11    the row most, log2(e), 1.5 * 2^23, C1, then the row c3, c4, 0.5, 1
 *
 * n * C1 is exact (n has 7 bits and C1 has 9), so the fused msub.s rounds once, as the two steps of the definition do.
 * No other product here is exact and no other step is fused.
 *
 * p * 2^n is exact, as p is in 0.7..1.42 and n in -124..124: it adds n to the exponent of p. The low bits of t are n, so the
 * vector unit shifts t left by 23 (what was 1.5 * 2^23 falls out) and adds, for four values at once.
 *
 * Values are clamped to -86..86 only when one of them, or most, is above 43 (or no number): otherwise no difference can
 * leave the range. The largest magnitude is found first, eight values in four instructions.
 *
 * A turn without clamping: 84 of floats, 6 loads and stores of four floats, 5 of the vector unit, 4 of control, and one stall:
 * 100 cycles and what stores of 128 bits cost. */

	.section .iram1,"ax"
	.align	4
	.global	chiplm_pie_exp
	.type	chiplm_pie_exp, @function
chiplm_pie_exp:
	entry	a1, 80				// 48 bytes of our own: the first row, t, p
	// a2 v, a3 n, a4 most, a5 constants
	s32i	a4, a1, 0
	l32i	a8, a5, 4
	l32i	a9, a5, 8
	l32i	a10, a5, 12
	s32i	a8, a1, 4
	s32i	a9, a1, 8
	s32i	a10, a1, 12
	addi	a9, a3, 7
	srli	a9, a9, 3			// eights
	addi	a3, a3, 3
	srli	a3, a3, 2			// turns
	movi	a8, -1
	srli	a8, a8, 1
	ee.movi.32.q	q7, a8, 0
	ee.movi.32.q	q7, a8, 1
	ee.movi.32.q	q7, a8, 2
	ee.movi.32.q	q7, a8, 3
	and	a4, a4, a8
	ee.zero.q	q5
	ee.zero.q	q6
	mov	a7, a2
	addi	a9, a9, -1			// the last eight load nothing behind them
	ee.vld.128.ip	q0, a7, 16
	ee.vld.128.ip	q1, a7, 16
	loopnez	a9, .Lmagnitude
	ee.andq	q2, q0, q7
	ee.vmax.s32.ld.incp	q0, a7, q5, q5, q2
	ee.andq	q3, q1, q7
	ee.vmax.s32.ld.incp	q1, a7, q6, q6, q3
.Lmagnitude:
	ee.andq	q2, q0, q7
	ee.andq	q3, q1, q7
	ee.vmax.s32	q5, q5, q2
	ee.vmax.s32	q6, q6, q3
	ee.vmax.s32	q6, q6, q5
	l32i	a12, a5, 56			// 43
	ee.movi.32.a	q6, a8, 0
	ee.movi.32.a	q6, a9, 1
	ee.movi.32.a	q6, a10, 2
	ee.movi.32.a	q6, a11, 3
	max	a8, a8, a9
	max	a10, a10, a11
	max	a8, a8, a4
	max	a8, a8, a10
	movi	a6, 0				// whether to clamp
	bge	a12, a8, .Lstart
	movi	a6, 1
.Lstart:
	mov	a12, a1
	addi	a8, a1, 16			// t
	addi	a9, a1, 32			// p
	addi	a10, a5, 16
	addi	a11, a5, 32
	mov	a7, a2
	ssai	23
	ee.ldf.128.ip	f11, f10, f9, f8, a12, 0
.Lturn:
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	addi	a3, a3, -1
	sub.s	f0, f0, f8
	sub.s	f1, f1, f8
	sub.s	f2, f2, f8
	sub.s	f3, f3, f8
	bnez	a6, .Lclamp
.Lclamped:
	mul.s	f4, f0, f9
	mul.s	f5, f1, f9
	mul.s	f6, f2, f9
	mul.s	f7, f3, f9
	add.s	f4, f4, f10
	add.s	f5, f5, f10
	add.s	f6, f6, f10
	add.s	f7, f7, f10
	sub.s	f12, f4, f10
	sub.s	f13, f5, f10
	sub.s	f14, f6, f10
	sub.s	f15, f7, f10
	ee.stf.128.ip	f7, f6, f5, f4, a8, 0
	ee.ldf.128.ip	f7, f6, f5, f4, a10, 0
	msub.s	f0, f12, f11
	msub.s	f1, f13, f11
	msub.s	f2, f14, f11
	msub.s	f3, f15, f11
	mul.s	f12, f12, f4
	mul.s	f13, f13, f4
	mul.s	f14, f14, f4
	mul.s	f15, f15, f4
	sub.s	f0, f0, f12
	sub.s	f1, f1, f13
	sub.s	f2, f2, f14
	sub.s	f3, f3, f15
	mul.s	f12, f0, f5
	mul.s	f13, f1, f5
	mul.s	f14, f2, f5
	mul.s	f15, f3, f5
	add.s	f12, f12, f6
	add.s	f13, f13, f6
	add.s	f14, f14, f6
	add.s	f15, f15, f6
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f7
	add.s	f13, f13, f7
	add.s	f14, f14, f7
	add.s	f15, f15, f7
	ee.ldf.128.ip	f11, f10, f9, f8, a11, 0
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f8
	add.s	f13, f13, f8
	add.s	f14, f14, f8
	add.s	f15, f15, f8
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f9
	add.s	f13, f13, f9
	add.s	f14, f14, f9
	add.s	f15, f15, f9
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f10
	add.s	f13, f13, f10
	add.s	f14, f14, f10
	add.s	f15, f15, f10
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f11
	add.s	f13, f13, f11
	add.s	f14, f14, f11
	add.s	f15, f15, f11
	mul.s	f12, f12, f0
	mul.s	f13, f13, f1
	mul.s	f14, f14, f2
	mul.s	f15, f15, f3
	add.s	f12, f12, f11
	add.s	f13, f13, f11
	add.s	f14, f14, f11
	add.s	f15, f15, f11
	ee.vld.128.ip	q0, a8, 0		// these three hide the last sum
	ee.ldf.128.ip	f11, f10, f9, f8, a12, 0
	ee.vsl.32	q0, q0
	ee.stf.128.ip	f15, f14, f13, f12, a9, 0
	ee.vld.128.ip	q1, a9, 0
	ee.vadds.s32	q0, q0, q1		// never saturates: exponents stay in 2..251
	ee.vst.128.ip	q0, a7, 16
	bnez	a3, .Lturn
	retw.n

.Lclamp:
	lsi	f12, a5, 48			// -86
	lsi	f13, a5, 52			// 86
	olt.s	b0, f12, f0			// false for NaN, which becomes -86
	olt.s	b1, f12, f1
	olt.s	b2, f12, f2
	olt.s	b3, f12, f3
	movf.s	f0, f12, b0
	movf.s	f1, f12, b1
	movf.s	f2, f12, b2
	movf.s	f3, f12, b3
	olt.s	b0, f0, f13
	olt.s	b1, f1, f13
	olt.s	b2, f2, f13
	olt.s	b3, f3, f13
	movf.s	f0, f13, b0
	movf.s	f1, f13, b1
	movf.s	f2, f13, b2
	movf.s	f3, f13, b3
	j	.Lclamped
