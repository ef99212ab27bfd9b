package qat

import "math"

// halfBits rounds a float32 that is not negative to binary16, nearest even. Values of 65520 and more become infinite.
func halfBits(f float32) uint16 {
	u := math.Float32bits(f)
	switch {
	case u > 0x7f800000: // NaN
		return 0x7e00
	case f >= 65520:
		return 0x7c00
	case f < 0x1p-14: // a subnormal half: a multiple of 2^-24, and that is the unit of 0.75 in float32
		return uint16(math.Float32bits(f+0.75) - math.Float32bits(0.75))
	}
	u += 0xfff + u>>13&1
	return uint16(u>>13 - (127-15)<<10)
}

// HalfValue widens a binary16 that is not negative, exactly.
func HalfValue(h uint16) float32 {
	exp, man := uint32(h)>>10&31, uint32(h)&0x3ff
	switch exp {
	case 0:
		return float32(man) * 0x1p-24
	case 31:
		return math.Float32frombits(0x7f800000 | man<<13)
	}
	return math.Float32frombits((exp+127-15)<<23 | man<<13)
}
