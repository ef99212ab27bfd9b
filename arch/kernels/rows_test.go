package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// oddSizes are rows and columns that leave a rest in vectors of any length.
var oddSizes = [][2]int{{1, 1}, {1, 7}, {2, 8}, {3, 19}, {5, 64}, {7, 128}, {4, 333}, {9, 31}}

// spoiled is random with values that choices must treat the same on every path: zeros of both signs, huge and tiny
// numbers, infinities and NaN.
func spoiled(seed uint64, n int) []float32 {
	x := random(seed, n)
	inf := float32(math.Inf(1))
	for i, v := range []float32{0, float32(math.Copysign(0, -1)), 90, -90, 1e30, -1e30, 1e-30, inf, -inf, float32(math.NaN())} {
		if at := 3*i + 2; at < n {
			x[at] = v
		}
	}
	return x
}

// sameNaN makes every NaN the same: which one an operation of two of them gives is not defined.
func sameNaN(parts ...[]float32) []float32 {
	all := slices.Concat(parts...)
	for i, v := range all {
		if v != v {
			all[i] = float32(math.NaN())
		}
	}
	return all
}

func TestRowsPaths(t *testing.T) {
	for _, size := range oddSizes {
		rows, n := size[0], size[1]
		what := func(kernel string) string { return fmt.Sprintf("%s of %d x %d", kernel, rows, n) }
		buf := func(size int) []float32 { return make([]float32, size) }
		x, y, gain, dy := spoiled(1, rows*n), random(2, rows*n), random(3, n), random(4, rows*n)
		onPaths(t, what("add"), func() []float32 {
			z := buf(rows * n)
			Add(x, y, z)
			return sameNaN(z)
		})
		onPaths(t, what("scale"), func() []float32 {
			z := slices.Clone(x)
			Scale(z, 1.37)
			return sameNaN(z)
		})
		onPaths(t, what("norm"), func() []float32 {
			z, inv := buf(rows*n), buf(rows)
			RMSNorm(y, gain, 1e-6, z, inv)
			return append(z, inv...)
		})
		inv := random(5, rows)
		for _, add := range [][]float32{nil, random(6, rows*n)} {
			onPaths(t, what("norm's gradient"), func() []float32 {
				dx, dgain := buf(rows*n), buf(n)
				RMSNormGrad(y, gain, inv, dy, add, dx, dgain)
				return append(dx, dgain...)
			})
		}
		gu := spoiled(7, 2*rows*n)
		for _, act := range []configs.Activation{configs.ReLU, configs.SwiGLU} {
			onPaths(t, what(string(act)), func() []float32 {
				z := buf(rows * n)
				Gate(gu, rows, n, act, z)
				return sameNaN(z)
			})
			onPaths(t, what(string(act)+"'s gradient"), func() []float32 {
				dgu := buf(2 * rows * n)
				GateGrad(gu, dy, rows, n, act, dgu)
				return sameNaN(dgu)
			})
		}
		stride := n + 3
		g, e := spoiled(8, rows*n), random(9, rows*stride)
		onPaths(t, what("gelu"), func() []float32 {
			z := buf(rows * n)
			GELUMul(g, M(e[1:], stride), rows, n, z)
			return sameNaN(z)
		})
		onPaths(t, what("gelu's gradient"), func() []float32 {
			dg, de := buf(rows*n), buf(rows*stride)
			GELUMulGrad(g, M(e[1:], stride), dy, rows, n, dg, M(de[1:], stride))
			return sameNaN(dg, de)
		})
		s := random(10, rows)
		onPaths(t, what("product and scale of rows"), func() []float32 {
			a, dot := slices.Clone(y), buf(rows)
			DotScaleRows(a, dy, s, n, dot)
			return append(a, dot...)
		})
		z := random(11, rows*n)
		z[rows*n/2] = z[0] // a tie, where they share a row
		onPaths(t, what("routing"), func() []float32 {
			choice, p, prob := make([]int32, rows), buf(rows), buf(rows*n)
			Route(z, n, choice, p, prob)
			dz := buf(rows * n)
			RouteGrad(prob, choice, s, gain, dz)
			for _, c := range choice {
				p = append(p, float32(c))
			}
			return slices.Concat(p, prob, dz)
		})
		spoil := slices.Clone(y)
		spoil[rows*n-1] = float32(math.Inf(-1))
		onPaths(t, what("finite"), func() []float32 {
			var found []float32
			for _, v := range [][]float32{y, x, spoil} {
				found = append(found, float32(flag(Finite(v))))
			}
			return found
		})
	}
}

func TestTablePaths(t *testing.T) {
	for _, size := range oddSizes {
		rows, n := size[0], size[1]
		table, dy := random(1, 13*n), random(2, rows*n)
		clear(table[4*n : 5*n]) // a row of groups that are zero
		ids := []int32{4, 12, 0, 7, 12, 4, 1, 0, 5}[:rows]
		for _, spec := range []configs.WeightQuant{
			{Bits: 32},
			{Bits: 4, Group: 64, Scale: configs.ScaleF32},
			{Bits: 2, Group: 32, Scale: configs.ScaleF16},
			{Bits: 8, Scale: configs.ScaleF16},
		} {
			onPaths(t, fmt.Sprintf("gather of %d x %d with %d bits", rows, n, spec.Bits), func() []float32 {
				y := make([]float32, rows*n)
				Gather(table, ids, n, spec, Values, y)
				return y
			})
		}
		onPaths(t, fmt.Sprintf("scatter of %d x %d", rows, n), func() []float32 {
			d := slices.Clone(table)
			ClearRows(ids[:1], n, d)
			ScatterAdd(dy, ids, n, 0.3, d)
			return d
		})
	}
}

func TestPLEPaths(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {3, 2, 5}, {2, 3, 64}, {5, 1, 43}, {3, 6, 16}} {
		rows, mix := size[0], PLE{Layers: size[1], Dim: size[2], InScale: 0.7, TableScale: 2, Mix: 0.6, Eps: 1e-3}
		n := rows * mix.Layers * mix.Dim
		x, gain, table, de := random(1, n), random(2, mix.Dim), random(3, n), random(4, n)
		onPaths(t, fmt.Sprintf("per-layer embeddings of %v", size), func() []float32 {
			inv, e := make([]float32, rows*mix.Layers), slices.Clone(table)
			mix.Forward(x, gain, e, rows, inv, e)
			dx, dgain := make([]float32, n), make([]float32, mix.Dim)
			mix.Grad(x, gain, inv, de, rows, dx, dgain)
			return slices.Concat(inv, e, dx, dgain)
		})
	}
}
