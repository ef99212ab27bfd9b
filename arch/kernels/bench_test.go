package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/fakequant"
	"github.com/chiplm/chiplm/qat/simd"
)

// The benchmarks here are of products, attention and the head, at the sizes of the reference model with a micro-batch of
// four sequences; BenchmarkRows has the loops over rows. Names are key=value, as benchstat groups them.

const (
	comboBatch, comboSeq, comboHeads = 4, 256, 4
	comboRows                        = comboBatch * comboSeq
	comboWidth, comboVocab           = 128, 4096
	comboHeadRows                    = 256 // whose logits exist at a time
)

// comboShapes are the matrices of the reference model, out x in, and the rows that meet them.
var comboShapes = []struct {
	name          string
	rows, out, in int
}{
	{"qkv", comboRows, 384, 128},
	{"attention_output", comboRows, 128, 128},
	{"gate", comboRows, 320, 128},
	{"down", comboRows, 128, 320},
	{"ple_gate", comboRows, 64, 128},
	{"ple_output", comboRows, 128, 64},
	{"head", comboHeadRows, comboVocab, comboWidth},
	{"square", 1024, 1024, 1024}, // what the peak of the library is measured with
}

// onEachPath runs f as a sub-benchmark on every path of this machine, and reports its speed from its arithmetic, or from
// the bytes that it must read and write where flop is 0.
func onEachPath(b *testing.B, name string, flop, bytes int, f func()) {
	for _, p := range simd.Paths() {
		b.Run(fmt.Sprintf("%s/path=%v", name, p), func(b *testing.B) {
			defer simd.Use(simd.Use(p))
			if flop == 0 {
				b.SetBytes(int64(bytes))
			}
			for b.Loop() {
				f()
			}
			if flop > 0 {
				b.ReportMetric(float64(flop)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			}
		})
	}
}

// BenchmarkGemm times the float products of a step: y = x times the transpose of w, which runs so where nothing is
// quantised, and the gradients of x and w.
func BenchmarkGemm(b *testing.B) {
	for _, s := range comboShapes {
		x, w, y := random(1, s.rows*s.in), random(2, s.out*s.in), random(3, s.rows*s.out)
		dx, dw := make([]float32, len(x)), make([]float32, len(w))
		flop := 2 * s.rows * s.out * s.in
		onEachPath(b, "product=y/weight="+s.name, flop, 0, func() {
			Gemm(s.rows, s.out, s.in, M(x, s.in), M(w, s.in).T(), false, M(y, s.out))
		})
		onEachPath(b, "product=dx/weight="+s.name, flop, 0, func() {
			Gemm(s.rows, s.in, s.out, M(y, s.out), M(w, s.in), false, M(dx, s.in))
		})
		onEachPath(b, "product=dw/weight="+s.name, flop, 0, func() {
			Gemm(s.out, s.in, s.rows, M(y, s.out).T(), M(x, s.in), false, M(dw, s.in))
		})
	}
}

// BenchmarkProductIntegers times the forward products on integer codes.
func BenchmarkProductIntegers(b *testing.B) {
	spec := qat.Spec{Bits: 4, Group: 64, Scale: configs.ScaleF32}
	for _, s := range comboShapes {
		w := fakequant.NewPacked(spec, 1, s.out, s.in)
		fakequant.Weights(spec, random(1, s.out*s.in), s.out, s.in, make([]float32, s.out*s.in), w)
		x, scales := make([]uint8, s.rows*4*fakequant.Quads(s.in)), make([]float32, s.rows)
		fakequant.Activations(random(2, s.rows*s.in), s.rows, s.in, nil, x, scales)
		y := make([]float32, s.rows*s.out)
		onEachPath(b, "weight="+s.name, 2*s.rows*s.out*s.in, 0, func() {
			ProductIntegers(x, scales, s.rows, w, 0, M(y, s.out))
		})
	}
}

// BenchmarkProductSum8 times the router of four experts.
func BenchmarkProductSum8(b *testing.B) {
	const experts = 4
	x, w, y := random(1, comboRows*comboWidth), random(2, experts*comboWidth), make([]float32, comboRows*experts)
	onEachPath(b, "weight=router", 2*comboRows*comboWidth*experts, 0, func() {
		ProductSum8(x, comboRows, comboWidth, w, experts, M(y, experts))
	})
}

// BenchmarkAttention times attention and its gradient; the arithmetic is that of causal attention, two products forward
// and four back.
func BenchmarkAttention(b *testing.B) {
	const dim = comboWidth / comboHeads
	cosines, sines := qat.Rotary(comboSeq, dim, 10000)
	qkv, dy := random(1, comboRows*3*comboWidth), random(2, comboRows*comboWidth)
	y, dqkv := make([]float32, len(dy)), make([]float32, len(qkv))
	for _, mode := range []struct {
		name string
		Mode
	}{{"float", Float}, {"values", Values}} {
		a := NewAttention(AttentionSpec{Batch: comboBatch, Seq: comboSeq, Heads: comboHeads, HeadDim: dim, Cos: cosines, Sin: sines,
			QKNorm: true, Eps: 1e-6, Scale: float32(1 / math.Sqrt(dim)), Mode: mode.Mode, Train: true})
		const flop = 2 * comboRows * comboWidth * (comboSeq + 1)
		lengths := slices.Repeat([]int{comboSeq}, comboBatch)
		onEachPath(b, "direction=forward/mode="+mode.name, flop, 0, func() { a.Forward(lengths, qkv, y) })
		a.Forward(lengths, qkv, y)
		onEachPath(b, "direction=gradient/mode="+mode.name, 2*flop, 0, func() { a.Grad(lengths, qkv, dy, dqkv) })
	}
}

// BenchmarkCrossEntropy times the head's softmax: with the gradient the logits, which it overwrites, are copied each
// time, and that is part of the time.
func BenchmarkCrossEntropy(b *testing.B) {
	logits, targets, nll := random(1, comboHeadRows*comboVocab), make([]int32, comboHeadRows), make([]float32, comboHeadRows)
	for i := range targets {
		targets[i] = int32(i * 16)
	}
	work := make([]float32, len(logits))
	onEachPath(b, "gradient=no", 0, 4*len(logits), func() { CrossEntropy(M(logits, comboVocab), targets, comboVocab, false, 1, nll) })
	onEachPath(b, "gradient=yes", 0, 8*len(logits), func() {
		copy(work, logits)
		CrossEntropy(M(work, comboVocab), targets, comboVocab, true, 1, nll)
	})
}

// BenchmarkRoute times the choice of one of four experts and its gradient.
func BenchmarkRoute(b *testing.B) {
	const experts = 4
	z, prob, p := random(1, comboRows*experts), make([]float32, comboRows*experts), make([]float32, comboRows)
	choice, dz, bias := make([]int32, comboRows), make([]float32, len(z)), random(2, experts)
	onEachPath(b, "direction=forward", 0, 4*(2*len(z)+2*comboRows), func() { Route(z, experts, choice, p, prob) })
	Route(z, experts, choice, p, prob)
	onEachPath(b, "direction=gradient", 0, 4*(2*len(z)+2*comboRows), func() { RouteGrad(prob, choice, p, bias, dz) })
}
