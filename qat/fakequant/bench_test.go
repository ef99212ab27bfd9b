package fakequant

import (
	"fmt"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/simd"
)

// onEachPath runs f as a sub-benchmark on every path of this machine; n elements are read, and their values and codes
// written.
func onEachPath(b *testing.B, name string, n int, f func()) {
	for _, p := range simd.Paths() {
		b.Run(fmt.Sprintf("%s/path=%v", name, p), func(b *testing.B) {
			defer simd.Use(simd.Use(p))
			b.SetBytes(int64(n) * (4 + 4 + 1))
			for b.Loop() {
				f()
			}
		})
	}
}

// BenchmarkWeights times the quantisation of matrices of the reference model.
func BenchmarkWeights(b *testing.B) {
	for _, s := range []struct {
		name       string
		rows, cols int
	}{{"qkv", 384, 128}, {"down", 128, 320}, {"head", 4096, 128}} {
		for _, scale := range []configs.ScaleType{configs.ScaleF32, configs.ScaleF16} {
			spec := qat.Spec{Bits: 4, Group: 64, Scale: scale}
			w, values := wave(s.rows*s.cols), make([]float32, s.rows*s.cols)
			packed := NewPacked(spec, 1, s.rows, s.cols)
			onEachPath(b, fmt.Sprintf("weight=%s/scale=%s", s.name, scale), len(w), func() {
				Weights(spec, w, s.rows, s.cols, values, packed)
			})
		}
	}
}

// BenchmarkActivations times the quantisation of what enters products, for a micro-batch of four sequences.
func BenchmarkActivations(b *testing.B) {
	const rows = 1024
	for _, cols := range []int{64, 128, 320} {
		x, values := wave(rows*cols), make([]float32, rows*cols)
		codes, scales := make([]uint8, rows*4*Quads(cols)), make([]float32, rows)
		onEachPath(b, fmt.Sprintf("width=%d", cols), len(x), func() { Activations(x, rows, cols, values, codes, scales) })
	}
}

// wave is n floats between -1 and 1 without a short period.
func wave(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*7919%10007)/5003.5 - 1
	}
	return x
}
