package pie

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// What cases of vectors are made of: floats and codes of each kind of values, as the bytes of buffers.

// untouched fills outputs: as a float -3.6e-16, as a code -91.
const untouched = 0xa5

func output(bytes int) []byte {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = untouched
	}
	return b
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// someFloats are n floats of a kind. Huge ones are infinite at times, and never NaN: which NaN a result is, is left open.
func someFloats(n int, v Values, r *rand.Rand) []float32 {
	out := make([]float32, n)
	size := math.Exp2(float64(r.IntN(40) - 30))
	for i := range out {
		x := r.NormFloat64()
		switch v {
		case AllLeast:
			x = -size
		case AllMost:
			x = size
		case Alternating:
			x = size * float64(1-2*(i&1))
		case AllZero:
			x = 0
		case Tiny:
			x *= 0x1p-100
		case Huge:
			x *= math.MaxFloat32 / 4
			if r.IntN(16) == 0 {
				x = math.Inf(1 - 2*r.IntN(2))
			}
		default:
			x *= size
		}
		out[i] = float32(x)
	}
	return out
}

// someScales are n scales of vectors: not negative, zeros among them.
func someScales(n int, v Values, r *rand.Rand) []float32 {
	out := make([]float32, n)
	for i := range out {
		switch v {
		case AllZero:
		case Tiny:
			out[i] = r.Float32() * 0x1p-100
		case Huge:
			out[i] = r.Float32()
		default:
			out[i] = r.Float32() * float32(r.IntN(5))
		}
	}
	return out
}

// someCodes are n codes of 8 bits.
func someCodes(n int, v Values, r *rand.Rand) []byte {
	out := make([]byte, n)
	for i := range out {
		var c int
		switch v {
		case AllLeast:
			c = -127
		case AllMost:
			c = 127
		case Alternating:
			c = 127 - 254*(i&1)
		case AllZero, Tiny:
		default:
			c = r.IntN(255) - 127
		}
		out[i] = byte(int8(c))
	}
	return out
}

// length draws a number of values: a few, or many.
func length(r *rand.Rand, most int) int {
	if r.IntN(2) == 0 {
		return 1 + r.IntN(min(17, most))
	}
	return 1 + r.IntN(most)
}

// wholes is length in multiples of step.
func wholes(r *rand.Rand, step, most int) int { return step * length(r, most/step) }

func roundUp(n, step int) int { return (n + step - 1) / step * step }

func read(name string, b []byte) Argument { return Argument{Name: name, Buffer: b, Access: Read} }

func change(name string, b []byte) Argument {
	return Argument{Name: name, Buffer: b, Access: Read | Write}
}

func write(name string, bytes int) Argument {
	return Argument{Name: name, Buffer: output(bytes), Access: Write}
}

func word(name string, w int) Argument { return Argument{Name: name, Word: uint32(w)} }

func floatWord(name string, x float32) Argument {
	return Argument{Name: name, Word: math.Float32bits(x)}
}
