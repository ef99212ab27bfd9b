package image

import "math"

// MinCode is the code that a width of 2, 4 or 8 bits could hold but the format refuses: the most negative one.
func MinCode(bits int) int { return -(1 << (bits - 1)) }

// Code is the integer code at (row, col) of a tensor of 2, 4 or 8 bits.
// It follows the block layout of docs/image.md: with 4 bits, column j shares a byte with column j+16.
func (t *Tensor) Code(row, col int) int {
	if t.Block > 0 {
		row, col = row/t.Block*t.Cols+col, row%t.Block
	}
	return t.stored(row, col)
}

// stored is the code at a column of a run; the column may lie in the run's padding.
func (t *Tensor) stored(row, col int) int {
	perBlock := BlockBytes * 8 / t.Bits
	block, in := col/perBlock, col%perBlock
	b := t.Codes[row*t.Stride()+block*BlockBytes+in%BlockBytes]
	shift := in / BlockBytes * t.Bits
	up := 8 - t.Bits
	return int(int8(b>>shift<<up)) >> up
}

// Scale is the scale of a group of a row, widened to float32.
func (t *Tensor) Scale(row, group int) float32 {
	i := row*t.Groups() + group
	if t.Block > 0 {
		i = (row/t.Block*t.Groups()+group)*t.Block + row%t.Block
	}
	if t.ScaleType == ScaleF16 {
		return halfToFloat(le.Uint16(t.Scales[2*i:]))
	}
	return math.Float32frombits(le.Uint32(t.Scales[4*i:]))
}

// Value is the weight at (row, col): the float itself with 32 bits, the byte of a tensor of bytes, else code times scale.
func (t *Tensor) Value(row, col int) float32 {
	if t.Raw() {
		return float32(t.Codes[row*t.Stride()+col])
	}
	if t.Bits == 32 {
		return math.Float32frombits(le.Uint32(t.Codes[row*t.Stride()+4*col:]))
	}
	group := 0
	if t.Group > 0 {
		group = col / t.Group
	}
	return float32(t.Code(row, col)) * t.Scale(row, group)
}

// Row writes the values of a row into dst, which must hold Cols values.
func (t *Tensor) Row(dst []float32, row int) {
	for c := range t.Cols {
		dst[c] = t.Value(row, c)
	}
}

// halfToFloat widens an IEEE binary16 value exactly.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24
		v := float32(frac) * 0x1p-24
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
