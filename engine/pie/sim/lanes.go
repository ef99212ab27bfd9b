package sim

import "encoding/binary"

type vector = [16]byte

func h16(v *vector, i int) uint16 { return binary.LittleEndian.Uint16(v[2*i:]) }

func h32(v *vector, i int) uint32 { return binary.LittleEndian.Uint32(v[4*i:]) }

func put16(v *vector, i int, x uint16) { binary.LittleEndian.PutUint16(v[2*i:], x) }

func put32(v *vector, i int, x uint32) { binary.LittleEndian.PutUint32(v[4*i:], x) }

// lanes8 applies a function of signed lanes.
func lanes8(f func(x, y int64) int64) func(x, y *vector) vector {
	return func(x, y *vector) (z vector) {
		for i := range z {
			z[i] = byte(f(int64(int8(x[i])), int64(int8(y[i]))))
		}
		return z
	}
}

func lanes16(f func(x, y int64) int64) func(x, y *vector) vector {
	return func(x, y *vector) (z vector) {
		for i := range 8 {
			put16(&z, i, uint16(f(int64(int16(h16(x, i))), int64(int16(h16(y, i))))))
		}
		return z
	}
}

func lanes32(f func(x, y int64) int64) func(x, y *vector) vector {
	return func(x, y *vector) (z vector) {
		for i := range 4 {
			put32(&z, i, uint32(f(int64(int32(h32(x, i))), int64(int32(h32(y, i))))))
		}
		return z
	}
}

// byWidth makes the three widths of a function that is given the width.
func byWidth(f func(bits int) func(x, y int64) int64) map[string]func(x, y *vector) vector {
	return map[string]func(x, y *vector) vector{"s8": lanes8(f(8)), "s16": lanes16(f(16)), "s32": lanes32(f(32))}
}

func saturating(sign int64) func(bits int) func(x, y int64) int64 {
	return func(bits int) func(x, y int64) int64 {
		lo, hi := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
		return func(x, y int64) int64 { return clamp(x+sign*y, lo, hi) }
	}
}

func comparing(holds func(x, y int64) bool) func(bits int) func(x, y int64) int64 {
	return func(int) func(x, y int64) int64 {
		return func(x, y int64) int64 {
			if holds(x, y) {
				return -1
			}
			return 0
		}
	}
}

func same(f func(x, y int64) int64) func(bits int) func(x, y int64) int64 {
	return func(int) func(x, y int64) int64 { return f }
}

// bitwise applies a function of 64 bits.
func bitwise(f func(x, y uint64) uint64) func(x, y *vector) vector {
	return func(x, y *vector) (z vector) {
		binary.LittleEndian.PutUint64(z[:], f(binary.LittleEndian.Uint64(x[:]), binary.LittleEndian.Uint64(y[:])))
		binary.LittleEndian.PutUint64(z[8:], f(binary.LittleEndian.Uint64(x[8:]), binary.LittleEndian.Uint64(y[8:])))
		return z
	}
}

// multiply gives the low bits of the lanes' products shifted right by SAR.
func multiply(kind string, x, y *vector, sar uint32) (z vector) {
	for i := range 16 {
		switch kind {
		case "s8":
			z[i] = byte(int64(int8(x[i])) * int64(int8(y[i])) >> sar)
		case "u8":
			z[i] = byte(uint64(x[i]) * uint64(y[i]) >> sar)
		case "s16":
			if i < 8 {
				put16(&z, i, uint16(int64(int16(h16(x, i)))*int64(int16(h16(y, i)))>>sar))
			}
		case "u16":
			if i < 8 {
				put16(&z, i, uint16(uint64(h16(x, i))*uint64(h16(y, i))>>sar))
			}
		}
	}
	return z
}

// funnel shifts high:low right by some bytes, below 16.
func funnel(low, high *vector, n uint32) (z vector) {
	var both [32]byte
	copy(both[:], low[:])
	copy(both[16:], high[:])
	copy(z[:], both[n&15:])
	return z
}

// relu multiplies lanes that are not above 0, and shifts the products.
func relu8(x *vector, by func(i int) int64, shift uint32) (z vector) {
	for i := range z {
		z[i] = x[i]
		if v := int64(int8(x[i])); v <= 0 {
			z[i] = byte(v * by(i) >> shift)
		}
	}
	return z
}

func relu16(x *vector, by func(i int) int64, shift uint32) (z vector) {
	for i := range 8 {
		h := h16(x, i)
		if v := int64(int16(h)); v <= 0 {
			h = uint16(v * by(i) >> shift)
		}
		put16(&z, i, h)
	}
	return z
}

// zip interleaves the elements of two vectors, of so many bytes.
func zip(a, b *vector, size int) (lo, hi vector) {
	var both [32]byte
	for i := 0; i < 16; i += size {
		copy(both[2*i:], a[i:i+size])
		copy(both[2*i+size:], b[i:i+size])
	}
	copy(lo[:], both[:16])
	copy(hi[:], both[16:])
	return lo, hi
}

func unzip(a, b *vector, size int) (even, odd vector) {
	var both [32]byte
	copy(both[:], a[:])
	copy(both[16:], b[:])
	for i := 0; i < 16; i += size {
		copy(even[i:i+size], both[2*i:])
		copy(odd[i:i+size], both[2*i+size:])
	}
	return even, odd
}

// shiftPair shifts hi:lo by whole bytes, zeros coming in.
func shiftPair(hi, lo *vector, n int) {
	var both, moved [32]byte
	copy(both[:], lo[:])
	copy(both[16:], hi[:])
	if n >= 0 {
		copy(moved[min(n, 32):], both[:])
	} else {
		copy(moved[:], both[min(-n, 32):])
	}
	copy(lo[:], moved[:16])
	copy(hi[:], moved[16:])
}
