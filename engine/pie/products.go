package pie

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Bytes behind the last code, and behind the codes of an input, that loads may run into.
const (
	pastCodes = 32
	pastInput = 64
)

// mostColumns is what an image may have at most.
const mostColumns = 131072

// combo's matrices in bits and columns of a group: the shapes of tables and benchmarks.
func comboShapes(bits, group, columns int) []Shape {
	rows := map[int][]int{128: {384, 128, 320, 64, 4096}, 64: {128}}[columns]
	var shapes []Shape
	for _, r := range rows {
		shapes = append(shapes, Shape{Rows: r, Columns: columns, Bits: bits, Group: group})
	}
	return shapes
}

func products() []Kernel {
	weights := func(s Shape) int { return s.Rows * s.Columns }
	kernels := []Kernel{
		{
			Symbol: "chiplm_pie_rows4_c128g64", File: "rows4.S", About: "rows of 128 weights of 4 bits, in groups of 64",
			Shapes: comboShapes(4, 64, 128), Any: anyRows(4, 128, 64), Make: makeFixedRows, Work: weights,
		},
		{
			Symbol: "chiplm_pie_rows4_c128g128", File: "rows4.S", About: "rows of 128 weights of 4 bits, one scale each",
			Shapes: comboShapes(4, 0, 128), Any: anyRows(4, 128, 0), Make: makeFixedRows, Work: weights,
		},
		{
			Symbol: "chiplm_pie_rows4_c64g64", File: "rows4.S", About: "rows of 64 weights of 4 bits, one scale each",
			Shapes: comboShapes(4, 64, 64), Any: anyRows(4, 64, 64), Make: makeFixedRows, Work: weights,
		},
		{
			Symbol: "chiplm_pie_listed4_c128g64", File: "rows4.S", About: "listed rows of 128 weights of 4 bits, in groups of 64",
			Shapes: []Shape{{Rows: 320, Columns: 128, Bits: 4, Group: 64, Listed: 64}},
			Any: func(r *rand.Rand) Shape {
				s := anyRows(4, 128, 64)(r)
				s.Listed = 1 + r.IntN(s.Rows)
				return s
			},
			Make: makeListedRows, Work: func(s Shape) int { return s.Listed * s.Columns },
		},
	}
	for _, bits := range []int{4, 8, 2} {
		k := Kernel{
			Symbol: map[int]string{2: "chiplm_pie_rows2", 4: "chiplm_pie_rows4", 8: "chiplm_pie_rows8"}[bits],
			File:   map[int]string{2: "rows2.S", 4: "rows4.S", 8: "rows8.S"}[bits],
			About:  map[int]string{2: "rows of weights of 2 bits", 4: "rows of weights of 4 bits", 8: "rows of weights of 8 bits"}[bits],
			Any:    anyRows(bits, 0, -1), Make: makeRows, Work: weights,
		}
		for _, group := range []int{32, 64, 128, 0} {
			k.Shapes = append(k.Shapes, Shape{Rows: 128, Columns: 128, Bits: bits, Group: group}, Shape{Rows: 128, Columns: 320, Bits: bits, Group: group})
		}
		kernels = append(kernels, k)
	}
	return append(kernels,
		Kernel{
			Symbol: "chiplm_pie_columns4", File: "columns4.S", About: "sums of listed columns, 4 bits, transposed",
			Shapes: []Shape{{Rows: 128, Columns: 320, Bits: 4, Listed: 13}, {Rows: 128, Columns: 320, Bits: 4, Listed: 32}},
			Any: func(r *rand.Rand) Shape {
				s := Shape{Rows: 1 + r.IntN([]int{200, 200, 200, 700}[r.IntN(4)]), Columns: 1 + r.IntN(100), Bits: 4}
				s.Listed = 1 + r.IntN(min(s.Columns, ListedColumns))
				return s
			},
			Make: makeColumns, Work: func(s Shape) int { return s.Listed * s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_add_columns4", File: "columns4.S", About: "listed columns of a group, 4 bits, transposed",
			Shapes: []Shape{{Rows: 128, Columns: 320, Bits: 4, Listed: 13}, {Rows: 128, Columns: 320, Bits: 4, Listed: 32}},
			Any: func(r *rand.Rand) Shape {
				s := Shape{Rows: 32 * (1 + r.IntN(5)), Columns: 1 + r.IntN(100), Bits: 4}
				s.Listed = 1 + r.IntN(min(s.Columns, ListedColumns))
				return s
			},
			Make: makeAddColumns, Work: func(s Shape) int { return s.Listed * s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_add_sums", File: "scales.S", About: "one vector of sums added to another",
			Shapes: []Shape{{Rows: 128}}, Any: anyLength, Make: makeAddSums, Work: func(s Shape) int { return s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_add_group", File: "scales.S", About: "sums of a group times the scales of the rows, added",
			Shapes: []Shape{{Rows: 128}}, Any: anyLength, Make: makeAddGroup, Work: func(s Shape) int { return s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_scale", File: "scales.S", About: "results times the scale of the input",
			Shapes: []Shape{{Rows: 128}}, Any: anyLength, Make: makeScale, Work: func(s Shape) int { return s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_widen", File: "scales.S", About: "float16 scales to floats",
			Shapes: []Shape{{Rows: 128}}, Any: anyLength, Make: makeWiden, Work: func(s Shape) int { return s.Rows },
		},
		Kernel{
			Symbol: "chiplm_pie_bounds", File: "bounds.S", About: "bounds of rows of the head",
			Shapes: []Shape{{Rows: 16, Columns: 32, Bits: 4}, {Rows: 1, Columns: 32, Bits: 4}},
			Any:    func(r *rand.Rand) Shape { return Shape{Rows: 1 + r.IntN(40), Columns: 32, Bits: 4} },
			Make:   makeBounds, Work: func(s Shape) int { return s.Rows },
		},
	)
}

// anyRows draws matrices. columns 0: any number; group -1: any.
func anyRows(bits, columns, group int) func(r *rand.Rand) Shape {
	return func(r *rand.Rand) Shape {
		s := Shape{Rows: 1 + r.IntN(9), Columns: columns, Bits: bits, Group: group}
		if columns == 0 {
			s.Columns = 1 + r.IntN([]int{40, 150, 700}[r.IntN(3)])
		}
		if group < 0 {
			s.Group = []int{0, 32, 64, 128}[r.IntN(4)]
		}
		if columns == 0 && group < 0 && r.IntN(300) == 0 {
			s = Shape{Rows: 1, Columns: mostColumns, Bits: bits} // the largest sums that there are
		}
		return s
	}
}

func anyLength(r *rand.Rand) Shape { return Shape{Rows: 1 + r.IntN(40)} }

// blocks are those of a row of so many columns.
func (s Shape) blocks(columns int) int { return (columns*s.Bits + 127) / 128 }

func (s Shape) groups() int {
	if s.Group == 0 {
		return 1
	}
	return (s.Columns + s.Group - 1) / s.Group
}

// code draws a code up to most.
func code(most, i int, v Values, r *rand.Rand) int {
	switch v {
	case AllLeast:
		return -most
	case AllMost, Huge:
		return most
	case Alternating:
		return most * (1 - 2*(i%2))
	case AllZero:
		return 0
	}
	return r.IntN(2*most+1) - most
}

// scale draws a scale of weights or of an input: one in eight is 0.
func scale(v Values, r *rand.Rand) uint32 {
	switch {
	case v == AllZero, v == Random && r.IntN(8) == 0:
		return 0
	case v == Tiny:
		return uint32(1+r.IntN(30)) << 23 // 2^-126 and up
	case v == Huge:
		return uint32(200+r.IntN(55)) << 23
	}
	return math.Float32bits(float32(math.Exp(6 * r.NormFloat64())))
}

// inputScale is that of an input, of which sums with scales that are tiny must not make subnormal numbers: chips may not have
// them.
func inputScale(v Values, r *rand.Rand) uint32 {
	if v == Tiny {
		return math.Float32bits(1)
	}
	return scale(v, r)
}

// packRow writes codes of so many columns as docs/image.md says, zeros from their end to whole blocks.
func packRow(to []byte, bits, columns int, v Values, r *rand.Rand) {
	per := 128 / bits
	for i := range columns {
		c := code(1<<(bits-1)-1, i, v, r)
		to[i/per*16+i%16] |= byte(c) & byte(1<<bits-1) << (i % per / 16 * bits)
	}
}

// fill has outputs hold what no kernel writes by chance, and memory that is read ahead what would do harm.
func fill(b []byte, r *rand.Rand) []byte {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// matrix makes the arguments that products by rows begin with.
func matrix(s Shape, v Values, r *rand.Rand) []Argument {
	blocks := s.blocks(s.Columns)
	codes := fill(make([]byte, s.Rows*blocks*16+pastCodes), r)
	clear(codes[:s.Rows*blocks*16])
	for i := range s.Rows {
		packRow(codes[i*blocks*16:], s.Bits, s.Columns, v, r)
	}
	var scales []byte
	for range s.Rows * s.groups() {
		scales = binary.LittleEndian.AppendUint32(scales, scale(v, r))
	}
	whole := blocks * 128 / s.Bits
	x := fill(make([]byte, whole+pastInput), r)
	clear(x[:whole])
	for i := range s.Columns {
		x[i] = byte(code(127, i/2, v, r))
	}
	return []Argument{
		{Name: "codes", Buffer: codes, Access: Read},
		{Name: "scales", Buffer: scales, Access: Read},
		{Name: "x", Buffer: x, Access: Read},
		{Name: "y", Buffer: fill(make([]byte, 4*s.Rows), r), Access: Write},
	}
}

func makeRows(s Shape, v Values, r *rand.Rand) []Argument {
	group, groups := s.Group, s.groups()
	shape := words(uint32(s.Rows), uint32(s.blocks(s.Columns)), uint32(group), uint32(groups), inputScale(v, r))
	return append(matrix(s, v, r), Argument{Name: "shape", Buffer: shape, Access: Read})
}

func makeFixedRows(s Shape, v Values, r *rand.Rand) []Argument {
	return append(matrix(s, v, r), Argument{Name: "rows", Word: uint32(s.Rows)}, Argument{Name: "scale", Word: inputScale(v, r)})
}

func makeListedRows(s Shape, v Values, r *rand.Rand) []Argument {
	list := make([]uint32, s.Listed)
	for i, row := range r.Perm(s.Rows)[:s.Listed] {
		list[i] = uint32(row)
	}
	args := append(matrix(s, v, r), Argument{Name: "list", Buffer: words(list...), Access: Read},
		Argument{Name: "shape", Buffer: words(uint32(s.Listed), inputScale(v, r)), Access: Read})
	args[3].Access = Read | Write // rows that no list names keep what they hold
	return args
}

// ListedColumns is how many columns a call of a transposed product takes: CHIPLM_PIE_COLUMNS in pie.h.
const ListedColumns = 32

// columnsScratch is CHIPLM_PIE_COLUMNS_SCRATCH in pie.h.
const columnsScratch = 736

func makeColumns(s Shape, v Values, r *rand.Rand) []Argument {
	blocks := s.blocks(s.Rows)
	codes := make([]byte, s.Columns*blocks*16)
	for c := range s.Columns {
		packRow(codes[c*blocks*16:], s.Bits, s.Rows, v, r)
	}
	x := make([]byte, s.Columns)
	for i := range x {
		x[i] = byte(code(127, i/2, v, r))
	}
	var list []uint32
	for c := range s.Columns { // ascending, so many of them
		if r.IntN(s.Columns-c) < s.Listed-len(list) {
			list = append(list, uint32(c))
		}
	}
	return []Argument{
		{Name: "codes", Buffer: codes, Access: Read},
		{Name: "list", Buffer: words(list...), Access: Read},
		{Name: "x", Buffer: x, Access: Read},
		{Name: "scratch", Buffer: fill(make([]byte, columnsScratch), r), Access: Read | Write},
		{Name: "sums", Buffer: fill(make([]byte, 4*32*blocks), r), Access: Write},
		{Name: "shape", Buffer: words(uint32(s.Listed), uint32(blocks), uint32(16*blocks)), Access: Read},
	}
}

func makeAddColumns(s Shape, v Values, r *rand.Rand) []Argument {
	args := makeColumns(s, v, r)
	var scales []byte
	for range s.Rows {
		scales = binary.LittleEndian.AppendUint32(scales, scale(v, r))
	}
	work := append(words(uint32(s.Listed), uint32(s.blocks(s.Rows)), uint32(16*s.blocks(s.Rows)), 0), args[3].Buffer...)
	return append(args[:3], Argument{Name: "scales", Buffer: scales, Access: Read},
		Argument{Name: "y", Buffer: floats(s.Rows, v, r), Access: Read | Write},
		Argument{Name: "scratch", Buffer: work, Access: Read | Write})
}

// sums draws sums of products; two of them still fit 32 bits.
func sums(n int, v Values, r *rand.Rand) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(code(1<<30-1, i, v, r)>>r.IntN(30)))
	}
	return b
}

func makeAddSums(s Shape, v Values, r *rand.Rand) []Argument {
	n := (s.Rows + 3) / 4 * 4
	return []Argument{
		{Name: "sums", Buffer: sums(n, v, r), Access: Read | Write},
		{Name: "more", Buffer: sums(n, v, r), Access: Read},
		{Name: "n", Word: uint32(n)},
	}
}

// floats draws numbers of either sign.
func floats(n int, v Values, r *rand.Rand) []byte {
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, scale(v, r)|uint32(r.IntN(2))<<31)
	}
	return b
}

func makeAddGroup(s Shape, v Values, r *rand.Rand) []Argument {
	var scales []byte
	for range s.Rows {
		scales = binary.LittleEndian.AppendUint32(scales, scale(v, r))
	}
	return []Argument{
		{Name: "sums", Buffer: sums(s.Rows, v, r), Access: Read},
		{Name: "scales", Buffer: scales, Access: Read},
		{Name: "y", Buffer: floats(s.Rows, v, r), Access: Read | Write},
		{Name: "n", Word: uint32(s.Rows)},
	}
}

func makeScale(s Shape, v Values, r *rand.Rand) []Argument {
	return []Argument{
		{Name: "y", Buffer: floats(s.Rows, v, r), Access: Read | Write},
		{Name: "n", Word: uint32(s.Rows)},
		{Name: "scale", Word: inputScale(v, r)},
	}
}

func makeWiden(s Shape, v Values, r *rand.Rand) []Argument {
	var halves []byte
	for i := range s.Rows {
		h := uint16(r.IntN(0x7c00))
		switch {
		case v == AllZero:
			h = 0
		case v == AllMost, v == Huge:
			h = 0x7bff
		case v == AllLeast:
			h = uint16(0x3fe + i%4) // about the least that has an exponent
		case v == Tiny, r.IntN(4) == 0:
			h = uint16(r.IntN(0x402))
		}
		halves = binary.LittleEndian.AppendUint16(halves, h)
	}
	return []Argument{
		{Name: "halves", Buffer: halves, Access: Read},
		{Name: "floats", Buffer: fill(make([]byte, 4*s.Rows), r), Access: Write},
		{Name: "n", Word: uint32(s.Rows)},
	}
}

// makeBounds draws no infinite sums: infinity times 0, or less itself, would make NaNs, and which NaN is left open.
func makeBounds(s Shape, v Values, r *rand.Rand) []Argument {
	var blocks, level []byte
	for range s.Rows {
		block := make([]byte, 16)
		packRow(block, s.Bits, s.Columns, v, r)
		block[15] = byte(r.Uint32()) // any value, and -8 too
		blocks = append(blocks, block...)
	}
	for i := range s.Columns {
		level = binary.LittleEndian.AppendUint16(level, uint16(code(32767, i/2, v, r)))
	}
	for range 4 {
		x := inputScale(v, r)
		if v == Huge { // sums up to 2^23 times it
			x = uint32(140+r.IntN(50)) << 23
		}
		level = binary.LittleEndian.AppendUint32(level, x)
	}
	return []Argument{
		read("blocks", blocks),
		word("n", s.Rows),
		{Name: "prior", Word: binary.LittleEndian.Uint32(floats(1, Random, r))},
		read("level", level),
		write("bounds", 8*s.Rows),
	}
}
