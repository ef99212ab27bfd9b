package qat

import (
	"fmt"
	"math"
	"slices"
)

// Preimage writes weights into dst, Rows*Cols floats, that [Quantise] turns into exactly these codes and scales: what
// [Matrix.Dequantise] gives, but for the largest of a group, which must lead back to the scale. Seven times a float32 scale,
// rounded, divided by seven and rounded again, is a neighbour of the scale as often as one time in eight. It fails for a
// matrix that Quantise cannot have made.
func (m *Matrix) Preimage(dst []float32) error {
	if err := check(m.Spec, m.Rows, m.Cols); err != nil {
		return err
	}
	m.Dequantise(dst)
	groups, wide := Groups(m.Spec, m.Cols), width(m.Spec, m.Cols)
	codes := make([]int8, wide)
	for r := range m.Rows {
		for g := range groups {
			lo, hi := r*m.Cols+g*wide, r*m.Cols+min((g+1)*wide, m.Cols)
			if !preimageGroup(m.Spec, dst[lo:hi], m.Codes[lo:hi], m.Scales[r*groups+g], codes[:hi-lo]) {
				return fmt.Errorf("row %d, columns %d to %d: no weights quantise to these codes with the scale %v", r, g*wide, hi-r*m.Cols-1, m.Scales[r*groups+g])
			}
		}
	}
	return nil
}

// preimageGroup mends the largest magnitudes of a group of dequantised weights; codes is room to try them.
func preimageGroup(spec Spec, w []float32, want []int8, scale float32, codes []int8) bool {
	largest := int8(0)
	for _, c := range want {
		largest = max(largest, c, -c)
	}
	exact, most := float32(largest)*scale, (float32(largest)+0.5)*scale
	// The weight that a float32 scale was made of is at most one step away. A float16 scale that is subnormal may be far
	// above a seventh of its weight, whose code is then less than 7; the largest weight with that code leads to the scale.
	cut := Divisor(spec) * scale // with a clip, the largest weight is beyond its code
	for _, top := range []float32{exact, math.Nextafter32(exact, 0), math.Nextafter32(exact, math.MaxFloat32), most, math.Nextafter32(most, 0),
		cut, math.Nextafter32(cut, 0), math.Nextafter32(cut, math.MaxFloat32)} {
		for i, c := range want {
			switch c {
			case 0:
			case largest:
				w[i] = top
			case -largest:
				w[i] = -top
			}
		}
		if quantiseGroup(spec, w, codes) == scale && slices.Equal(codes, want) {
			return true
		}
	}
	return false
}
