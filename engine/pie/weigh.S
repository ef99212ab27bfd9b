/* chiplm_pie_weigh: the sum of n weights in eight partial sums, which stay in f0 to f7; and weight times scale of each
 * position, in place, with zeros up to a multiple of eight. Returns the bits of the sum.
 *
 * Eight a turn, four at a time: load, 4 scales, 4 products, 4 sums, store. Scales of positions start at any multiple of four
 * bytes (a context may be odd), so these are loaded one by one. 29 cycles a turn, 3.6 a position. */

	.section .iram1,"ax"
	.align	4
	.global	chiplm_pie_weigh
	.type	chiplm_pie_weigh, @function
chiplm_pie_weigh:
	entry	a1, 32
	// a2 weights, a3 scales, a4 n
	const.s	f0, 0
	const.s	f1, 0
	const.s	f2, 0
	const.s	f3, 0
	const.s	f4, 0
	const.s	f5, 0
	const.s	f6, 0
	const.s	f7, 0
	srli	a5, a4, 3
	extui	a6, a4, 0, 3
	loopnez	a5, .Leights
	ee.ldf.128.ip	f11, f10, f9, f8, a2, 0
	lsi	f12, a3, 0
	lsi	f13, a3, 4
	lsi	f14, a3, 8
	lsi	f15, a3, 12
	mul.s	f12, f8, f12
	mul.s	f13, f9, f13
	mul.s	f14, f10, f14
	mul.s	f15, f11, f15
	add.s	f0, f0, f8
	add.s	f1, f1, f9
	add.s	f2, f2, f10
	add.s	f3, f3, f11
	ee.stf.128.ip	f15, f14, f13, f12, a2, 16
	ee.ldf.128.ip	f11, f10, f9, f8, a2, 0
	lsi	f12, a3, 16
	lsi	f13, a3, 20
	lsi	f14, a3, 24
	lsi	f15, a3, 28
	mul.s	f12, f8, f12
	mul.s	f13, f9, f13
	mul.s	f14, f10, f14
	mul.s	f15, f11, f15
	add.s	f4, f4, f8
	add.s	f5, f5, f9
	add.s	f6, f6, f10
	add.s	f7, f7, f11
	ee.stf.128.ip	f15, f14, f13, f12, a2, 16
	addi	a3, a3, 32
.Leights:
	beqz	a6, .Ljoin
	// What is left: one value for each of the first partial sums.
	movi	a7, 8
	sub	a7, a7, a6			// zeros after them
	lsi	f8, a2, 0
	lsi	f9, a3, 0
	add.s	f0, f0, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 1, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 4
	add.s	f1, f1, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 2, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 8
	add.s	f2, f2, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 3, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 12
	add.s	f3, f3, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 4, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 16
	add.s	f4, f4, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 5, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 20
	add.s	f5, f5, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
	beqi	a6, 6, .Lzeros
	lsi	f8, a2, 0
	lsi	f9, a3, 24
	add.s	f6, f6, f8
	mul.s	f9, f8, f9
	ssi	f9, a2, 0
	addi	a2, a2, 4
.Lzeros:
	movi	a8, 0
	loopnez	a7, .Ljoin
	s32i	a8, a2, 0
	addi	a2, a2, 4
.Ljoin:						// ((p0+p4) + (p2+p6)) + ((p1+p5) + (p3+p7))
	add.s	f0, f0, f4
	add.s	f2, f2, f6
	add.s	f1, f1, f5
	add.s	f3, f3, f7
	add.s	f0, f0, f2
	add.s	f1, f1, f3
	add.s	f0, f0, f1
	rfr	a2, f0
	retw.n
