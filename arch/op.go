package arch

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/qat/fakequant"
)

// op is one coarse operation of the graph, a node of its own: it owns the buffer of its result. Its name is unique in
// the graph, so that Gorgonia never merges two of them.
type op struct {
	name    string
	types   []hm.Type // of the inputs, then of the result
	shape   tensor.Shape
	out     []float32 // the buffer of the result, nil for a scalar
	diff    []bool
	do      func(in []gorgonia.Value) (gorgonia.Value, error)
	grad    func(out, grad *gorgonia.Node) (gorgonia.Nodes, error)
	profile *profile.Profile // or nil
	cost    profile.Cost     // of do, but for parts that it charges itself
}

// Arity is the number of inputs.
func (o *op) Arity() int { return len(o.types) - 1 }

// Type is that of a function from the inputs to the result.
func (o *op) Type() hm.Type { return hm.NewFnType(o.types...) }

// InferShape gives the shape of the result, known when the graph is built.
func (o *op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.shape, nil }

// Do runs the operation. A panic inside would kill the process from Gorgonia's goroutine; it becomes an error.
func (o *op) Do(in ...gorgonia.Value) (v gorgonia.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("operation %s: %v", o.name, r)
		}
	}()
	if len(in) != o.Arity() {
		return nil, fmt.Errorf("operation %s: %d inputs where %d belong", o.name, len(in), o.Arity())
	}
	o.profile.Lap(profile.Cost{}) // what came before was the machine's
	v, err = o.do(in)
	o.profile.Lap(o.cost)
	return v, err
}

// DiffWRT says for which inputs there is a gradient.
func (o *op) DiffWRT(int) []bool { return o.diff }

// SymDiff adds the nodes that compute the gradients.
func (o *op) SymDiff(_ gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	if o.grad == nil {
		return nil, fmt.Errorf("operation %s has no gradient", o.name)
	}
	return o.grad(out, grad)
}

// ReturnsPtr is true: the result is a buffer of the operation.
func (o *op) ReturnsPtr() bool { return true }

// CallsExtern is false, so that the machine allocates nothing for the result.
func (o *op) CallsExtern() bool { return false }

// OverwritesInput is -1: inputs are only read.
func (o *op) OverwritesInput() int { return -1 }

// WriteHash writes the unique name and the shape.
func (o *op) WriteHash(h hash.Hash) { fmt.Fprintf(h, "chiplm/arch %s %v", o.name, o.shape) }

// Hashcode is the hash of [op.WriteHash].
func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String is the name for messages.
func (o *op) String() string { return o.name }

// profiled is a quantisation of weights with its time charged to a profile.
type profiled struct {
	*fakequant.Op
	profile *profile.Profile
	cost    profile.Cost
}

// Do runs the operation.
func (p profiled) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if p.Held() {
		return p.Op.Do(in...)
	}
	p.profile.Lap(profile.Cost{})
	v, err := p.Op.Do(in...)
	p.profile.Lap(p.cost)
	return v, err
}

// floats are the elements of a float32 tensor; a value of another type panics, and [op.Do] makes that an error. Data of
// a value would box the slice at every call.
func floats(v gorgonia.Value) []float32 {
	d := v.(*tensor.Dense)
	if d.Dtype() != tensor.Float32 {
		panic(fmt.Sprintf("a tensor of %v where float32 belongs", d.Dtype()))
	}
	return d.Float32s()
}

// ints are the elements of an int32 tensor.
func ints(v gorgonia.Value) []int32 {
	d := v.(*tensor.Dense)
	if d.Dtype() != tensor.Int32 {
		panic(fmt.Sprintf("a tensor of %v where int32 belongs", d.Dtype()))
	}
	return d.Int32s()
}
