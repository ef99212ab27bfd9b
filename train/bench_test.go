package train

import (
	"fmt"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/configs"
)

// comboParameters are those of the reference model, with gradients as their first weights.
func comboParameters(b *testing.B) (params []*Parameter, values []gorgonia.ValueGrad, total int) {
	b.Helper()
	cfg, err := configs.Load("builtin:combo.yaml")
	if err != nil {
		b.Fatal(err)
	}
	w := arch.InitWeights(cfg, 1)
	for i, t := range w.Tensors {
		p := newParameter(t, w.Data[i])
		copy(p.gradient, p.weights)
		params, values, total = append(params, p), append(values, p), total+t.Len()
	}
	return params, values, total
}

// BenchmarkAdamW times the update of the reference model: weight and two moments read and written, gradient read.
func BenchmarkAdamW(b *testing.B) {
	for _, threads := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			_, values, total := comboParameters(b)
			a := &AdamW{LR: 1e-6, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Threads: threads}
			if err := a.Step(values); err != nil { // the first makes the moments
				b.Fatal(err)
			}
			b.SetBytes(7 * 4 * int64(total))
			for b.Loop() {
				if err := a.Step(values); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGradient times the sum of two gradients of the reference model and the norm of one.
func BenchmarkGradient(b *testing.B) {
	params, _, total := comboParameters(b)
	sum := make([][]float32, len(params))
	for i, p := range params {
		sum[i] = make([]float32, len(p.gradient))
	}
	b.Run("work=sum", func(b *testing.B) {
		b.SetBytes(3 * 4 * int64(total))
		for b.Loop() {
			for i, p := range params {
				kernels.Add(sum[i], p.gradient, sum[i])
			}
		}
	})
	b.Run("work=norm", func(b *testing.B) {
		b.SetBytes(4 * int64(total))
		for b.Loop() {
			for _, p := range params {
				kernels.SumSquares(p.gradient)
			}
		}
	})
}
