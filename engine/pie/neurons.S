/* Which neurons speak: marks_i |= 1 where a gate is above 0, or a code is not 0, and how many these are. 16 a turn.
 *
 * As integers, gates above 0 have bits from 1 to 0x7f800000, infinity; NaNs come after. Comparisons leave all ones in words,
 * which two rounds of unzipping narrow to bytes. A product with ones counts. */

	.section .iram1,"ax"

	.macro	fill q, a
	ee.movi.32.q	\q, \a, 0
	ee.movi.32.q	\q, \a, 1
	ee.movi.32.q	\q, \a, 2
	ee.movi.32.q	\q, \a, 3
	.endm

	.align	4
	.global	chiplm_pie_open
	.type	chiplm_pie_open, @function
chiplm_pie_open:
	entry	a1, 32
	// a2 gate, a3 n, a4 marks
	ee.zero.accx
	ee.zero.q	q7
	movi	a8, 255
	slli	a8, a8, 23
	addi	a8, a8, 1
	fill	q6, a8				// the first NaN
	movi	a8, 257
	slli	a9, a8, 16
	or	a8, a8, a9
	fill	q5, a8				// a one in each byte
	srli	a3, a3, 4
	loopnez	a3, .Lopen
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	ee.vcmp.gt.s32	q4, q0, q7
	ee.vcmp.lt.s32	q0, q0, q6
	ee.andq	q0, q0, q4
	ee.vld.128.ip	q2, a2, 16
	ee.vcmp.gt.s32	q4, q1, q7
	ee.vcmp.lt.s32	q1, q1, q6
	ee.andq	q1, q1, q4
	ee.vld.128.ip	q3, a2, 16
	ee.vcmp.gt.s32	q4, q2, q7
	ee.vcmp.lt.s32	q2, q2, q6
	ee.andq	q2, q2, q4
	ee.vcmp.gt.s32	q4, q3, q7
	ee.vcmp.lt.s32	q3, q3, q6
	ee.andq	q3, q3, q4
	ee.vunzip.16	q0, q1
	ee.vunzip.16	q2, q3
	ee.vld.128.ip	q4, a4, 0
	ee.vunzip.8	q0, q2
	ee.andq	q0, q0, q5
	ee.vmulas.s8.accx	q0, q5
	ee.orq	q0, q0, q4
	ee.vst.128.ip	q0, a4, 16
.Lopen:
	rur.accx_0	a2
	retw.n

	.align	4
	.global	chiplm_pie_used
	.type	chiplm_pie_used, @function
chiplm_pie_used:
	entry	a1, 32
	// a2 codes, a3 n, a4 marks
	ee.zero.accx
	ee.zero.q	q7
	movi	a8, 257
	slli	a9, a8, 16
	or	a8, a8, a9
	fill	q5, a8
	srli	a3, a3, 4
	loopnez	a3, .Lused
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q4, a4, 0
	ee.vcmp.eq.s8	q0, q0, q7
	ee.notq	q0, q0
	ee.andq	q0, q0, q5
	ee.vmulas.s8.accx	q0, q5
	ee.orq	q0, q0, q4
	ee.vst.128.ip	q0, a4, 16
.Lused:
	rur.accx_0	a2
	retw.n
