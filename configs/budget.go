package configs

// Reading says how much of a tensor one token reads.
type Reading string

// The ways a token reads a tensor.
const (
	ReadWhole  Reading = "whole"      // a matrix of a product, or a norm
	ReadRow    Reading = "one row"    // a table, looked up by token
	ReadExpert Reading = "one expert" // the chosen expert's share
)

// TensorBudget is what a tensor costs on the chip. Bytes are those of the image: rows of whole 16-byte blocks, or columns
// of them.
type TensorBudget struct {
	Tensor
	Reading   Reading
	Codes     int64 // bytes of the codes (of the values, with 32 bits)
	Scales    int64 // bytes of the scales
	TokenRead int64 // bytes, scales included, that a token reads; a tied embedding is read whole and one row more
	Products  int64 // weights that enter a token's matrix products
}

// ClassBudget adds up the tensors of a class that are read alike.
type ClassBudget struct {
	Class      TensorClass
	Reading    Reading
	Bits       int
	Tensors    int
	Parameters int64
	Codes      int64
	Scales     int64
	TokenRead  int64
}

// Budget is what a model costs, from its sizes alone.
type Budget struct {
	Tensors []TensorBudget // in the order of [Config.Tensors]
	Classes []ClassBudget  // in order of first appearance
	Total   ClassBudget    // over all; Class, Reading and Bits are empty

	// Products is the number of weights that enter a token's matrix products; a tied embedding counts once, as the head.
	Products int64
	// TrainFLOP is the model arithmetic of a token in training: 6 x Products, and 6 x layers x d_model x (T+1) for causal
	// attention over a context of T. Recomputation, masked scores and fake quantisation count nothing.
	TrainFLOP int64
}

// Budget works out parameters, bytes and arithmetic from the sizes. It is pure arithmetic: no weight is loaded.
func (c *Config) Budget() Budget {
	var b Budget
	for _, t := range c.Tensors() {
		tb := c.tensorBudget(t)
		b.Tensors = append(b.Tensors, tb)
		b.addClass(tb)
		b.Products += tb.Products
	}
	b.TrainFLOP = 6*b.Products + 6*int64(c.NLayers)*int64(c.DModel)*int64(c.ContextLength+1)
	return b
}

func (c *Config) tensorBudget(t Tensor) TensorBudget {
	rows, cols, q := int64(t.Rows()), int64(t.Cols()), t.Quant
	stride := func(n int64) int64 { return (n*int64(q.Bits) + 127) / 128 * 16 }
	codes := rows * stride(cols)
	if t.Block > 0 {
		codes = rows / int64(t.Block) * cols * stride(int64(t.Block))
	}
	var rowScales int64
	if q.Bits != 32 {
		groups := int64(1)
		if q.Group > 0 {
			groups = (cols + int64(q.Group) - 1) / int64(q.Group)
		}
		rowScales = groups * 4
		if q.Scale == ScaleF16 {
			rowScales = groups * 2
		}
	}
	b := TensorBudget{Tensor: t, Reading: ReadWhole, Codes: codes, Scales: rows * rowScales}
	read := rows
	product := len(t.Shape) > 1
	switch {
	case t.Class == ClassPLETable, t.Class == ClassNgramTable, t.Class == ClassEmbedding && !c.TieEmbeddings:
		b.Reading, read, product = ReadRow, 1, false
	case t.Class == ClassEmbedding:
		read = rows + 1
	case c.Experts > 1 && expertTensor(t):
		b.Reading, read = ReadExpert, rows/int64(c.Experts)
	}
	b.TokenRead = (b.Codes + b.Scales) * read / rows // whole: rows are alike, and a transposed block is an expert's
	if product {
		b.Products = min(read, rows) * cols
	}
	return b
}

// expertTensor says whether a tensor holds the experts' weights, one after the other.
func expertTensor(t Tensor) bool {
	_, part := SplitTensor(t.Name)
	return part == Gate || part == Up || part == Down
}

func (b *Budget) addClass(t TensorBudget) {
	i := 0
	for ; i < len(b.Classes); i++ {
		if b.Classes[i].Class == t.Class && b.Classes[i].Reading == t.Reading {
			break
		}
	}
	if i == len(b.Classes) {
		b.Classes = append(b.Classes, ClassBudget{Class: t.Class, Reading: t.Reading, Bits: t.Quant.Bits})
	}
	for _, row := range []*ClassBudget{&b.Classes[i], &b.Total} {
		row.Tensors++
		row.Parameters += int64(t.Len())
		row.Codes += t.Codes
		row.Scales += t.Scales
		row.TokenRead += t.TokenRead
	}
}
