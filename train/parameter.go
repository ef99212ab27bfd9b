package train

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/configs"
)

// Parameter is a tensor of the model with the accumulated gradient of a step, as a solver wants it. Its weights are
// those that the graphs read.
type Parameter struct {
	name              string
	matrix            bool
	weights, gradient []float32
	value, grad       *tensor.Dense
}

var _ gorgonia.ValueGrad = (*Parameter)(nil)

// newParameter wraps the weights of a tensor, without copying them, and allocates its gradient.
func newParameter(t configs.Tensor, weights []float32) *Parameter {
	p := &Parameter{name: t.Name, matrix: len(t.Shape) >= 2, weights: weights, gradient: make([]float32, len(weights))}
	p.value = tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(p.weights))
	p.grad = tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(p.gradient))
	return p
}

// Name is the tensor's name, such as layers.3.qkv.
func (p *Parameter) Name() string { return p.name }

// Value is the tensor of weights.
func (p *Parameter) Value() gorgonia.Value { return p.value }

// Grad is the tensor of gradients of the step under way. It never fails.
func (p *Parameter) Grad() (gorgonia.Value, error) { return p.grad, nil }
