package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/chiplm/chiplm/qat"
)

// TestCrossEntropyRules: on every path the nats are those of docs/numerics.md, to the bit; rows may lie apart, and what
// lies between them stays. The gradients have the same bits on every path.
func TestCrossEntropyRules(t *testing.T) {
	for _, cols := range []int{1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129, 200, 1023} {
		for _, gap := range []int{0, 5} {
			targets := []int32{int32(cols - 1), -1, int32(cols / 2), 0, 0}
			rows, stride := len(targets), cols+gap
			logits := random(uint64(cols), rows*stride)
			for i := range logits {
				logits[i] *= 20
			}
			logits[3*stride] = float32(math.NaN())
			logits[4*stride+cols-1] = float32(math.Inf(-1))
			for _, grad := range []bool{false, true} {
				what := fmt.Sprintf("%d logits, gap %d, gradient %v", cols, gap, grad)
				run := func() (logit, nll []float32) {
					logit, nll = append([]float32(nil), logits...), make([]float32, rows)
					CrossEntropy(M(logit, stride), targets, cols, grad, 0.25, nll)
					return logit, nll
				}
				onPaths(t, what, func() []float32 {
					logit, nll := run()
					return append(logit[:3*stride:3*stride], nll[:3]...) // of rows that are not finite only their nats are stated
				})
				logit, nll := run()
				for r, target := range targets {
					row := logits[r*stride : r*stride+cols]
					switch want := nats(row, target); {
					case r >= 3 && !math.IsNaN(float64(nll[r])):
						t.Errorf("%s: row %d is not finite, and has %v nats", what, r, nll[r])
					case r < 3 && nll[r] != want:
						t.Errorf("%s: row %d has %v nats, the rules say %v", what, r, nll[r], want)
					}
					for i := r * stride; i < (r+1)*stride; i++ {
						if same := math.Float32bits(logit[i]) == math.Float32bits(logits[i]); !same && (!grad || i >= r*stride+cols) {
							t.Fatalf("%s: row %d: element %d changed", what, r, i-r*stride)
						}
					}
				}
			}
		}
	}
}

// nats scores a row by the rules of docs/numerics.md.
func nats(row []float32, target int32) float32 {
	if target < 0 {
		return 0
	}
	top := row[0]
	for _, x := range row {
		top = max(top, x)
	}
	a := make([]float32, len(row))
	for i, x := range row {
		a[i] = qat.Exp(x - top)
	}
	return float32(math.Log(float64(qat.Sum8(a))) - float64(row[target]-top))
}
