package qat

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
)

// Matrix is a quantised matrix: Rows x Cols codes, row after row, and one scale per row and group of columns.
type Matrix struct {
	Spec
	Rows, Cols int
	Codes      []int8    // Rows*Cols
	Scales     []float32 // Rows*Groups; f16 scales are held widened
}

// Quantise turns a matrix of rows x cols weights into codes and scales. It fails when the specification is impossible,
// a weight is not finite, or a scale does not fit its type.
func Quantise(spec Spec, w []float32, rows, cols int) (*Matrix, error) {
	if err := check(spec, rows, cols); err != nil {
		return nil, err
	}
	if len(w) != rows*cols {
		return nil, fmt.Errorf("quantise: %d weights were given for %d rows of %d", len(w), rows, cols)
	}
	groups, wide := Groups(spec, cols), width(spec, cols)
	m := &Matrix{Spec: spec, Rows: rows, Cols: cols, Codes: make([]int8, rows*cols), Scales: make([]float32, rows*groups)}
	for r := range rows {
		for g := range groups {
			lo, hi := r*cols+g*wide, r*cols+min((g+1)*wide, cols)
			s := quantiseGroup(spec, w[lo:hi], m.Codes[lo:hi])
			if !(s <= math.MaxFloat32) {
				return nil, fmt.Errorf("quantise: row %d, columns %d to %d: the scale %v is not finite in %s; "+
					"the weights have diverged, or need scale: f32", r, g*wide, hi-r*cols-1, s, spec.Scale)
			}
			m.Scales[r*groups+g] = s
		}
	}
	return m, nil
}

// quantiseGroup fills codes and returns the scale, which is not finite if a weight is not or if the scale overflows.
func quantiseGroup(spec Spec, w []float32, codes []int8) float32 {
	q := float32(MaxCode(spec.Bits))
	m := maxAbs(w)
	var s float32
	if !(m < tiny) {
		s = m / Divisor(spec)
		if spec.Scale == configs.ScaleF16 {
			s = HalfValue(halfBits(s))
		}
	}
	if s == 0 {
		clear(codes)
		return 0
	}
	for i, x := range w {
		codes[i] = int8(clamp(RNE(clamp(x/s, 1000)), q))
	}
	return s
}

// maxAbs is the largest magnitude, and NaN if there is one: the bits of magnitudes are ordered as they are.
func maxAbs(x []float32) float32 {
	var m uint32
	for _, v := range x {
		m = max(m, math.Float32bits(v)&0x7fffffff)
	}
	return math.Float32frombits(m)
}

// clamp holds x between -q and q; a NaN becomes -q.
func clamp(x, q float32) float32 {
	if !(x > -q) {
		x = -q
	}
	if !(x < q) {
		x = q
	}
	return x
}

// Dequantise writes code times scale into dst, Rows*Cols floats.
func (m *Matrix) Dequantise(dst []float32) {
	groups, wide := Groups(m.Spec, m.Cols), width(m.Spec, m.Cols)
	for r := range m.Rows {
		for c := range m.Cols {
			i := r*m.Cols + c
			dst[i] = float32(m.Codes[i]) * m.Scales[r*groups+c/wide]
		}
	}
}

// QuantiseVector quantises activations to 8 bits: codes between -127 and 127 and one scale for the vector.
// codes is at least as long as x.
func QuantiseVector(x []float32, codes []int8) (scale float32) {
	m := maxAbs(x)
	if m < tiny {
		clear(codes[:len(x)])
		return 0
	}
	scale, r := m/127, 127/m
	for i, v := range x {
		codes[i] = int8(clamp(RNE(clamp(float32(v*r), 1000)), 127))
	}
	return scale
}
