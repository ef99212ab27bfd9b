package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/qat/simd"
)

// updateSizes leave a rest in vectors and in blocks of any length.
var updateSizes = []int{1, 7, 8, 15, 16, 17, 100, 255, 256, 257, 1000, 4099}

func TestUpdatePaths(t *testing.T) {
	k := AdamW{GradScale: 0.3, OneMinusBeta1: 0.1, Beta2: 0.95, OneMinusBeta2: 0.05, InvSqrtBias2: 1.7, Eps: 1e-8, Decay: 0.999, StepSize: 0.01}
	for _, size := range updateSizes {
		w, m, v, g := random(1, size), random(2, size), random(3, size), random(4, size)
		for i := range v {
			v[i] *= v[i]
		}
		v[size/2], g[size/2] = 0, 0 // the root of zero
		onPaths(t, fmt.Sprintf("update of %d weights", size), func() []float32 {
			w, m, v := slices.Clone(w), slices.Clone(m), slices.Clone(v)
			for range 3 {
				if !k.Update(w, m, v, g) {
					t.Fatalf("%d weights are not finite", size)
				}
			}
			return slices.Concat(w, m, v)
		})
		onPaths(t, fmt.Sprintf("squares of %d", size), func() []float32 {
			bits := math.Float64bits(SumSquares(g))
			return []float32{math.Float32frombits(uint32(bits >> 32)), math.Float32frombits(uint32(bits))}
		})
	}
}

// TestUpdateAgainstItsFormula holds the loop to the formula of its declaration, operation by operation.
func TestUpdateAgainstItsFormula(t *testing.T) {
	k := AdamW{GradScale: 0.3, OneMinusBeta1: 0.1, Beta2: 0.95, OneMinusBeta2: 0.05, InvSqrtBias2: 1.7, Eps: 1e-8, Decay: 0.999, StepSize: 0.01}
	const size = 300
	w, m, v, g := random(1, size), random(2, size), make([]float32, size), random(4, size)
	gotW, gotM, gotV := slices.Clone(w), slices.Clone(m), slices.Clone(v)
	k.Update(gotW, gotM, gotV, g)
	for i := range w {
		d := float32(g[i] * k.GradScale)
		wantM := m[i] + float32((d-m[i])*k.OneMinusBeta1)
		wantV := float32(v[i]*k.Beta2) + float32(float32(d*d)*k.OneMinusBeta2)
		root := float32(math.Sqrt(float64(wantV)))
		wantW := float32(w[i]*k.Decay) - float32(k.StepSize*(wantM/(float32(root*k.InvSqrtBias2)+k.Eps)))
		if gotW[i] != wantW || gotM[i] != wantM || gotV[i] != wantV {
			t.Fatalf("element %d: %v, %v, %v where the formula gives %v, %v, %v", i, gotW[i], gotM[i], gotV[i], wantW, wantM, wantV)
		}
	}
}

func TestUpdateSeesWhatIsNotFinite(t *testing.T) {
	for _, p := range simd.Paths() {
		defer simd.Use(simd.Use(p))
		for _, size := range updateSizes {
			for _, at := range []int{0, size / 2, size - 1} {
				for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
					w, m, v, g := make([]float32, size), make([]float32, size), make([]float32, size), make([]float32, size)
					k := AdamW{GradScale: 1, OneMinusBeta1: 0.1, Beta2: 0.9, OneMinusBeta2: 0.1, InvSqrtBias2: 1, Eps: 1e-8, Decay: 1, StepSize: 1}
					if !k.Update(w, m, v, g) {
						t.Fatalf("%v: %d zeros are not finite", p, size)
					}
					w[at] = float32(bad)
					if k.Update(w, m, v, g) {
						t.Fatalf("%v: %v at %d of %d goes unseen", p, bad, at, size)
					}
				}
			}
		}
	}
}

func TestSumSquaresIsExactForSmallIntegers(t *testing.T) {
	for n := range 600 {
		x, want := make([]float32, n), 0.0
		for i := range x {
			x[i] = float32(i%40 - 7)
			want += float64(x[i]) * float64(x[i])
		}
		if got := SumSquares(x); got != want {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
	}
}

func TestAddRows(t *testing.T) {
	for _, cols := range []int{1, 7, 64, 131} {
		x, table, ids := random(1, 9*cols), random(2, 9*cols), []int32{4, 0, 8, 5}
		want := slices.Clone(table)
		for _, r := range ids {
			for c := int(r) * cols; c < (int(r)+1)*cols; c++ {
				want[c] += x[c]
			}
		}
		onPaths(t, fmt.Sprintf("rows of %d", cols), func() []float32 {
			got := slices.Clone(table)
			AddRows(x, ids, cols, got)
			if !slices.Equal(got, want) {
				t.Errorf("rows of %d are added wrongly", cols)
			}
			return got
		})
	}
}
