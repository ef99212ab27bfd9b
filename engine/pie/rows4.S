// Products by rows of 4-bit weights. pie.h says what each function takes.
//
// A block of 16 bytes holds 32 weights: column j in the low half of byte j, column j + 16 in the high half. Neither half
// is unpacked. With the low half cleared a byte is 16 times the weight of its high half; and the byte times 16, of which
// the unit keeps the low 8 bits, is 16 times that of its low half. So a row's sum is 16 times too large, exactly, and
// float.s takes the 16 off. That makes 4 instructions for 32 weights:
//
//     andq    high <- weights & 0xf0
//     vmul    low  <- weights * 16      and loads the next 16 bytes of weights
//     vmulas  sum  += high * x          and loads what the next block wants of x
//     vmulas  sum  += low * x           the same
//
// What andq gives can be used at once, what vmul and loads give after one instruction more, and the sum can be read after
// one: here that always lies between. No cycle is lost to waiting.
//
// The rest of the work of a group of columns, or of a row, is done while the next one's blocks are summed: the sum goes to
// a float, meets its scale, is added to those before it, and the row meets the scale of x. Each waits for the one before, 2
// cycles for float.s and a load, 4 for mul.s and add.s. Rows start from 0, which must be added even to the first group: a
// sum below 0 whose scale is 0 would else leave -0.
//
// q0 0xf0, q1 16, q2 weights, q3 high, q4 low, q5 and q6 the codes of x that these meet.
// f0 sum, f1 sum * scale, f2 the row, f3 f4 f5 scales and what waits, f14 0, f15 scale of x.

	.section .iram1, "ax"

// Sets q0 to 0xf0 and q1 to 16 in all bytes, and has vmul shift nothing.
	.macro	constants
	movi	a8, 0x101
	slli	a9, a8, 16
	or	a8, a8, a9
	slli	a8, a8, 4
	ee.movi.32.q q1, a8, 0
	ee.movi.32.q q1, a8, 1
	ee.movi.32.q q1, a8, 2
	ee.movi.32.q q1, a8, 3
	ee.zero.q q0
	ee.vsubs.s8 q0, q0, q1
	ssai	0
	const.s	f14, 0
	ee.zero.accx
	.endm

// Points \x behind the codes that the first block meets, and loads those. high comes before low: of the two sums of a block,
// that of the high half can be made first.
	.macro	first_x x
	ee.vld.128.ip q5, \x, -16
	ee.vld.128.ip q6, \x, 48
	.endm

// The two halves of a block apart, and the sum of both. high and low are the steps of \x: from the codes of a high half to
// those of the low half, and on to those of the next block's high half.
	.macro	halves codes
	ee.andq	q3, q2, q0
	ee.vmul.s8.ld.incp q2, \codes, q4, q2, q1
	.endm
	.macro	sum_high x, step=-16
	ee.vmulas.s8.accx.ld.ip q5, \x, \step, q3, q5
	.endm
	.macro	sum_low x, step=48
	ee.vmulas.s8.accx.ld.ip q6, \x, \step, q4, q6
	.endm
	.macro	block codes, x, high=-16, low=48
	halves	\codes
	sum_high \x, \high
	sum_low	\x, \low
	.endm

// ------------------------------------------------------------------------------------------------- 128 columns, two groups
//
// 29 instructions a row: 16 for the blocks, 6 for each group, 1 more to load two scales at once, 2 for the row, but that the
// scale is loaded for both. The loop makes row r's blocks and finishes row r - 1. The first row's blocks come before it,
// the last row is finished behind it.

	.global	chiplm_pie_rows4_c128g64
	.align	4
chiplm_pie_rows4_c128g64:
	entry	a1, 32
	constants
	wfr	f15, a7
	addi	a4, a4, 16
	first_x	a4
	ee.vld.128.ip q2, a2, 16
	addi	a6, a6, -1
	block	a2, a4
	block	a2, a4
	ee.ldf.64.ip f5, f4, a3, 8
	rur.accx_0 a9
	ee.zero.accx
	block	a2, a4, -16, -80	// the next codes of x are those of the next row's start
	float.s	f0, a9, 4
	block	a2, a4
	mul.s	f3, f0, f4
	loopnez	a6, .Lc128g64
	halves	a2
	rur.accx_0 a8		// the second group of the row before
	ee.zero.accx
	sum_high a4
	float.s	f0, a8, 4
	add.s	f2, f14, f3
	sum_low	a4
	mul.s	f1, f0, f5
	halves	a2
	sum_high a4
	add.s	f2, f2, f1
	sum_low	a4
	ee.ldf.64.ip f5, f4, a3, 8
	halves	a2
	rur.accx_0 a9		// the first group of this row
	ee.zero.accx
	mul.s	f2, f2, f15
	sum_high a4
	float.s	f0, a9, 4
	sum_low	a4, -80
	mul.s	f3, f0, f4
	halves	a2
	ssip	f2, a5, 4
	sum_high a4
	sum_low	a4
.Lc128g64:
	add.s	f2, f14, f3
	rur.accx_0 a8
	float.s	f0, a8, 4
	mul.s	f1, f0, f5
	add.s	f2, f2, f1
	mul.s	f2, f2, f15
	ssi	f2, a5, 0
	retw

// The same for listed rows, 36 instructions each: 7 more to find codes, scales and place of a row. The weights that the last
// block of a row loads are the next row's first, so the number of the next row is read ahead; behind the last one stands
// that one again.
//
// a2 codes, a3 scales, a4 x, a5 y, a6 place in the list, a7 its last place, a8 and a9 sums, a10 codes of the row, a11 its
// scales, a12 its number, a13 8 times the number, a14 rows left, a15 where the row before goes to.

	.global	chiplm_pie_listed4_c128g64
	.align	4
chiplm_pie_listed4_c128g64:
	entry	a1, 32
	constants
	l32i	a14, a7, 0
	l32i	a8, a7, 4
	wfr	f15, a8
	addi	a14, a14, -1
	addx4	a7, a14, a6
	l32i	a12, a6, 0
	addi	a4, a4, 16
	first_x	a4
	slli	a13, a12, 3
	addx8	a10, a13, a2
	add	a11, a13, a3
	addx4	a15, a12, a5
	ee.vld.128.ip q2, a10, 16
	addi	a6, a6, 4
	block	a10, a4
	block	a10, a4
	minu	a6, a6, a7
	l32i	a12, a6, 0
	ee.ldf.64.ip f5, f4, a11, 0
	slli	a13, a12, 3
	rur.accx_0 a9
	ee.zero.accx
	block	a10, a4, -16, -80
	float.s	f0, a9, 4
	addx8	a10, a13, a2
	block	a10, a4
	mul.s	f3, f0, f4
	loopnez	a14, .Llisted
	halves	a10
	rur.accx_0 a8
	ee.zero.accx
	sum_high a4
	float.s	f0, a8, 4
	add.s	f2, f14, f3
	sum_low	a4
	mul.s	f1, f0, f5
	add	a11, a13, a3
	halves	a10
	sum_high a4
	add.s	f2, f2, f1
	addi	a6, a6, 4
	sum_low	a4
	ee.ldf.64.ip f5, f4, a11, 0
	halves	a10
	rur.accx_0 a9
	ee.zero.accx
	mul.s	f2, f2, f15
	minu	a6, a6, a7
	sum_high a4
	float.s	f0, a9, 4
	ssi	f2, a15, 0
	addx4	a15, a12, a5
	l32i	a12, a6, 0
	sum_low	a4, -80
	mul.s	f3, f0, f4
	slli	a13, a12, 3
	addx8	a10, a13, a2
	halves	a10
	sum_high a4
	sum_low	a4
.Llisted:
	add.s	f2, f14, f3
	rur.accx_0 a8
	float.s	f0, a8, 4
	mul.s	f1, f0, f5
	add.s	f2, f2, f1
	mul.s	f2, f2, f15
	ssi	f2, a15, 0
	retw

// -------------------------------------------------------------------------------------------------- 128 columns, one group
//
// 24 instructions a row, in the same order of things.

	.global	chiplm_pie_rows4_c128g128
	.align	4
chiplm_pie_rows4_c128g128:
	entry	a1, 32
	constants
	wfr	f15, a7
	addi	a4, a4, 16
	first_x	a4
	ee.vld.128.ip q2, a2, 16
	addi	a6, a6, -1
	lsip	f4, a3, 4
	block	a2, a4
	block	a2, a4
	block	a2, a4, -16, -80
	block	a2, a4
	loopnez	a6, .Lc128g128
	halves	a2
	rur.accx_0 a8
	ee.zero.accx
	sum_high a4
	float.s	f0, a8, 4
	sum_low	a4
	mul.s	f1, f0, f4
	halves	a2
	sum_high a4
	add.s	f2, f14, f1
	sum_low	a4
	lsip	f4, a3, 4
	halves	a2
	mul.s	f2, f2, f15
	sum_high a4
	sum_low	a4, -80
	halves	a2
	ssip	f2, a5, 4
	sum_high a4
	sum_low	a4
.Lc128g128:
	nop			// the sum can be read after one instruction
	rur.accx_0 a8
	float.s	f0, a8, 4
	mul.s	f1, f0, f4
	add.s	f2, f14, f1
	mul.s	f2, f2, f15
	ssi	f2, a5, 0
	retw

// --------------------------------------------------------------------------------------------------- 64 columns, one group
//
// 16 instructions a row, fewer than the 17 cycles that its sum takes on the way to memory. So the loop makes row r's blocks,
// turns the sum of row r - 1 into its result, and stores row r - 2. Two rows come before the loop.

	.macro	finish_before store=0
	ee.andq	q3, q2, q0
	rur.accx_0 a8
	ee.vmul.s8.ld.incp q2, a2, q4, q2, q1
	.if	\store
	ssip	f3, a5, 4
	.endif
	ee.zero.accx
	float.s	f0, a8, 4
	sum_high a4
	mul.s	f1, f0, f4
	sum_low	a4, -16
	lsip	f4, a3, 4
	ee.andq	q3, q2, q0
	add.s	f2, f14, f1
	ee.vmul.s8.ld.incp q2, a2, q4, q2, q1
	sum_high a4
	sum_low	a4
	mul.s	f3, f2, f15
	.endm

	.global	chiplm_pie_rows4_c64g64
	.align	4
chiplm_pie_rows4_c64g64:
	entry	a1, 32
	constants
	wfr	f15, a7
	addi	a4, a4, 16
	first_x	a4
	ee.vld.128.ip q2, a2, 16
	lsip	f4, a3, 4
	addi	a6, a6, -1
	block	a2, a4, -16, -16
	block	a2, a4
	beqz	a6, .Lc64g64_last
	finish_before
	addi	a6, a6, -1
	loopnez	a6, .Lc64g64
	finish_before 1
.Lc64g64:
	ssip	f3, a5, 4
.Lc64g64_last:
	nop
	rur.accx_0 a8
	float.s	f0, a8, 4
	mul.s	f1, f0, f4
	add.s	f2, f14, f1
	mul.s	f2, f2, f15
	ssi	f2, a5, 0
	retw

// --------------------------------------------------------------------------------------------------------------- any shape
//
// A loop over the whole groups of a row for each of the three lengths of a group, then its rest: the last group, when it is
// short, or a row with one scale. Each group finishes the one before: sum to float, its product with the scale, and the sum
// with the product before that. A row starts as if two groups had gone before whose sum, scale and product are 0.
//
// a2 codes, a3 scales, a4 x, a5 y, a6 rows, a7 blocks of a group, a8 sum, a9 place in x, a10 whole groups, a11 blocks of the
// rest, a12 scratch.

	.macro	finish_group
	halves	a2
	rur.accx_0 a8
	ee.zero.accx
	sum_high a9
	float.s	f0, a8, 4
	sum_low	a9
	add.s	f2, f2, f1
	mul.s	f1, f0, f4
	lsip	f4, a3, 4
	.endm

	.global	chiplm_pie_rows4
	.align	4
chiplm_pie_rows4:
	entry	a1, 32
	constants
	mov	a9, a6
	l32i	a8, a9, 16		// scale
	wfr	f15, a8
	l32i	a6, a9, 0		// rows
	l32i	a11, a9, 4		// blocks
	l32i	a7, a9, 8		// columns of a group
	movi	a10, 0
	srli	a7, a7, 5
	beqz	a7, .Lset_up
	addi	a12, a7, -1
	and	a12, a11, a12
	srli	a10, a7, 1		// 1, 2 and 4 blocks are 0, 1 and 2 bits
	ssr	a10
	srl	a10, a11
	mov	a11, a12
	ssai	0
.Lset_up:
	ee.vld.128.ip q2, a2, 16
	addi	a9, a4, 16
	first_x	a9
	mov.s	f1, f14
	mov.s	f4, f14
.Lrow:
	mov.s	f2, f14
	beqi	a7, 2, .Lgroups_of_64
	beqi	a7, 4, .Lgroups_of_128
	loopnez	a10, .Lgroups_of_32
	finish_group
.Lgroups_of_32:
	j	.Lrest
.Lgroups_of_64:
	loopnez	a10, .Lend_64
	finish_group
	block	a2, a9
.Lend_64:
	j	.Lrest
.Lgroups_of_128:
	loopnez	a10, .Lrest
	finish_group
	block	a2, a9
	block	a2, a9
	block	a2, a9
.Lrest:
	beqz	a11, .Lfinish_row
	finish_group
	addi	a12, a11, -1
	loopnez	a12, .Lfinish_row
	block	a2, a9
.Lfinish_row:
	add.s	f2, f2, f1
	rur.accx_0 a8
	ee.zero.accx
	float.s	f0, a8, 4
	addi	a6, a6, -1
	mul.s	f1, f0, f4
	addi	a9, a4, 16		// the next row starts where this one waits
	first_x	a9
	add.s	f2, f2, f1
	mov.s	f1, f14			// f4 may stay: it meets a sum of 0
	mul.s	f2, f2, f15
	ssip	f2, a5, 4
	bnez	a6, .Lrow
	retw
