// Products by rows of 2-bit weights. pie.h says what each function takes.
//
// A block of 16 bytes holds 64 weights: byte j those of columns j, j + 16, j + 32 and j + 48, from its low bits up. Shifted
// left by 2 bits again and again and cleared but for its two highest bits, a byte is 64 times the weight of each quarter,
// the last quarter first. So a sum is 64 times too large, exactly, and float.s takes it off. 12 instructions for 64 weights:
// 3 shifts, 4 masks, 4 products, of which each loads something, and a load.
//
// Groups of 32 columns are half a block: their sum is read between the second quarter and the third. Each group finishes
// the one before, as in rows4.S.
//
// q0 0xc0, q2 weights and last quarter, q3 q4 q5 third, second and first quarter, q6 and q7 codes of x; f0 sum, f1 sum * scale,
// f2 the row, f4 scale, f14 0, f15 scale of x. a2 codes, a3 scales, a4 x, a5 y, a6 rows, a7 columns of a group, a8 sum, a9 place
// in x, a10 whole groups, a11 blocks of the rest, a12 scratch, a13 whether half a block follows.

	.section .iram1, "ax"

	.macro	quarters
	ee.vsl.32 q3, q2
	ee.vld.128.ip q6, a9, 48
	ee.vsl.32 q4, q3
	ee.andq	q3, q3, q0
	ee.vsl.32 q5, q4
	ee.andq	q4, q4, q0
	ee.andq	q5, q5, q0
	ee.andq	q2, q2, q0
	.endm
	.macro	first_half
	ee.vmulas.s8.accx.ld.ip q6, a9, -16, q5, q6
	ee.vmulas.s8.accx.ld.ip q7, a9, 48, q4, q7
	.endm
	.macro	last_half
	ee.vmulas.s8.accx.ld.ip q2, a2, 16, q2, q6
	ee.vmulas.s8.accx.ld.ip q7, a9, -16, q3, q7
	.endm
	.macro	block
	quarters
	first_half
	last_half
	.endm

// The work on the sum of the group before, in two parts: what follows the second waits for the float.
	.macro	take_sum
	rur.accx_0 a8
	ee.zero.accx
	add.s	f2, f2, f1
	float.s	f0, a8, 6
	.endm
	.macro	scale_sum
	mul.s	f1, f0, f4
	lsip	f4, a3, 4
	.endm
	.macro	finish_group
	quarters
	take_sum
	first_half
	scale_sum
	last_half
	.endm

	.global	chiplm_pie_rows2
	.align	4
chiplm_pie_rows2:
	entry	a1, 32
	movi	a8, 0x303
	slli	a9, a8, 16
	or	a8, a8, a9
	slli	a8, a8, 6
	ee.movi.32.q q0, a8, 0
	ee.movi.32.q q0, a8, 1
	ee.movi.32.q q0, a8, 2
	ee.movi.32.q q0, a8, 3
	const.s	f14, 0
	ee.zero.accx
	mov	a9, a6
	l32i	a8, a9, 16		// scale
	wfr	f15, a8
	l32i	a6, a9, 0		// rows
	l32i	a11, a9, 4		// blocks
	l32i	a7, a9, 8		// columns of a group
	l32i	a12, a9, 12		// groups
	movi	a10, 0
	movi	a13, 0
	beqz	a7, .Lset_up
	extui	a13, a12, 0, 1
	mov	a10, a11
	movi	a11, 0
	movi	a8, 64
	beq	a7, a8, .Lall
	bltu	a7, a8, .Lpairs
	extui	a11, a10, 0, 1		// of 128 columns: two blocks each
	srli	a10, a10, 1
.Lall:
	movi	a13, 0
	j	.Lset_up
.Lpairs:
	sub	a10, a10, a13		// of 32 columns: two a block
.Lset_up:
	ssai	2
	ee.vld.128.ip q2, a2, 16
.Lrow:
	addi	a9, a4, 16
	ee.vld.128.ip q7, a9, -16
	mov.s	f1, f14
	mov.s	f2, f14
	mov.s	f4, f14
	movi	a8, 64
	bgeu	a7, a8, .Lwhole_blocks
	j	.Lgroups_of_32			// or a row
.Lwhole_blocks:
	beq	a7, a8, .Lgroups_of_64
	loopnez	a10, .Lend_128
	finish_group
	block
.Lend_128:
	j	.Lrest
.Lgroups_of_64:
	loopnez	a10, .Lend_64
	finish_group
.Lend_64:
	j	.Lrest
.Lgroups_of_32:
	loopnez	a10, .Lhalf
	quarters
	take_sum
	first_half
	scale_sum
	take_sum
	last_half
	scale_sum
.Lhalf:
	beqz	a13, .Lrest
	quarters			// the other half of the block is padding, with codes 0
	take_sum
	first_half
	scale_sum
	last_half
.Lrest:
	beqz	a11, .Lfinish_row
	finish_group
	addi	a12, a11, -1
	loopnez	a12, .Lfinish_row
	block
.Lfinish_row:
	add.s	f2, f2, f1
	rur.accx_0 a8
	ee.zero.accx
	float.s	f0, a8, 6
	addi	a6, a6, -1
	mul.s	f1, f0, f4
	add.s	f2, f2, f1
	mul.s	f2, f2, f15
	ssip	f2, a5, 4
	bnez	a6, .Lrow
	retw
