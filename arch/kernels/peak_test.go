package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/qat/simd"
)

// TestLibraryGemm compares the library's product with sums in double, in all four forms, inside wider rows.
func TestLibraryGemm(t *testing.T) {
	if !slices.Contains(simd.Paths(), simd.Library) {
		t.Skip("this build has no library")
	}
	const rows, cols, inner, wider = 5, 7, 9, 3
	matrix := func(rows, cols int, phase float64) Mat {
		m := M(make([]float32, rows*(cols+wider)), cols+wider)
		for i := range m.Data {
			m.Data[i] = float32(math.Sin(phase + float64(i)))
		}
		return m
	}
	at := func(m Mat, r, c int) float64 {
		if m.Trans {
			r, c = c, r
		}
		return float64(m.Data[r*m.Stride+c])
	}
	for _, a := range []Mat{matrix(rows, inner, 1), matrix(inner, rows, 2).T()} {
		for _, b := range []Mat{matrix(inner, cols, 3), matrix(cols, inner, 4).T()} {
			for _, add := range []bool{false, true} {
				c, before := matrix(rows, cols, 5), matrix(rows, cols, 5)
				LibraryGemm(rows, cols, inner, a, b, add, c)
				for r := range rows {
					for j := range c.Stride {
						want := at(before, r, j)
						if j < cols {
							if !add {
								want = 0
							}
							for i := range inner {
								want += at(a, r, i) * at(b, i, j)
							}
						}
						if got := at(c, r, j); math.Abs(got-want) > 1e-5 {
							t.Fatalf("transposed %v %v, add %v: element %d, %d is %v, want %v", a.Trans, b.Trans, add, r, j, got, want)
						}
					}
				}
			}
		}
	}
}
