/* chiplm_pie_floats4: blocks of 32 weights of 4 bits (docs/image.md) as floats, code * scale.
 *
 * Column j of a block is the low half of byte j, column j + 16 the high half. A word holds four columns of either; each
 * is moved to the top of a register, which drops its neighbours, and down again with its sign. A word of eight weights takes
 * 15 shifts, 8 conversions, 8 products: 4.5 cycles a weight. */

	.section .iram1,"ax"

	.align	4
	.global	chiplm_pie_floats4
	.type	chiplm_pie_floats4, @function
chiplm_pie_floats4:
	entry	a1, 32
	// a2 codes, a3 blocks, a4 scale, a5 y
	wfr	f15, a4
.Lblock:
	addi	a6, a5, 64			// the second half of the block's columns
	movi	a7, 4
	loopnez	a7, .Lwords
	l32i	a8, a2, 0
	addi	a2, a2, 4
	slli	a9, a8, 28
	slli	a10, a8, 20
	slli	a11, a8, 12
	slli	a12, a8, 4
	srai	a9, a9, 28
	srai	a10, a10, 28
	srai	a11, a11, 28
	srai	a12, a12, 28
	float.s	f0, a9, 0
	float.s	f1, a10, 0
	float.s	f2, a11, 0
	float.s	f3, a12, 0
	slli	a9, a8, 24
	slli	a10, a8, 16
	slli	a11, a8, 8
	srai	a9, a9, 28
	srai	a10, a10, 28
	srai	a11, a11, 28
	srai	a12, a8, 28
	mul.s	f0, f0, f15
	mul.s	f1, f1, f15
	mul.s	f2, f2, f15
	mul.s	f3, f3, f15
	float.s	f4, a9, 0
	float.s	f5, a10, 0
	float.s	f6, a11, 0
	float.s	f7, a12, 0
	mul.s	f4, f4, f15
	mul.s	f5, f5, f15
	mul.s	f6, f6, f15
	mul.s	f7, f7, f15
	ee.stf.128.ip	f3, f2, f1, f0, a5, 16
	ee.stf.128.ip	f7, f6, f5, f4, a6, 16
.Lwords:
	addi	a5, a5, 64
	addi	a3, a3, -1
	bnez	a3, .Lblock
	retw.n
