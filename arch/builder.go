package arch

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/fakequant"
	"github.com/chiplm/chiplm/qat/pages"
)

// builder holds what is shared while the nodes of a graph are made. The first error stays in err, and nodes made after
// it are nil.
type builder struct {
	cfg    *configs.Config
	opt    Options
	graph  *gorgonia.ExprGraph
	rows   int // positions in a batch
	params map[string]*gorgonia.Node
	specs  map[string]configs.Tensor
	ids    *gorgonia.Node
	ngram  *gorgonia.Node // rows of the bigram table; nil without one
	target *gorgonia.Node
	quant  map[string]*weight
	traces []trace // results of operations, in the order in which they were made
	steps  []Step
	err    error

	sequences      *sequences
	cosines, sines []float32
	headGrad       *gorgonia.Node        // gradient of a tied head with respect to the token embedding
	pleGrad        []float32             // gradient of the per-layer embeddings, filled layer by layer
	pleParts       []*gorgonia.Node      // the nodes that fill it
	tables         map[string]*tableRows // whose gradient is zero but for some rows
	head           *head
	routers        []*experts
}

// trace names a buffer for the search for the first value that is not finite.
type trace struct {
	name string
	data []float32
}

// input is an operand of an operation; diff: the operation gives its gradient.
type input struct {
	node *gorgonia.Node
	diff bool
}

func wrt(n *gorgonia.Node) input   { return input{n, true} }
func fixed(n *gorgonia.Node) input { return input{n, false} }

// compute fills out from the inputs.
type compute func(in []gorgonia.Value, out []float32)

// gradients makes the gradients of the inputs, nil for those that are fixed, from the gradient of the result.
type gradients func(out, grad *gorgonia.Node) gorgonia.Nodes

// node adds an operation whose result is a new buffer of that shape. cost is what the profile charges f to, but for
// parts that f itself charges.
func (b *builder) node(name string, cost profile.Cost, shape tensor.Shape, f compute, g gradients, in ...input) *gorgonia.Node {
	return b.nodeInto(name, cost, shape, pages.Make[float32](shape.TotalSize()), f, g, in...)
}

// nodeInto adds an operation whose result is a given buffer. f may be nil: the inputs have filled it then, and there is
// no cost.
func (b *builder) nodeInto(name string, cost profile.Cost, shape tensor.Shape, out []float32, f compute, g gradients,
	in ...input) *gorgonia.Node {
	value := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(out))
	b.traces = append(b.traces, trace{name, out})
	return b.apply(&op{
		name:  name,
		types: []hm.Type{gorgonia.TensorType{Dims: len(shape), Of: tensor.Float32}},
		shape: shape,
		out:   out,
		cost:  cost,
		do: func(in []gorgonia.Value) (gorgonia.Value, error) {
			if f != nil {
				f(in, out)
			}
			return value, nil
		},
	}, g, in...)
}

// apply adds an operation; o.types holds only the type of the result on entry.
func (b *builder) apply(o *op, g gradients, in ...input) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	var nodes []*gorgonia.Node
	var types []hm.Type
	for _, i := range in {
		if i.node == nil {
			b.err = fmt.Errorf("operation %s: an input has no gradient", o.name)
			return nil
		}
		nodes = append(nodes, i.node)
		types = append(types, i.node.Type())
		o.diff = append(o.diff, i.diff)
	}
	o.types = append(types, o.types...)
	o.profile = b.opt.Profile
	if g != nil {
		o.grad = func(out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n := g(out, grad)
			return n, b.err
		}
	}
	n, err := gorgonia.ApplyOp(o, nodes...)
	if err != nil {
		b.err = fmt.Errorf("operation %s: %w", o.name, err)
		return nil
	}
	return n
}

// fork joins the gradients of a node that is read twice: the later reader leaves its gradient here, and the earlier one
// adds it to its own. The later one must depend on the earlier one: differentiation then meets it first.
type fork struct{ grad *gorgonia.Node }

// inputs is the fork as an extra operand, if there is one.
func (f *fork) inputs() []input {
	if f == nil {
		return nil
	}
	return []input{fixed(f.grad)}
}

// from is the fork's gradient among the values of an operation that has it at place i, or nil.
func (f *fork) from(in []gorgonia.Value, i int) []float32 {
	if f == nil {
		return nil
	}
	return floats(in[i])
}

// weight is a matrix as products read it.
type weight struct {
	name       string
	node       *gorgonia.Node // the parameter, or its quantised values
	spec       qat.Spec
	mode       kernels.Mode // Float when this matrix is not quantised
	rows, cols int
	parts      int // equal shares of the rows that are matrices of their own: experts
	quant      *fakequant.Op
}

// weight gives the quantised form of a matrix; it is computed once in a run, however often it is read.
func (b *builder) weight(name string) *weight { return b.weights(name, 1) }

// weights is a weight that holds several matrices, one after the other.
func (b *builder) weights(name string, parts int) *weight {
	if w, ok := b.quant[name]; ok || b.err != nil {
		return w
	}
	t := b.specs[name]
	w := &weight{name: name, node: b.params[name], spec: t.Quant, rows: t.Rows(), cols: t.Cols(), parts: parts}
	b.quant[name] = w
	w.mode = b.mode()
	if qat.MaxCode(w.spec.Bits) == 0 {
		w.mode = kernels.Float
	}
	if w.mode == kernels.Float {
		return w
	}
	packed := 0
	if w.mode == kernels.Codes {
		packed = parts
	}
	op, err := fakequant.New(name, w.spec, w.rows, w.cols, packed)
	if err != nil {
		b.err = err
		return w
	}
	w.quant = op
	timed := profiled{op, b.opt.Profile, profile.Cost{Kind: profile.QuantiseWeights, Bytes: weightBytes * int64(w.rows*w.cols)}}
	if w.node, err = gorgonia.ApplyOp(timed, b.params[name]); err != nil {
		b.err = fmt.Errorf("quantise %s: %w", name, err)
	}
	return w
}

// mode is how products of quantised weights are computed in this graph.
func (b *builder) mode() kernels.Mode {
	switch {
	case b.opt.Float:
		return kernels.Float
	case b.cfg.Quant.Activations.Bits == 8:
		return kernels.Codes
	}
	return kernels.Values
}

// activationMode is the mode of products between activations: attention.
func (b *builder) activationMode() kernels.Mode {
	if b.cfg.Quant.Activations.Bits != 8 {
		return kernels.Float
	}
	return b.mode()
}
