// The dot product of a block of 32 codes of 4 bits with 32 lanes of 16 bits, which bounds a row of the head.
//
// A byte with its low half cleared is 16 times the code of its high half, and beneath a byte of zeros 4096 times. So is the
// byte shifted left by 4 with its low half cleared, for the low half. The sum is 4096 times too large and fits 40 bits:
// 32 * 8 * 32767 * 4096 < 2^36.
//
// a2 block, a3 lanes. q0 0xf0 in all bytes, q1 the block, q2 and q4 its high half, q3 and q5 its low half, q6 and q7 lanes.

	.section .iram1, "ax"

	.global	chiplm_pie_block_dot
	.align	4
chiplm_pie_block_dot:
	entry	a1, 48
	movi	a8, 0xf0
	s8i	a8, a1, 0
	ee.vld.128.ip q1, a2, 0
	ssai	4
	ee.vldbc.8 q0, a1
	ee.vsl.32 q3, q1
	ee.vld.128.ip q6, a3, 16
	ee.andq	q3, q3, q0
	ee.andq	q2, q1, q0
	ee.zero.q q5
	ee.zero.q q4
	ee.vzip.8 q5, q3		// columns 0 to 7 and 8 to 15
	ee.vzip.8 q4, q2		// 16 to 23 and 24 to 31
	ee.zero.accx
	ee.vld.128.ip q7, a3, 16
	ee.vmulas.s16.accx.ld.ip q6, a3, 16, q5, q6
	ee.vmulas.s16.accx.ld.ip q7, a3, 16, q3, q7
	ee.vmulas.s16.accx q4, q6
	ee.vmulas.s16.accx q2, q7
	movi	a8, 12
	ee.srs.accx a2, a8, 0
	retw
