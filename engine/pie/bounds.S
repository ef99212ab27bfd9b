// Bounds of rows of the head from blocks of 32 codes of 4 bits: prior + dot * unit, plus norm * n, plus slack, times a scale.
//
// A half word of a block is four codes, of which each comes to the top by a product with 16 that keeps 16 bits. With the
// 12 bits beneath cleared it is 4096 times the code; the fourth has nothing beneath it. The sum is 4096 times too large and
// fits 40 bits: 32 * 8 * 32767 * 4096 < 2^36. Codes from the top down are those of odd columns from 16 on, odd ones below,
// even ones from 16 on, and even ones below, so lanes are sorted likewise.
//
// A row's floats wait for each other, 4 cycles a step; so the loop has them between the products of the next row. Nothing
// is read ahead of a row: it might be another line of the cache.
//
// a2 blocks, a3 n, a4 prior, a5 level, a6 bounds. q2 0xf000 and q3 16 in all half words, q4 to q7 lanes; f0 unit, f1 n, f2
// slack, f3 scale, f6 prior; f4 and f5 the row's dot and norm, f7 and f8 its sum and bound.

	.section .iram1, "ax"

	.global	chiplm_pie_bounds
	.align	4
chiplm_pie_bounds:
	entry	a1, 48
	movi	a8, 16
	movi	a9, 0xf0
	s32i	a8, a1, 0
	s8i	a9, a1, 3
	ee.vld.128.ip q4, a5, 16
	ee.vld.128.ip q5, a5, 16
	ee.vld.128.ip q6, a5, 16
	ee.vld.128.ip q7, a5, 16
	ee.ldf.128.ip f3, f2, f1, f0, a5, 16
	ee.vunzip.16 q4, q5
	ee.vunzip.16 q6, q7
	ee.vldbc.16 q3, a1
	addi	a8, a1, 2
	ee.vldbc.16 q2, a8
	ee.vld.128.ip q0, a2, 0
	l8ui	a10, a2, 15
	ssai	0
	ee.zero.accx
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.vmulas.s16.accx q1, q7
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.vmulas.s16.accx q1, q5
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.vmulas.s16.accx q1, q6
	ee.vmulas.s16.accx q0, q4
	movi	a9, 12
	ee.srs.accx a8, a9, 0
	float.s	f4, a8, 0
	float.s	f5, a10, 0
	wfr	f6, a4
	addi	a3, a3, -1
	addi	a2, a2, 16
	loopnez	a3, .Lbounds
	mul.s	f7, f4, f0
	mul.s	f8, f5, f1
	l8ui	a10, a2, 15
	ee.vld.128.ip q0, a2, 16
	add.s	f7, f6, f7
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.zero.accx
	ee.vmulas.s16.accx q1, q7
	add.s	f8, f7, f8
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.vmulas.s16.accx q1, q5
	add.s	f8, f8, f2
	ee.andq	q1, q0, q2
	ee.vmul.s16 q0, q0, q3
	ee.vmulas.s16.accx q1, q6
	mul.s	f8, f8, f3
	ee.vmulas.s16.accx q0, q4
	float.s	f5, a10, 0
	ee.srs.accx a8, a9, 0
	float.s	f4, a8, 0
	ee.stf.64.ip f8, f7, a6, 8
.Lbounds:
	mul.s	f7, f4, f0
	mul.s	f8, f5, f1
	add.s	f7, f6, f7
	add.s	f8, f7, f8
	add.s	f8, f8, f2
	mul.s	f8, f8, f3
	ee.stf.64.ip f8, f7, a6, 8
	retw
