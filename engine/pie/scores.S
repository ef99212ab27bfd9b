/* chiplm_pie_scores: the scores of one query against the keys of n positions, and the largest of them.
 *
 *   score_t = ((float)dot(query, key_t) * (s_q * s_kt)) * c
 *
 * Widths of 16, 32 and 64 take four positions a turn, with the query resident in q0 to q3. A multiply-accumulate loads what
 * comes after it, so the first key of a turn is loaded alone and nothing is read past the last. The chain from dot to score
 * is a conversion (2 cycles) and two products (4 each): four of them side by side leave no stall. The largest is kept in four
 * lanes, each compared with its own, since a comparison in one register would wait for the one before.
 *
 * A turn at width 32: 2 loads, 8 multiply-accumulates, 8 to clear and read the sum, 4 scales, 16 to turn dots into scores,
 * 1 store, 8 for the largest: 47 cycles, 11.75 a position. The sum is in 32 bits: 127 * 127 * width.
 *
 * Of other multiples of 16, and of what is left over below four, positions go one by one. */

// From four dots in a8 to a11 and the scales of their keys in f4 to f7 to four scores.
	.macro	score_four
	mul.s	f4, f12, f4
	mul.s	f5, f12, f5
	mul.s	f6, f12, f6
	mul.s	f7, f12, f7
	float.s	f0, a8, 0
	float.s	f1, a9, 0
	float.s	f2, a10, 0
	float.s	f3, a11, 0
	mul.s	f0, f0, f4
	mul.s	f1, f1, f5
	mul.s	f2, f2, f6
	mul.s	f3, f3, f7
	mul.s	f0, f0, f13
	mul.s	f1, f1, f13
	mul.s	f2, f2, f13
	mul.s	f3, f3, f13
	olt.s	b0, f8, f0
	olt.s	b1, f9, f1
	olt.s	b2, f10, f2
	olt.s	b3, f11, f3
	ee.stf.128.ip	f3, f2, f1, f0, a7, 16
	addi	a4, a4, 16
	movt.s	f8, f0, b0
	movt.s	f9, f1, b1
	movt.s	f10, f2, b2
	movt.s	f11, f3, b3
	.endm

	.section .iram1,"ax"
	.align	4
	.global	chiplm_pie_scores
	.type	chiplm_pie_scores, @function
chiplm_pie_scores:
	entry	a1, 32
	// a2 query, a3 keys, a4 scales of keys, a5 n, a6 {width, s_q, c}, a7 scores
	lsi	f12, a6, 4
	lsi	f13, a6, 8
	l32i	a6, a6, 0
	mov	a14, a7
	movi	a8, -1
	slli	a8, a8, 23			// minus infinity
	wfr	f8, a8
	wfr	f9, a8
	wfr	f10, a8
	wfr	f11, a8
	srli	a12, a5, 2
	extui	a13, a5, 0, 2
	beqi	a6, 16, .Lwidth16
	bnei	a6, 32, .Lnot32
	j	.Lwidth32
.Lnot32:
	bnei	a6, 64, .Lnot64
	j	.Lwidth64
.Lnot64:
	mov	a13, a5
	j	.Lrest

.Lwidth16:
	ee.vld.128.ip	q0, a2, 0
	loopnez	a12, .Lend16
	ee.vld.128.ip	q4, a3, 16
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	lsi	f4, a4, 0
	rur.accx_0	a8
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	lsi	f5, a4, 4
	rur.accx_0	a9
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	lsi	f6, a4, 8
	rur.accx_0	a10
	ee.zero.accx
	ee.vmulas.s8.accx	q0, q4
	lsi	f7, a4, 12
	rur.accx_0	a11
	score_four
.Lend16:
	j	.Lrest

.Lwidth32:
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, -16
	loopnez	a12, .Lend32
	ee.vld.128.ip	q4, a3, 16
	ee.vld.128.ip	q5, a3, 16
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	lsi	f4, a4, 0
	rur.accx_0	a8
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	lsi	f5, a4, 4
	rur.accx_0	a9
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	lsi	f6, a4, 8
	rur.accx_0	a10
	ee.zero.accx
	ee.vmulas.s8.accx	q0, q4
	ee.vmulas.s8.accx	q1, q5
	lsi	f7, a4, 12
	rur.accx_0	a11
	score_four
.Lend32:
	j	.Lrest

.Lwidth64:
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	ee.vld.128.ip	q2, a2, 16
	ee.vld.128.ip	q3, a2, -48
	loopnez	a12, .Lrest
	ee.vld.128.ip	q4, a3, 16
	ee.vld.128.ip	q5, a3, 16
	ee.vld.128.ip	q6, a3, 16
	ee.vld.128.ip	q7, a3, 16
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	ee.vmulas.s8.accx.ld.ip	q6, a3, 16, q2, q6
	ee.vmulas.s8.accx.ld.ip	q7, a3, 16, q3, q7
	lsi	f4, a4, 0
	rur.accx_0	a8
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	ee.vmulas.s8.accx.ld.ip	q6, a3, 16, q2, q6
	ee.vmulas.s8.accx.ld.ip	q7, a3, 16, q3, q7
	lsi	f5, a4, 4
	rur.accx_0	a9
	ee.zero.accx
	ee.vmulas.s8.accx.ld.ip	q4, a3, 16, q0, q4
	ee.vmulas.s8.accx.ld.ip	q5, a3, 16, q1, q5
	ee.vmulas.s8.accx.ld.ip	q6, a3, 16, q2, q6
	ee.vmulas.s8.accx.ld.ip	q7, a3, 16, q3, q7
	lsi	f6, a4, 8
	rur.accx_0	a10
	ee.zero.accx
	ee.vmulas.s8.accx	q0, q4
	ee.vmulas.s8.accx	q1, q5
	ee.vmulas.s8.accx	q2, q6
	ee.vmulas.s8.accx	q3, q7
	lsi	f7, a4, 12
	rur.accx_0	a11
	score_four

.Lrest:						// a13 positions, one by one
	srli	a12, a6, 4
	beqz	a13, .Llargest
.Lone:
	mov	a9, a2
	ee.zero.accx
	loopnez	a12, .Ldot
	ee.vld.128.ip	q0, a9, 16
	ee.vld.128.ip	q1, a3, 16
	ee.vmulas.s8.accx	q0, q1
.Ldot:
	lsi	f4, a4, 0
	rur.accx_0	a8
	addi	a4, a4, 4
	mul.s	f4, f12, f4
	float.s	f0, a8, 0
	addi	a13, a13, -1
	mul.s	f0, f0, f4
	mul.s	f0, f0, f13
	olt.s	b0, f8, f0
	ssi	f0, a7, 0
	addi	a7, a7, 4
	movt.s	f8, f0, b0
	bnez	a13, .Lone

.Llargest:
	olt.s	b0, f8, f9
	movt.s	f8, f9, b0
	olt.s	b0, f8, f10
	movt.s	f8, f10, b0
	olt.s	b0, f8, f11
	movt.s	f8, f11, b0
	// The definition starts from the first score: where that is no number no other is larger, and elsewhere NaNs are
	// passed over, as above. Which of two zeros is found first makes no difference; adding 0 makes them one.
	lsi	f0, a14, 0
	un.s	b0, f0, f0
	const.s	f1, 0
	movt.s	f8, f0, b0
	add.s	f8, f8, f1
	rfr	a2, f8
	retw.n
