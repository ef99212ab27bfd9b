package qat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// Quantising the preimage of a quantised matrix gives the same codes and the same bits of every scale, whatever the weights
// were: of every width and type of scale, of all magnitudes, down to scales that are subnormal in float16.
func TestPreimage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	differs := 0 // matrices that plain dequantising would not have kept
	for _, spec := range []Spec{
		{Bits: 2, Group: 32, Scale: configs.ScaleF32}, {Bits: 2, Group: 0, Scale: configs.ScaleF16},
		{Bits: 4, Group: 64, Scale: configs.ScaleF32}, {Bits: 4, Group: 32, Scale: configs.ScaleF16},
		{Bits: 8, Group: 128, Scale: configs.ScaleF32}, {Bits: 8, Group: 0, Scale: configs.ScaleF16},
		{Bits: 2, Group: 32, Scale: configs.ScaleF16, Clip: 0.5}, {Bits: 4, Group: 64, Scale: configs.ScaleF32, Clip: 0.9},
		{Bits: 4, Group: 32, Scale: configs.ScaleF16, Clip: 0.95}, {Bits: 8, Group: 0, Scale: configs.ScaleF32, Clip: 0.99},
	} {
		for range 400 {
			const rows, cols = 3, 100
			w := make([]float32, rows*cols)
			size := math.Exp2(float64(rng.IntN(30) - 26))
			for i := range w {
				w[i] = float32(rng.NormFloat64() * size)
				if rng.IntN(20) == 0 {
					w[i] = 0
				}
			}
			if rng.IntN(4) == 0 {
				clear(w[:cols])
			}
			m, err := Quantise(spec, w, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, rows*cols)
			if err := m.Preimage(got); err != nil {
				t.Fatalf("%+v: %v", spec, err)
			}
			again, err := Quantise(spec, got, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(again.Codes, m.Codes) || !slices.Equal(again.Scales, m.Scales) {
				t.Fatalf("%+v at size %g: other codes or scales", spec, size)
			}
			m.Dequantise(got)
			if plain, err := Quantise(spec, got, rows, cols); err == nil && !slices.Equal(plain.Scales, m.Scales) {
				differs++
			}
		}
	}
	if differs == 0 {
		t.Error("dequantised weights always keep their scales here: the test does not reach what it is for")
	}
}

// A matrix that no weights quantise to is refused: a group whose largest code is far below the largest there is.
func TestPreimageRefuses(t *testing.T) {
	m := &Matrix{Spec: Spec{Bits: 4, Group: 0, Scale: configs.ScaleF32}, Rows: 1, Cols: 4, Codes: []int8{1, -3, 0, 2}, Scales: []float32{0.5}}
	if err := m.Preimage(make([]float32, 4)); err == nil {
		t.Error("a group whose largest code is 3 of 7 was accepted")
	}
}
