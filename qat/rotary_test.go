package qat

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"
)

// TestRotaryIsTheSameEverywhere compares the tables with a digest stored here. With the functions of package math it was
// another one on arm64.
func TestRotaryIsTheSameEverywhere(t *testing.T) {
	h := fnv.New64a()
	var word [4]byte
	for _, dim := range []int{2, 16, 32, 64, 96, 128} {
		for _, theta := range []float64{100, 10000, 500000} {
			cosines, sines := Rotary(1024, dim, theta)
			for _, table := range [][]float32{cosines, sines} {
				for _, x := range table {
					binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
					h.Write(word[:])
				}
			}
		}
	}
	const want = 0xb9b584d3e41d4325
	if got := h.Sum64(); got != want {
		t.Errorf("the tables have the digest %#x, want %#x", got, uint64(want))
	}
}

// TestRotary holds the tables against package math.
func TestRotary(t *testing.T) {
	const positions, dim = 32768, 12
	for _, theta := range []float64{1, 7, 10000, 1e12} {
		cosines, sines := Rotary(positions, dim, theta)
		for p := range positions {
			for i := range dim / 2 {
				sin, cos := math.Sincos(float64(p) * math.Pow(theta, -2*float64(i)/dim))
				at := p*dim/2 + i
				if math.Abs(float64(cosines[at])-cos) > 0x1p-24 || math.Abs(float64(sines[at])-sin) > 0x1p-24 {
					t.Fatalf("theta %v, position %d, pair %d: cosine %v and sine %v, want %v and %v", theta, p, i, cosines[at],
						sines[at], cos, sin)
				}
			}
		}
	}
}
