/* Around exp: what gelu and silu give it, and what they make of its result.
 *
 *   gelu(x) * e = (x * 1 / (1 + exp(-z))) * e, z = (x * K1) * (1 + (x * x) * K2)
 *   silu(x) * u = (x * 1 / (1 + exp(-x))) * u
 *
 * There is no division here: 1/b is refined from a guess by Newton's method, with fused steps, to the float nearest to it.
 * The guess is a constant less the bits of b, wrong by an eighth at most. With e = 1 - b * y, a step y + y * e squares the
 * error and y + y * (e + e * e) cubes it: 1/8, 1/64, 2^-12, 2^-36 but for rounding. The last step rounds once a value that is
 * right to twice the bits of a float. (With a square for the cube one fraction in 2^23 comes out wrong, all ones.)
 *
 * What matters is the fraction of b alone: exponents shift exactly through every step, as b is in 1..2^125 and nothing
 * is subnormal. So running all 2^23 fractions proves it; the tests do. */

	.section .iram1,"ax"

	.align	4
	.global	chiplm_pie_gelu
	.type	chiplm_pie_gelu, @function
chiplm_pie_gelu:
	entry	a1, 32
	// a2 x, a3 n, a4 z, a5 {-K1, K2}. Writes -z: the sign goes with K1
	lsi	f14, a5, 0
	lsi	f15, a5, 4
	const.s	f13, 1
	srli	a3, a3, 2
	loopnez	a3, .Lgelu
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	mul.s	f4, f0, f0
	mul.s	f5, f1, f1
	mul.s	f6, f2, f2
	mul.s	f7, f3, f3
	mul.s	f4, f4, f15
	mul.s	f5, f5, f15
	mul.s	f6, f6, f15
	mul.s	f7, f7, f15
	add.s	f4, f4, f13
	add.s	f5, f5, f13
	add.s	f6, f6, f13
	add.s	f7, f7, f13
	mul.s	f0, f0, f14
	mul.s	f1, f1, f14
	mul.s	f2, f2, f14
	mul.s	f3, f3, f14
	mul.s	f0, f0, f4
	mul.s	f1, f1, f5
	mul.s	f2, f2, f6
	mul.s	f3, f3, f7
	ee.stf.128.ip	f3, f2, f1, f0, a4, 16
.Lgelu:
	retw.n

	.align	4
	.global	chiplm_pie_negate
	.type	chiplm_pie_negate, @function
chiplm_pie_negate:
	entry	a1, 32
	// a2 x, a3 n, a4 y
	movi	a8, 1
	slli	a8, a8, 31
	ee.movi.32.q	q7, a8, 0
	ee.movi.32.q	q7, a8, 1
	ee.movi.32.q	q7, a8, 2
	ee.movi.32.q	q7, a8, 3
	srli	a3, a3, 3
	loopnez	a3, .Lnegate
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	ee.xorq	q0, q0, q7
	ee.xorq	q1, q1, q7
	ee.vst.128.ip	q0, a4, 16
	ee.vst.128.ip	q1, a4, 16
.Lnegate:
	retw.n

	// A step of four: e = 1 - b * y; with cubed, e = e + e * e; y = y + y * e.
	.macro	refine cubed=0
	mov.s	f8, f12
	mov.s	f9, f12
	mov.s	f10, f12
	mov.s	f11, f12
	msub.s	f8, f0, f4
	msub.s	f9, f1, f5
	msub.s	f10, f2, f6
	msub.s	f11, f3, f7
	.if	\cubed
	madd.s	f8, f8, f8
	madd.s	f9, f9, f9
	madd.s	f10, f10, f10
	madd.s	f11, f11, f11
	.endif
	madd.s	f4, f4, f8
	madd.s	f5, f5, f9
	madd.s	f6, f6, f10
	madd.s	f7, f7, f11
	.endm

	.align	4
	.global	chiplm_pie_sigmoid
	.type	chiplm_pie_sigmoid, @function
chiplm_pie_sigmoid:
	entry	a1, 32
	// a2 x, a3 exps, a4 by, a5 n, a6 y, a7 the guess: y = (x * (1 / (1 + exp))) * by
	const.s	f12, 1
	srli	a5, a5, 2
	loopnez	a5, .Lsigmoid
	ee.ldf.128.ip	f3, f2, f1, f0, a3, 16
	add.s	f0, f0, f12
	add.s	f1, f1, f12
	add.s	f2, f2, f12
	add.s	f3, f3, f12
	rfr	a8, f0
	rfr	a9, f1
	rfr	a10, f2
	rfr	a11, f3
	sub	a8, a7, a8
	sub	a9, a7, a9
	sub	a10, a7, a10
	sub	a11, a7, a11
	wfr	f4, a8
	wfr	f5, a9
	wfr	f6, a10
	wfr	f7, a11
	refine
	refine
	refine	cubed=1
	refine
	ee.ldf.128.ip	f3, f2, f1, f0, a2, 16
	ee.ldf.128.ip	f11, f10, f9, f8, a4, 16
	mul.s	f4, f0, f4
	mul.s	f5, f1, f5
	mul.s	f6, f2, f6
	mul.s	f7, f3, f7
	mul.s	f4, f4, f8
	mul.s	f5, f5, f9
	mul.s	f6, f6, f10
	mul.s	f7, f7, f11
	ee.stf.128.ip	f7, f6, f5, f4, a6, 16
.Lsigmoid:
	retw.n
