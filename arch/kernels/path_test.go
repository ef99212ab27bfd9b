package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chiplm/chiplm/qat/fakequant"
	"github.com/chiplm/chiplm/qat/simd"
)

// onPaths runs f once on every path of this machine but the library's and fails when one gives other bits than plain C.
func onPaths(t *testing.T, what string, f func() []float32) {
	t.Helper()
	defer simd.Use(simd.Current())
	var want []float32
	for _, p := range simd.Paths() { // plain comes first
		if p == simd.Library {
			continue
		}
		simd.Use(p)
		got := f()
		if p == simd.Plain {
			want = got
			continue
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: element %d is %v on %v and %v on plain", what, i, got[i], p, want[i])
			}
		}
	}
}

func TestGemmPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := [][3]int{{1, 1, 1}, {7, 5, 3}, {49, 129, 130}, {6, 64, 128}, {65, 200, 1}, {3, 16, 300}, {130, 33, 257}}
	for range 40 {
		sizes = append(sizes, [3]int{1 + rng.IntN(140), 1 + rng.IntN(280), 1 + rng.IntN(280)})
	}
	for _, s := range sizes {
		rows, cols, inner := s[0], s[1], s[2]
		for form := range 8 {
			ta, tb, add := form&1 != 0, form&2 != 0, form&4 != 0
			ma, mb := M(nil, inner+rng.IntN(3)), M(nil, cols+rng.IntN(3))
			if ta {
				ma = M(nil, rows+rng.IntN(3)).T()
			}
			if tb {
				mb = M(nil, inner+rng.IntN(3)).T()
			}
			if rng.IntN(4) == 0 {
				ma.Stride = 1024
			}
			ma.Data, mb.Data = random(rng.Uint64(), max(rows, inner)*ma.Stride), random(rng.Uint64(), max(cols, inner)*mb.Stride)
			stride := cols + rng.IntN(2)
			before := random(rng.Uint64(), rows*stride)
			onPaths(t, fmt.Sprintf("%d x %d x %d, transposed %v %v, add %v", rows, cols, inner, ta, tb, add), func() []float32 {
				c := append([]float32(nil), before...)
				Gemm(rows, cols, inner, ma, mb, add, M(c, stride))
				return c
			})
		}
	}
}

// TestGemmOrder: an element is one chain of fused multiply-adds in ascending order.
func TestGemmOrder(t *testing.T) {
	const rows, cols, inner = 9, 70, 300
	a, b, c := random(1, rows*inner), random(2, inner*cols), random(3, rows*cols)
	want := append([]float32(nil), c...)
	for r := range rows {
		for j := range cols {
			for p := range inner { // a product of floats is exact in float64; FMA then rounds twice, rarely otherwise than once
				x, y := float64(a[r*inner+p]), float64(b[p*cols+j])
				want[r*cols+j] = float32(math.FMA(x, y, float64(want[r*cols+j])))
			}
		}
	}
	if simd.Current() == simd.Library {
		t.Skip("the library has an order of its own")
	}
	Gemm(rows, cols, inner, M(a, inner), M(b, cols), true, M(c, cols))
	for i := range want {
		if d := math.Abs(float64(want[i] - c[i])); d > 1e-6*math.Abs(float64(want[i])) {
			t.Fatalf("element %d is %v, the chain gives %v", i, c[i], want[i])
		}
	}
}

// TestGemmCodes: a product with codes is the product with their values, bit for bit, on every path.
func TestGemmCodes(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 7}, {49, 130, 129}, {130, 200, 40}, {384, 64, 300}} {
		rows, cols, inner := s[0], s[1], s[2]
		stride := 4 * fakequant.Quads(cols)
		values, codes, scales := make([]float32, inner*cols), make([]uint8, inner*stride), make([]float32, inner)
		fakequant.Activations(random(1, inner*cols), inner, cols, values, codes, scales)
		a, before := M(random(2, inner*(rows+1)), rows+1).T(), random(3, rows*cols)
		for _, add := range []bool{false, true} {
			want := append([]float32(nil), before...)
			Gemm(rows, cols, inner, a, M(values, cols), add, M(want, cols))
			onPaths(t, fmt.Sprintf("%v, add %v", s, add), func() []float32 {
				c := append([]float32(nil), before...)
				GemmCodes(rows, cols, inner, a, codes, scales, add, M(c, cols))
				for i := range want {
					if simd.Current() != simd.Library && math.Float32bits(c[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%v: element %d is %v, on values %v", s, i, c[i], want[i])
					}
				}
				return c
			})
		}
	}
}
