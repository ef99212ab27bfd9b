// Products by rows of 8-bit weights. pie.h says what each function takes.
//
// Two blocks of 16 weights at a time, each with registers of its own: between the load of a block and its product lie two
// instructions. That makes 4 for 32 weights:
//
//     vmulas  sum += weights * x        and loads the codes of x for the next pair's first block
//     vld     the next pair's first block of weights
//     vmulas  and vld the same for the second block
//
// Each group finishes the one before, as in rows4.S. What was loaded ahead at the end of a row is loaded again: a row may
// end with half a pair.
//
// q2 and q3 weights, q4 and q5 the codes of x that they meet; f0 sum, f1 sum * scale, f2 the row, f4 scale, f14 0, f15 scale
// of x. a2 codes, a3 scales, a4 x, a5 y, a6 rows, a7 pairs of a group, a8 sum, a9 place in x, a10 whole groups, a11 pairs of
// the rest, a12 scratch, a13 whether half a pair follows, a14 place in the row, a15 bytes of a row.

	.section .iram1, "ax"

	.macro	first
	ee.vmulas.s8.accx.ld.ip q4, a9, 16, q2, q4
	ee.vld.128.ip q2, a14, 16
	.endm
	.macro	second
	ee.vmulas.s8.accx.ld.ip q5, a9, 16, q3, q5
	ee.vld.128.ip q3, a14, 16
	.endm
	.macro	pair
	first
	second
	.endm

// The work on the sum of the group before. The sum can be read one instruction after its last product: the load of weights.
	.macro	finish_group
	rur.accx_0 a8
	ee.zero.accx
	add.s	f2, f2, f1
	float.s	f0, a8, 0
	first
	mul.s	f1, f0, f4
	second
	lsip	f4, a3, 4
	.endm

	.global	chiplm_pie_rows8
	.align	4
chiplm_pie_rows8:
	entry	a1, 32
	const.s	f14, 0
	ee.zero.accx
	mov	a9, a6
	l32i	a8, a9, 16		// scale
	wfr	f15, a8
	l32i	a6, a9, 0		// rows
	l32i	a11, a9, 4		// blocks
	l32i	a7, a9, 8		// columns of a group
	slli	a15, a11, 4
	extui	a13, a11, 0, 1
	srli	a11, a11, 1
	movi	a10, 0
	srli	a7, a7, 5
	beqz	a7, .Lrow
	addi	a12, a7, -1
	and	a12, a11, a12
	srli	a10, a7, 1		// 1, 2 and 4 pairs are 0, 1 and 2 bits
	ssr	a10
	srl	a10, a11
	mov	a11, a12
.Lrow:
	mov	a14, a2
	mov	a9, a4
	ee.vld.128.ip q2, a14, 16
	ee.vld.128.ip q4, a9, 16
	ee.vld.128.ip q3, a14, 16
	ee.vld.128.ip q5, a9, 16
	mov.s	f1, f14
	mov.s	f2, f14
	mov.s	f4, f14
	beqi	a7, 2, .Lgroups_of_64
	beqi	a7, 4, .Lgroups_of_128
	loopnez	a10, .Lgroups_of_32
	finish_group
.Lgroups_of_32:
	j	.Lrest
.Lgroups_of_64:
	loopnez	a10, .Lend_64
	finish_group
	pair
.Lend_64:
	j	.Lrest
.Lgroups_of_128:
	loopnez	a10, .Lrest
	finish_group
	pair
	pair
	pair
.Lrest:
	beqz	a11, .Lhalf
	finish_group
	addi	a12, a11, -1
	loopnez	a12, .Lpairs
	pair
.Lpairs:
	beqz	a13, .Lfinish_row
	first				// half a pair, of the same group
	j	.Lfinish_row
.Lhalf:
	beqz	a13, .Lfinish_row
	rur.accx_0 a8			// half a pair, a group of its own
	ee.zero.accx
	add.s	f2, f2, f1
	float.s	f0, a8, 0
	first
	mul.s	f1, f0, f4
	lsip	f4, a3, 4
.Lfinish_row:
	add.s	f2, f2, f1
	rur.accx_0 a8
	ee.zero.accx
	add	a2, a2, a15
	float.s	f0, a8, 0
	addi	a6, a6, -1
	mul.s	f1, f0, f4
	add.s	f2, f2, f1
	mul.s	f2, f2, f15
	ssip	f2, a5, 4
	bnez	a6, .Lrow
	retw
