package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/qat"
)

func equal(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// The functions of one variable are those of the numerics page, to the bit, all over the range of floats: every
// 2,039th of them, so that all exponents and many last bits occur.
func TestFunctionsEqualTheDefinition(t *testing.T) {
	for _, f := range []struct {
		name      string
		got, want func(float32) float32
	}{
		{"exp", expOf, qat.Exp}, {"silu", siluOf, qat.SiLU}, {"gelu", geluOf, qat.GELU},
	} {
		differ := 0
		for bits := uint64(0); bits < 0x7f800000; bits += 2039 { // a prime
			for _, sign := range []uint32{0, 1 << 31} {
				x := math.Float32frombits(uint32(bits) | sign)
				if got, want := f.got(x), f.want(x); !equal(got, want) {
					if differ++; differ < 4 {
						t.Errorf("%s(%g) is %g, want %g", f.name, x, got, want)
					}
				}
			}
		}
		if differ > 0 {
			t.Errorf("%s differs at %d places", f.name, differ)
		}
	}
}

// exp over where attention uses it: between -86 and 0 all the polynomial's bits matter.
func TestExpEqualsTheDefinitionWhereItIsUsed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2_000_000 {
		x := -86 * rng.Float32() * rng.Float32()
		if got, want := expOf(x), qat.Exp(x); !equal(got, want) {
			t.Fatalf("exp(%g) is %g, want %g", x, got, want)
		}
	}
}

// Sums and quantised vectors are those of the numerics page at every length and scale.
func TestVectorsEqualTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n <= 300; n++ {
		x := make([]float32, n)
		for _, scale := range []float64{1e-38, 0x1p-101, 0x1p-100, 1e-3, 1, 1e30} {
			for i := range x {
				x[i] = float32(rng.NormFloat64() * scale)
			}
			x[rng.IntN(n)] = float32(scale) * 7.5
			if got, want := sum8Of(x), qat.Sum8(x); !equal(got, want) {
				t.Fatalf("the sum of %d values is %g, want %g", n, got, want)
			}
			got, want := make([]int8, n), make([]int8, n)
			if gs, ws := quantiseOf(PathDefault, x, got), qat.QuantiseVector(x, want); !equal(gs, ws) || !slices.Equal(got, want) {
				t.Fatalf("%d values of size %g: scale %g and codes %v, want %g and %v", n, scale, gs, got, ws, want)
			}
		}
	}
}
