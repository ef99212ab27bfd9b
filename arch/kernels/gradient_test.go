package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// operation is a kernel with its gradient: forward reads in and gives the result, backward gives the gradient of each
// input (nil: none).
type operation struct {
	in       [][]float32
	weights  []float32 // of the results in the score; nil: random ones
	forward  func() []float32
	backward func(dy []float32) [][]float32
}

func random(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// check compares the gradients with central differences of a weighted sum of the result, in double precision.
func (o operation) check(t *testing.T) {
	t.Helper()
	weights := o.weights
	if weights == nil {
		weights = random(99, len(o.forward()))
	}
	score := func() (sum float64) {
		for i, y := range o.forward() {
			sum += float64(y) * float64(weights[i])
		}
		return sum
	}
	grads := o.backward(weights)
	for k, g := range grads {
		if g == nil {
			continue
		}
		largest := 0.0
		for _, v := range g {
			largest = max(largest, math.Abs(float64(v)))
		}
		const h = 1.0 / 512
		for i := range o.in[k] {
			saved := o.in[k][i]
			o.in[k][i] = saved + h
			up := score()
			o.in[k][i] = saved - h
			down := score()
			o.in[k][i] = saved
			if diff := (up - down) / (2 * h); math.Abs(diff-float64(g[i])) > 2e-3+3e-3*largest {
				t.Fatalf("input %d, element %d: the result moves by %v, the gradient says %v", k, i, diff, g[i])
			}
		}
	}
}

func TestRMSNormGradient(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {1, 13}, {5, 24}} {
		rows, n := size[0], size[1]
		for _, fork := range []bool{false, true} {
			x, gain, y, inv := random(1, rows*n), random(2, n), make([]float32, rows*n), make([]float32, rows)
			add := []float32(nil)
			if fork {
				add = random(3, rows*n)
			}
			operation{
				in: [][]float32{x, gain},
				forward: func() []float32 {
					RMSNorm(x, gain, 1e-3, y, inv)
					return y
				},
				backward: func(dy []float32) [][]float32 {
					RMSNorm(x, gain, 1e-3, y, inv)
					dx, dgain := make([]float32, rows*n), make([]float32, n)
					RMSNormGrad(x, gain, inv, dy, add, dx, dgain)
					for i := range add {
						dx[i] -= add[i]
					}
					return [][]float32{dx, dgain}
				},
			}.check(t)
		}
	}
}

func TestGateGradient(t *testing.T) {
	for _, act := range []configs.Activation{configs.ReLU, configs.SwiGLU} {
		for _, size := range [][2]int{{1, 1}, {1, 9}, {4, 33}} {
			rows, f := size[0], size[1]
			gu, y := random(1, 2*rows*f), make([]float32, rows*f)
			for i, v := range gu { // away from the kink of ReLU
				gu[i] += float32(math.Copysign(0.1, float64(v)))
			}
			operation{
				in:      [][]float32{gu},
				forward: func() []float32 { Gate(gu, rows, f, act, y); return y },
				backward: func(dy []float32) [][]float32 {
					dgu := make([]float32, len(gu))
					GateGrad(gu, dy, rows, f, act, dgu)
					return [][]float32{dgu}
				},
			}.check(t)
		}
	}
}

func TestGELUMulGradient(t *testing.T) {
	rows, p, width := 3, 11, 25
	g, e, y := random(1, rows*p), random(2, rows*width), make([]float32, rows*p)
	operation{
		in:      [][]float32{g, e},
		forward: func() []float32 { GELUMul(g, M(e[7:], width), rows, p, y); return y },
		backward: func(dy []float32) [][]float32 {
			dg, de := make([]float32, len(g)), make([]float32, len(e))
			GELUMulGrad(g, M(e[7:], width), dy, rows, p, dg, M(de[7:], width))
			return [][]float32{dg, de}
		},
	}.check(t)
}

func TestPLEGradient(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 2}, {3, 2, 5}} {
		rows := size[0]
		mix := PLE{Layers: size[1], Dim: size[2], InScale: 0.7, TableScale: 2, Mix: 0.6, Eps: 1e-3}
		n := rows * mix.Layers * mix.Dim
		x, gain, table := random(1, n), random(2, mix.Dim), random(3, n)
		inv, e := make([]float32, rows*mix.Layers), make([]float32, n)
		forward := func() []float32 { mix.Forward(x, gain, table, rows, inv, e); return e }
		operation{
			in:      [][]float32{x, gain, table},
			forward: forward,
			backward: func(de []float32) [][]float32 {
				forward()
				dx, dgain, dt := make([]float32, n), make([]float32, mix.Dim), make([]float32, n)
				mix.Grad(x, gain, inv, de, rows, dx, dgain)
				for i := range dt {
					dt[i] = de[i] * mix.TableScale * mix.Mix
				}
				return [][]float32{dx, dgain, dt}
			},
		}.check(t)
	}
}

func TestAttentionGradient(t *testing.T) {
	for _, c := range []struct {
		AttentionSpec
		lengths []int
	}{
		{AttentionSpec{Batch: 1, Seq: 1, Heads: 1, HeadDim: 2}, []int{1}},
		{AttentionSpec{Batch: 1, Seq: 3, Heads: 1, HeadDim: 6, QKNorm: true}, []int{3}},
		{AttentionSpec{Batch: 2, Seq: 5, Heads: 3, HeadDim: 4, QKNorm: true}, []int{5, 5}},
		{AttentionSpec{Batch: 1, Seq: 70, Heads: 2, HeadDim: 2}, []int{70}},
		{AttentionSpec{Batch: 1, Seq: 35, Heads: 1, HeadDim: 18, QKNorm: true}, []int{35}},
		{AttentionSpec{Batch: 2, Seq: 20, Heads: 2, HeadDim: 4, QKNorm: true}, []int{7, 1, 18, 1, 13}},
	} {
		s := c.AttentionSpec
		t.Run(fmt.Sprintf("%v of %d, %d heads of %d", c.lengths, s.Seq, s.Heads, s.HeadDim), func(t *testing.T) {
			s = attentionSpec(s)
			s.Scale, s.Train = 0.8, true
			a := NewAttention(s)
			n := s.Batch * s.Seq * s.Heads * s.HeadDim
			qkv, y := random(1, 3*n), make([]float32, n)
			operation{
				in:      [][]float32{qkv},
				forward: func() []float32 { a.Forward(c.lengths, qkv, y); return y },
				backward: func(dy []float32) [][]float32 {
					a.Forward(c.lengths, qkv, y)
					d := make([]float32, 3*n)
					a.Grad(c.lengths, qkv, dy, d)
					return [][]float32{d}
				},
			}.check(t)
		})
	}
}

func TestCrossEntropyGradient(t *testing.T) {
	for _, cols := range []int{1, 9, 200} {
		targets := []int32{0, int32(cols - 1), -1}
		logits := random(1, len(targets)*cols)
		nll := make([]float32, len(targets))
		weights := random(2, len(targets))
		operation{
			in:      [][]float32{logits},
			weights: weights,
			forward: func() []float32 {
				CrossEntropy(M(append([]float32(nil), logits...), cols), targets, cols, false, 0, nll)
				return nll
			},
			backward: func([]float32) [][]float32 {
				d := append([]float32(nil), logits...)
				for r := range targets {
					CrossEntropy(M(d[r*cols:], cols), targets[r:r+1], cols, true, weights[r], nll)
				}
				return [][]float32{d}
			},
		}.check(t)
	}
}

func TestRouteGradient(t *testing.T) {
	rows, cols := 4, 5
	z, p, prob, choice := random(1, rows*cols), make([]float32, rows), make([]float32, rows*cols), make([]int32, rows)
	dp, bias := random(2, rows), random(3, cols)
	weights := dp
	for range rows { // the gradient of prob is the same in every row
		weights = append(weights, bias...)
	}
	operation{
		in:      [][]float32{z},
		weights: weights,
		forward: func() []float32 {
			Route(z, cols, choice, p, prob)
			return append(append([]float32(nil), p...), prob...)
		},
		backward: func([]float32) [][]float32 {
			Route(z, cols, choice, p, prob)
			dz := make([]float32, rows*cols)
			RouteGrad(prob, choice, dp, bias, dz)
			return [][]float32{dz}
		},
	}.check(t)
}

// TestScatterGather: the gradient of a gathered row is its sum over the positions that read it.
func TestScatterGather(t *testing.T) {
	table, ids := random(1, 6*3), []int32{4, 1, 4}
	y, spec := make([]float32, 9), configs.WeightQuant{Bits: 4}
	operation{
		in:      [][]float32{table},
		forward: func() []float32 { Gather(table, ids, 3, spec, Float, y); return y },
		backward: func(dy []float32) [][]float32 {
			d := make([]float32, len(table))
			ScatterAdd(dy, ids, 3, 1, d)
			return [][]float32{d}
		},
	}.check(t)
}

func TestGemm(t *testing.T) {
	const rows, cols, inner = 3, 5, 7
	a, b := random(1, rows*inner), random(2, inner*cols)
	transpose := func(x []float32, rows, cols int) []float32 {
		y := make([]float32, len(x))
		for r := range rows {
			for c := range cols {
				y[c*rows+r] = x[r*cols+c]
			}
		}
		return y
	}
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			ma, mb := M(a, inner), M(b, cols)
			if ta {
				ma = M(transpose(a, rows, inner), rows).T()
			}
			if tb {
				mb = M(transpose(b, inner, cols), inner).T()
			}
			got := random(3, rows*cols)
			before := append([]float32(nil), got...)
			Gemm(rows, cols, inner, ma, mb, true, M(got, cols))
			for r := range rows {
				for c := range cols {
					want := float64(before[r*cols+c])
					for k := range inner {
						want += float64(a[r*inner+k]) * float64(b[k*cols+c])
					}
					if math.Abs(want-float64(got[r*cols+c])) > 1e-5 {
						t.Errorf("transposed %v %v: element %d,%d is %v, want %v", ta, tb, r, c, got[r*cols+c], want)
					}
				}
			}
		}
	}
}

// TestShortSlices: a slice that is too short must panic in Go, not reach C.
func TestShortSlices(t *testing.T) {
	x := make([]float32, 8)
	for name, f := range map[string]func(){
		"gemm":    func() { Gemm(3, 3, 3, M(x, 3), M(x, 3), false, M(x, 3)) },
		"stride":  func() { Gemm(2, 3, 2, M(x, 2), M(x, 2), false, M(x, 4)) },
		"norm":    func() { RMSNorm(x, x[:4], 0, x[:4], x) },
		"gather":  func() { Gather(x, []int32{2}, 4, configs.WeightQuant{}, Float, x) },
		"scatter": func() { ScatterAdd(x, []int32{-1}, 4, 1, x) },
		"target":  func() { CrossEntropy(M(x, 8), []int32{8}, 8, false, 0, x) },
		"add":     func() { Add(x[:2], x, x) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
