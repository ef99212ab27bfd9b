package train

import (
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// Parameter is a tensor of the model with the accumulated gradient of a step, as a solver wants it. Its weights are
// those that the graphs read.
type Parameter struct {
	name              string
	matrix            bool
	cols              int
	weights, gradient []float32
	value, grad       *tensor.Dense

	touched []bool  // by row: whether the gradient may not be zero
	rows    []int32 // those, ascending, of the last whole step
}

var _ gorgonia.ValueGrad = (*Parameter)(nil)

// newParameter wraps the weights of a tensor, without copying them, and allocates its gradient.
func newParameter(t configs.Tensor, weights []float32) *Parameter {
	p := &Parameter{name: t.Name, matrix: len(t.Shape) >= 2, weights: weights, gradient: pages.Make[float32](len(weights))}
	p.cols = t.Shape[len(t.Shape)-1]
	p.touched = make([]bool, len(weights)/p.cols)
	p.value = tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(p.weights))
	p.grad = tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(p.gradient))
	return p
}

// add adds rows from to to of a micro-batch's gradient g; the first micro-batch of a step replaces what is there. Of
// nonzero, the rows of g that may not be zero, ascending, only those between from and to count; nil: all rows. It
// returns the number of values read and written. Ranges of rows that do not meet may be added at the same time.
func (p *Parameter) add(g []float32, nonzero []int32, from, to int, first bool) (values int) {
	touched, sum := p.touched[from:to], p.gradient[from*p.cols:to*p.cols]
	if nonzero == nil {
		g = g[from*p.cols : to*p.cols]
		if !first {
			kernels.Add(sum, g, sum)
			return 3 * len(g)
		}
		copy(sum, g)
		for i := range touched {
			touched[i] = true
		}
		return 2 * len(g)
	}
	if first {
		for i, t := range touched {
			if t {
				clear(sum[i*p.cols : (i+1)*p.cols])
				touched[i] = false
				values += p.cols
			}
		}
	}
	lo, _ := slices.BinarySearch(nonzero, int32(from))
	hi, _ := slices.BinarySearch(nonzero, int32(to))
	nonzero = nonzero[lo:hi]
	for _, r := range nonzero {
		touched[int(r)-from] = true
	}
	kernels.AddRows(g, nonzero, p.cols, p.gradient)
	return values + 3*len(nonzero)*p.cols
}

// finish lists the rows of the sum that may not be zero.
func (p *Parameter) finish() {
	p.rows = p.rows[:0]
	for r, t := range p.touched {
		if t {
			p.rows = append(p.rows, int32(r))
		}
	}
}

// dense says whether all rows of the sum may not be zero.
func (p *Parameter) dense() bool { return len(p.rows) == len(p.touched) }

// squares adds up the squares of the gradient: of elements from to to when it is dense, else of those of rows.
func (p *Parameter) squares(from, to int) (sum float64, values int) {
	if p.dense() {
		return kernels.SumSquares(p.gradient[from:to]), to - from
	}
	for _, r := range p.rows[from:to] {
		sum += kernels.SumSquares(p.gradient[int(r)*p.cols : (int(r)+1)*p.cols])
	}
	return sum, (to - from) * p.cols
}

// Name is the tensor's name, such as layers.3.qkv.
func (p *Parameter) Name() string { return p.name }

// Value is the tensor of weights.
func (p *Parameter) Value() gorgonia.Value { return p.value }

// Grad is the tensor of gradients of the step under way. It never fails.
func (p *Parameter) Grad() (gorgonia.Value, error) { return p.grad, nil }
