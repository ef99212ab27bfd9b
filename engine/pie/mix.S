/* chiplm_pie_mix: sums_j = sum over t < n of shares_t * values_tj, for d columns, a multiple of 16, and shares of 0..127.
 *
 * 16 columns meet a position in one multiply-accumulate on QACC, 16 lanes of 20 bits. The load of the next value rides on it,
 * the broadcast of the share after the next takes another instruction: 2 cycles a position and 16 columns.
 *
 * Reading QACC takes about 80 cycles, so it is done as seldom as its lanes allow. They saturate at 2^19 - 1 = 524,287, and
 * a block of positions whose shares sum to 4,128 at most adds at most 127 * 4,128 = 524,256 to any lane, in any order. The
 * block grows by 16 positions until the next 16 would pass that; 16 alone sum to 2,032 at most, so it has 32 at least.
 * Softmax gives most positions small shares: a block is often the whole context.
 *
 * Lanes lie 20 bits apart in five words of 32, so they are cut out by shifts, go to the stack, and are added four by four. */

	.section .iram1,"ax"
	.align	4
	.global	chiplm_pie_mix
	.type	chiplm_pie_mix, @function
chiplm_pie_mix:
	entry	a1, 112				// 80 bytes of our own: 16 sums; shares, n
	// a2 shares, a3 values, a4 n, a5 d, a6 sums
	ee.zero.q	q6
	srli	a8, a5, 2
	mov	a9, a6
	loopnez	a8, .Lcleared
	ee.vst.128.ip	q6, a9, 16
.Lcleared:
	movi	a8, 257
	slli	a9, a8, 16
	or	a8, a8, a9			// ones
	ee.movi.32.q	q7, a8, 0
	ee.movi.32.q	q7, a8, 1
	ee.movi.32.q	q7, a8, 2
	ee.movi.32.q	q7, a8, 3
.Lblock:
	// a7: the positions of the block
	movi	a7, 0
	movi	a8, 129
	slli	a8, a8, 5			// 4,128 left
	mov	a9, a2
.Lgrow:
	ee.vld.128.ip	q4, a9, 16
	ee.zero.accx
	ee.vmulas.s8.accx	q4, q7
	rur.accx_0	a10
	bltu	a8, a10, .Lgrown
	sub	a8, a8, a10
	addi	a7, a7, 16
	bltu	a7, a4, .Lgrow
.Lgrown:
	minu	a7, a7, a4
	s32i	a2, a1, 64
	s32i	a4, a1, 68
	addi	a14, a7, -1
	srli	a14, a14, 2			// turns of four positions, one to four being left
	slli	a15, a14, 2
	sub	a15, a7, a15
	movi	a13, 0				// the first of 16 columns
.Lcolumns:
	add	a9, a3, a13
	l32i	a10, a1, 64
	ee.zero.qacc
	ee.vldbc.8.ip	q2, a10, 1
	ee.vld.128.xp	q0, a9, a5
	ee.vldbc.8.ip	q3, a10, 1
	loopnez	a14, .Lfours
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q2
	ee.vldbc.8.ip	q2, a10, 1
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q3
	ee.vldbc.8.ip	q3, a10, 1
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q2
	ee.vldbc.8.ip	q2, a10, 1
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q3
	ee.vldbc.8.ip	q3, a10, 1
.Lfours:
	beqi	a15, 1, .Llast
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q2
	ee.vldbc.8.ip	q2, a10, 1
	beqi	a15, 2, .Llast_odd
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q3
	ee.vldbc.8.ip	q3, a10, 1
	beqi	a15, 3, .Llast
	ee.vmulas.s8.qacc.ld.xp	q0, a9, a5, q0, q2
.Llast_odd:
	ee.vmulas.s8.qacc	q0, q3
	j	.Lread
.Llast:
	ee.vmulas.s8.qacc	q0, q2
.Lread:
	// Lane i of a half is bits 20i to 20i + 19 of its 160.
	rur.qacc_l_0	a8
	rur.qacc_l_1	a9
	rur.qacc_l_2	a10
	rur.qacc_l_3	a11
	rur.qacc_l_4	a12
	sext	a4, a8, 19
	s32i	a4, a1, 0
	ssai	20
	src	a8, a9, a8
	sext	a8, a8, 19
	s32i	a8, a1, 4
	slli	a8, a9, 4
	srai	a8, a8, 12
	s32i	a8, a1, 8
	ssai	28
	src	a9, a10, a9
	sext	a9, a9, 19
	s32i	a9, a1, 12
	ssai	16
	src	a10, a11, a10
	sext	a10, a10, 19
	s32i	a10, a1, 16
	slli	a10, a11, 8
	srai	a10, a10, 12
	s32i	a10, a1, 20
	ssai	24
	src	a11, a12, a11
	sext	a11, a11, 19
	s32i	a11, a1, 24
	srai	a12, a12, 12
	s32i	a12, a1, 28
	rur.qacc_h_0	a8
	rur.qacc_h_1	a9
	rur.qacc_h_2	a10
	rur.qacc_h_3	a11
	rur.qacc_h_4	a12
	sext	a4, a8, 19
	s32i	a4, a1, 32
	ssai	20
	src	a8, a9, a8
	sext	a8, a8, 19
	s32i	a8, a1, 36
	slli	a8, a9, 4
	srai	a8, a8, 12
	s32i	a8, a1, 40
	ssai	28
	src	a9, a10, a9
	sext	a9, a9, 19
	s32i	a9, a1, 44
	ssai	16
	src	a10, a11, a10
	sext	a10, a10, 19
	s32i	a10, a1, 48
	slli	a10, a11, 8
	srai	a10, a10, 12
	s32i	a10, a1, 52
	ssai	24
	src	a11, a12, a11
	sext	a11, a11, 19
	s32i	a11, a1, 56
	srai	a12, a12, 12
	s32i	a12, a1, 60
	mov	a8, a1
	slli	a9, a13, 2
	add	a9, a6, a9
	mov	a10, a9
	ee.vld.128.ip	q0, a8, 16
	ee.vld.128.ip	q1, a9, 16
	ee.vld.128.ip	q2, a8, 16
	ee.vld.128.ip	q3, a9, 16
	ee.vadds.s32.ld.incp	q4, a8, q0, q0, q1	// sums stay below 127 * 127 * 131,072 < 2^31
	ee.vadds.s32.ld.incp	q5, a9, q2, q2, q3
	ee.vst.128.ip	q0, a10, 16
	ee.vadds.s32.ld.incp	q6, a8, q4, q4, q5
	ee.vst.128.ip	q2, a10, 16
	ee.vld.128.ip	q0, a9, 16
	ee.vst.128.ip	q4, a10, 16
	ee.vadds.s32	q6, q6, q0
	ee.vst.128.ip	q6, a10, 16
	addi	a13, a13, 16
	bgeu	a13, a5, .Lnext
	j	.Lcolumns
.Lnext:
	l32i	a2, a1, 64
	l32i	a4, a1, 68
	add	a2, a2, a7
	sub	a4, a4, a7
	mull	a8, a7, a5
	add	a3, a3, a8
	bnez	a4, .Lblock
	retw.n
