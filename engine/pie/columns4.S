// The transposed product of 4-bit weights: sums of some columns, each times its code of x. pie.h says what it takes.
//
// A block of 16 bytes is 32 rows of a column: row i in the low half of byte i, row i + 16 in the high half. QACC has 16
// lanes of 20 bits, so a block of rows is summed in two passes over the columns: its low halves, times 16 (the byte times 16,
// of which the unit keeps 8 bits), then its high halves (the byte shifted right by 4 with its sign). 32 columns times
// 16 * 7 * 127 stay below 2^19. The first pass finds the columns and leaves their blocks one behind the other in scratch;
// the second then loads a block beside each of its instructions:
//
//     vmul   half <- weights * 16 or 1, shifted     and loads the next block
//     vmulas QACC += half * x                       and loads the next code of x into all lanes
//
// Columns are taken two by two, so that each instruction finds done what it waits for. An odd last one is followed by itself
// with a code of x of 0.
//
// Scratch: 48 bytes of codes of x (at most 32, one more when that makes an even number, 2 that are loaded ahead), 34 places of
// columns, and from 192 on 34 blocks.
//
// a2 codes, then place of x; a3 list, then pairs of columns; a4 x, then places of columns; a5 scratch, a6 sums or y, a7 blocks
// left, a8 count and a9 stride at first, a15 offset of the block. q0 16 and q1 1 in all bytes, q2 and q3 weights, q4 and q5 their halves, q6 and q7 codes of x.

	.section .iram1, "ax"

// Writes the sums of 16 rows: lanes \from to \from + 7 twice, of QACC_L and QACC_H. Lane i lies in bits 20i to 20i + 19 of the
// five words; each is moved to the top of a word, and down by \down with its sign.
	.macro	write_lanes half, down
	rur.qacc_\half\()_0 a8
	rur.qacc_\half\()_1 a9
	rur.qacc_\half\()_2 a10
	rur.qacc_\half\()_3 a11
	rur.qacc_\half\()_4 a12
	slli	a13, a8, 12
	srai	a13, a13, \down
	s32i	a13, a6, 0
	ssai	8
	src	a13, a9, a8
	srai	a13, a13, \down
	s32i	a13, a6, 4
	slli	a13, a9, 4
	srai	a13, a13, \down
	s32i	a13, a6, 8
	ssai	16
	src	a13, a10, a9
	srai	a13, a13, \down
	s32i	a13, a6, 12
	ssai	4
	src	a13, a11, a10
	srai	a13, a13, \down
	s32i	a13, a6, 16
	slli	a13, a11, 8
	srai	a13, a13, \down
	s32i	a13, a6, 20
	ssai	12
	src	a13, a12, a11
	srai	a13, a13, \down
	s32i	a13, a6, 24
	srai	a13, a12, \down
	s32i	a13, a6, 28
	addi	a6, a6, 32
	.endm

// Adds the sums of 8 rows, each times its scale, to y. a4 is the place of the scales. What lies between instructions that
// wait for each other is the work on the four rows behind.
	.macro	add_lanes half, down
	rur.qacc_\half\()_0 a8
	rur.qacc_\half\()_1 a9
	rur.qacc_\half\()_2 a10
	rur.qacc_\half\()_3 a11
	rur.qacc_\half\()_4 a12
	slli	a13, a8, 12
	ee.ldf.128.ip f7, f6, f5, f4, a4, 16
	ssai	8
	src	a14, a9, a8
	srai	a13, a13, \down
	srai	a14, a14, \down
	float.s	f0, a13, 0
	float.s	f1, a14, 0
	slli	a13, a9, 4
	ssai	16
	src	a14, a10, a9
	srai	a13, a13, \down
	srai	a14, a14, \down
	float.s	f2, a13, 0
	float.s	f3, a14, 0
	mul.s	f0, f0, f4
	mul.s	f1, f1, f5
	mul.s	f2, f2, f6
	mul.s	f3, f3, f7
	ee.ldf.128.ip f11, f10, f9, f8, a6, 0
	ssai	4
	src	a13, a11, a10
	ee.ldf.128.ip f7, f6, f5, f4, a4, 16
	add.s	f8, f8, f0
	add.s	f9, f9, f1
	add.s	f10, f10, f2
	add.s	f11, f11, f3
	slli	a14, a11, 8
	srai	a13, a13, \down
	srai	a14, a14, \down
	float.s	f0, a13, 0
	float.s	f1, a14, 0
	ssai	12
	src	a13, a12, a11
	srai	a14, a12, \down
	srai	a13, a13, \down
	float.s	f3, a14, 0
	float.s	f2, a13, 0
	ee.stf.128.ip f11, f10, f9, f8, a6, 16
	mul.s	f0, f0, f4
	mul.s	f1, f1, f5
	ee.ldf.128.ip f11, f10, f9, f8, a6, 0
	mul.s	f2, f2, f6
	mul.s	f3, f3, f7
	add.s	f8, f8, f0
	add.s	f9, f9, f1
	add.s	f10, f10, f2
	add.s	f11, f11, f3
	.endm
	.macro	store_lanes
	ee.stf.128.ip f11, f10, f9, f8, a6, 16
	.endm

// Finds the listed columns, their codes of x, and what makes their number even and is loaded ahead. Sets the constants.
	.macro	find_columns
	mov	a10, a5			// codes of x
	addi	a11, a5, 48		// places
	loopnez	a8, .Lfound\@
	l32i	a12, a3, 0
	addi	a3, a3, 4
	mull	a13, a12, a9
	add	a14, a12, a4
	l8ui	a14, a14, 0
	add	a13, a13, a2
	s32i	a13, a11, 0
	addi	a11, a11, 4
	s8i	a14, a10, 0
	addi	a10, a10, 1
.Lfound\@:
	s32i	a13, a11, 0		// an odd last one, and two that are loaded ahead
	s32i	a13, a11, 4
	s32i	a13, a11, 8
	movi	a14, 0
	s8i	a14, a10, 0
	s8i	a14, a10, 1
	s8i	a14, a10, 2
	addi	a3, a8, 1
	srli	a3, a3, 1
	movi	a8, 0x101
	slli	a9, a8, 16
	or	a8, a8, a9
	slli	a9, a8, 4
	ee.movi.32.q q0, a9, 0
	ee.movi.32.q q0, a9, 1
	ee.movi.32.q q0, a9, 2
	ee.movi.32.q q0, a9, 3
	ee.movi.32.q q1, a8, 0
	ee.movi.32.q q1, a8, 1
	ee.movi.32.q q1, a8, 2
	ee.movi.32.q q1, a8, 3
	.endm

// The two passes over the columns of a block of rows.
	.macro	low_pass
	ssai	0
	ee.zero.qacc
	mov	a2, a5
	addi	a4, a5, 48
	movi	a14, 192
	add	a14, a14, a5		// the blocks
	l32i	a8, a4, 0
	l32i	a9, a4, 4
	ee.vldbc.8.ip q6, a2, 1
	add	a8, a8, a15
	ee.vldbc.8.ip q7, a2, 1
	add	a9, a9, a15
	ee.vld.128.ip q2, a8, 0
	ee.vld.128.ip q3, a9, 0
	addi	a4, a4, 8
	loopnez	a3, .Llow\@
	ee.vmul.s8 q4, q2, q0
	l32i	a8, a4, 0
	ee.vmul.s8 q5, q3, q0
	l32i	a9, a4, 4
	ee.vst.128.ip q2, a14, 16
	ee.vst.128.ip q3, a14, 16
	add	a8, a8, a15
	ee.vmulas.s8.qacc.ldbc.incp q6, a2, q4, q6
	add	a9, a9, a15
	ee.vld.128.ip q2, a8, 0
	ee.vmulas.s8.qacc.ldbc.incp q7, a2, q5, q7
	ee.vld.128.ip q3, a9, 0
	addi	a4, a4, 8
.Llow\@:
	.endm
	.macro	high_pass
	ssai	4
	ee.zero.qacc
	mov	a2, a5
	movi	a14, 192
	add	a14, a14, a5
	ee.vldbc.8.ip q6, a2, 1
	ee.vldbc.8.ip q7, a2, 1
	ee.vld.128.ip q2, a14, 16
	ee.vld.128.ip q3, a14, 16
	loopnez	a3, .Lhigh\@
	ee.vmul.s8.ld.incp q2, a14, q4, q2, q1
	ee.vmul.s8.ld.incp q3, a14, q5, q3, q1
	ee.vmulas.s8.qacc.ldbc.incp q6, a2, q4, q6
	ee.vmulas.s8.qacc.ldbc.incp q7, a2, q5, q7
.Lhigh\@:
	.endm

	.global	chiplm_pie_columns4
	.align	4
chiplm_pie_columns4:
	entry	a1, 32
	l32i	a8, a7, 0		// columns
	l32i	a9, a7, 8		// stride
	l32i	a7, a7, 4		// blocks
	find_columns
	movi	a15, 0
.Lblock:
	low_pass
	write_lanes l, 16
	write_lanes h, 16
	high_pass
	write_lanes l, 12
	write_lanes h, 12
	addi	a15, a15, 16
	addi	a7, a7, -1
	beqz	a7, .Ldone
	j	.Lblock
.Ldone:
	retw

// The same, but that the sums are added to y at once. a5 scales, a6 y and a7 work at first. The place of the scales waits in
// the last word of the codes of x.

	.global	chiplm_pie_add_columns4
	.align	4
chiplm_pie_add_columns4:
	entry	a1, 32
	mov	a12, a5
	addi	a5, a7, 16		// scratch
	s32i	a12, a5, 44
	l32i	a8, a7, 0		// columns
	l32i	a9, a7, 8		// stride
	l32i	a7, a7, 4		// blocks
	find_columns
	movi	a15, 0
.Ladd_block:
	low_pass
	l32i	a4, a5, 44
	add_lanes l, 16
	store_lanes
	add_lanes h, 16
	s32i	a4, a5, 44
	store_lanes
	high_pass
	l32i	a4, a5, 44
	add_lanes l, 12
	store_lanes
	add_lanes h, 12
	s32i	a4, a5, 44
	addi	a15, a15, 16
	addi	a7, a7, -1
	store_lanes
	beqz	a7, .Ladded
	j	.Ladd_block
.Ladded:
	retw
