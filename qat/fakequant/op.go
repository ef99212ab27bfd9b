package fakequant

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/qat"
)

// Op is the Gorgonia operation that quantises one weight matrix [rows, cols]. Its value is a matrix of the same shape,
// in the form given at its making. An Op belongs to one node: it owns the buffer of its result.
type Op struct {
	name       string
	spec       qat.Spec
	rows, cols int
	form       Form
	out        *tensor.Dense
	data       []float32
	scales     []float32
}

// New makes the operation. The name must be unique in the graph: Gorgonia merges operations of equal hash.
func New(name string, spec qat.Spec, rows, cols int, form Form) (*Op, error) {
	if qat.MaxCode(spec.Bits) == 0 {
		return nil, fmt.Errorf("fake-quantise %s: %d bits cannot be quantised", name, spec.Bits)
	}
	op := &Op{name: name, spec: spec, rows: rows, cols: cols, form: form, data: make([]float32, rows*cols)}
	if form == Codes {
		op.scales = make([]float32, rows*qat.Groups(spec, cols))
	}
	op.out = tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(op.data))
	return op, nil
}

// Scales are those of the last run, rows x groups, when the form is [Codes]; else nil.
func (op *Op) Scales() []float32 { return op.scales }

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
	Matrix(op.spec, w, op.rows, op.cols, op.form, op.data, op.scales)
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
	fmt.Fprintf(h, "fakequant %s %+v %dx%d form %d", op.name, op.spec, op.rows, op.cols, op.form)
}

// Hashcode is the hash of [Op.WriteHash].
func (op *Op) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

// String is the name for messages.
func (op *Op) String() string { return "fakequant " + op.name }
