package fakequant

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/pages"
)

// Op is the Gorgonia operation that quantises one weight matrix [rows, cols]. Its value is the matrix of code times
// scale. An Op belongs to one node: it owns the buffer of its result.
type Op struct {
	name       string
	spec       qat.Spec
	rows, cols int
	out        *tensor.Dense
	data       []float32
	packed     *Packed
	done, hold bool
}

// New makes the operation. The name must be unique in the graph: Gorgonia merges operations of equal hash. With parts of
// 1 or more it also packs the codes for integer products, in so many parts of consecutive rows.
func New(name string, spec qat.Spec, rows, cols, parts int) (*Op, error) {
	if qat.MaxCode(spec.Bits) == 0 {
		return nil, fmt.Errorf("fake-quantise %s: %d bits cannot be quantised", name, spec.Bits)
	}
	op := &Op{name: name, spec: spec, rows: rows, cols: cols, data: pages.Make[float32](rows * cols)}
	if parts > 0 {
		op.packed = NewPacked(spec, parts, rows/parts, cols)
	}
	op.out = tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(op.data))
	return op, nil
}

// Hold says whether the weights stay as they were in the last run: runs then leave the result as it is. The first run
// always quantises.
func (op *Op) Hold(hold bool) { op.hold = hold }

// Held says whether the next run leaves the result as it is.
func (op *Op) Held() bool { return op.done && op.hold }

// Packed are the codes of the last run, or nil.
func (op *Op) Packed() *Packed { return op.packed }

// Arity is 1: the weight matrix.
func (op *Op) Arity() int { return 1 }

// Type is that of a function from matrix to matrix.
func (op *Op) Type() hm.Type {
	m := gorgonia.TensorType{Dims: 2, Of: tensor.Float32}
	return hm.NewFnType(m, m)
}

// InferShape gives the shape of the matrix.
func (op *Op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.Shape{op.rows, op.cols}, nil
}

// Do quantises the matrix.
func (op *Op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("fake-quantise %s: %d inputs", op.name, len(in))
	}
	w, ok := in[0].Data().([]float32)
	if !ok || len(w) != len(op.data) {
		return nil, fmt.Errorf("fake-quantise %s: the input %v does not hold %d x %d floats", op.name, in[0].Shape(), op.rows, op.cols)
	}
	if !op.Held() {
		Weights(op.spec, w, op.rows, op.cols, op.data, op.packed)
		op.done = true
	}
	return op.out, nil
}

// DiffWRT says that there is a gradient.
func (op *Op) DiffWRT(int) []bool { return []bool{true} }

// SymDiff passes the gradient straight through.
func (op *Op) SymDiff(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	return gorgonia.Nodes{grad}, nil
}

// ReturnsPtr is true: the result is a buffer of the operation.
func (op *Op) ReturnsPtr() bool { return true }

// CallsExtern is false, so that the machine allocates nothing for the result.
func (op *Op) CallsExtern() bool { return false }

// OverwritesInput is -1: the weights stay.
func (op *Op) OverwritesInput() int { return -1 }

// WriteHash writes all that distinguishes the operation.
func (op *Op) WriteHash(h hash.Hash) {
	fmt.Fprintf(h, "fakequant %s %+v %dx%d", op.name, op.spec, op.rows, op.cols)
}

// Hashcode is the hash of [Op.WriteHash].
func (op *Op) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

// String is the name for messages.
func (op *Op) String() string { return "fakequant " + op.name }
