package configs

import (
	"fmt"
	"strconv"
	"strings"
)

// TensorClass groups tensors that are quantised alike.
type TensorClass string

// The tensor classes. Norms and the router of experts are float32 always.
const (
	ClassTrunk      TensorClass = "trunk"       // the matrices of the layers, and the projection of the per-layer embeddings
	ClassEmbedding  TensorClass = "embedding"   // token_embedding, also when it is the tied head
	ClassHead       TensorClass = "head"        // an untied head
	ClassPLETable   TensorClass = "ple_table"   // the per-layer embedding table
	ClassNgramTable TensorClass = "ngram_table" // the hashed bigram table
	ClassNorm       TensorClass = "norm"
	ClassRouter     TensorClass = "router"
)

// Table says whether a token reads single rows of the tensors of a class, those of its id; a tied embedding is read whole
// as well, as the head.
func (c TensorClass) Table() bool {
	return c == ClassEmbedding || c == ClassPLETable || c == ClassNgramTable
}

// Tensor is one parameter of a model: its name, shape [rows, columns] (or [columns] for a norm) and quantisation.
type Tensor struct {
	Name  string
	Shape []int
	Class TensorClass
	Quant WeightQuant // Bits is 32 for norms and routers
	// Block is 0 for a tensor whose image stores it by rows. Otherwise the image stores it transposed, a block of so many
	// rows at a time, so that single columns can be read: down behind a relu gate, of whose neurons most are silent.
	Block int
}

// Rows is the number of rows: 1 for a vector.
func (t Tensor) Rows() int {
	if len(t.Shape) == 1 {
		return 1
	}
	return t.Shape[0]
}

// Cols is the length of a row.
func (t Tensor) Cols() int { return t.Shape[len(t.Shape)-1] }

// Len is the number of parameters.
func (t Tensor) Len() int { return t.Rows() * t.Cols() }

// The names of tensors that occur once in a model.
const (
	TokenEmbedding    = "token_embedding"
	NgramTable        = "ngram_table"
	PLEProjection     = "ple_projection"
	PLEProjectionNorm = "ple_projection_norm"
	PLETable          = "ple_table"
	OutputNorm        = "output_norm"
	Head              = "head"
)

// LayerTensor is the name of a tensor of one layer, such as layers.3.qkv.
func LayerTensor(layer int, part string) string { return fmt.Sprintf("layers.%d.%s", layer, part) }

// SplitTensor takes the name of a layer's tensor apart: 3 and qkv of layers.3.qkv. A tensor that occurs once has layer -1,
// and its name is the part.
func SplitTensor(name string) (layer int, part string) {
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		if number, part, ok := strings.Cut(rest, "."); ok {
			if layer, err := strconv.Atoi(number); err == nil && layer >= 0 {
				return layer, part
			}
		}
	}
	return -1, name
}

// The parts of a layer, in the order in which they are stored. With E experts, rows e*d_ff to (e+1)*d_ff of gate and
// up and rows e*d_model to (e+1)*d_model of down belong to expert e.
const (
	AttentionNorm   = "attention_norm"   // [d_model]
	QKV             = "qkv"              // [3*d_model, d_model]: queries, keys, values, each by head
	AttentionOutput = "attention_output" // [d_model, d_model]
	FFNNorm         = "ffn_norm"         // [d_model]
	Router          = "router"           // [experts, d_model], only with experts > 1
	Gate            = "gate"             // [experts*d_ff, d_model]
	Up              = "up"               // [experts*d_ff, d_model]
	Down            = "down"             // [experts*d_model, d_ff]
	PLEGate         = "ple_gate"         // [ple_dim, d_model]
	PLEOutput       = "ple_output"       // [d_model, ple_dim]
	PLENorm         = "ple_norm"         // [d_model]
)

// Tensors lists the parameters of the model in the order in which checkpoints and images store them.
func (c *Config) Tensors() []Tensor {
	d, f, p, l := c.DModel, c.DFF, c.PLEDim, c.NLayers
	e := max(c.Experts, 1)
	var ts []Tensor
	add := func(name string, class TensorClass, shape ...int) {
		ts = append(ts, Tensor{Name: name, Shape: shape, Class: class, Quant: c.WeightQuant(class)})
	}
	add(TokenEmbedding, ClassEmbedding, c.VocabSize, d)
	if c.NgramRows > 0 {
		add(NgramTable, ClassNgramTable, c.NgramRows, d)
	}
	if p > 0 {
		add(PLEProjection, ClassTrunk, l*p, d)
		add(PLEProjectionNorm, ClassNorm, p)
		add(PLETable, ClassPLETable, c.VocabSize, l*p)
	}
	for i := range l {
		layer := func(part string, class TensorClass, shape ...int) { add(LayerTensor(i, part), class, shape...) }
		layer(AttentionNorm, ClassNorm, d)
		layer(QKV, ClassTrunk, 3*d, d)
		layer(AttentionOutput, ClassTrunk, d, d)
		layer(FFNNorm, ClassNorm, d)
		if e > 1 {
			layer(Router, ClassRouter, e, d)
		}
		layer(Gate, ClassTrunk, e*f, d)
		layer(Up, ClassTrunk, e*f, d)
		layer(Down, ClassTrunk, e*d, f)
		if c.Activation == ReLU {
			ts[len(ts)-1].Block = d
		}
		if p > 0 {
			layer(PLEGate, ClassTrunk, p, d)
			layer(PLEOutput, ClassTrunk, d, p)
			layer(PLENorm, ClassNorm, d)
		}
	}
	add(OutputNorm, ClassNorm, d)
	if !c.TieEmbeddings {
		add(Head, ClassHead, c.VocabSize, d)
	}
	return ts
}

// WeightQuant is the quantisation of a tensor class: quant.weights, changed by quant.classes.
func (c *Config) WeightQuant(class TensorClass) WeightQuant {
	if class == ClassNorm || class == ClassRouter {
		return WeightQuant{Bits: 32, Scale: ScaleF32}
	}
	q := c.Quant.Weights
	rule := c.Quant.Classes[class]
	if rule.Bits != nil {
		q.Bits = *rule.Bits
	}
	if rule.Group != nil {
		q.Group = *rule.Group
	}
	if rule.Scale != nil {
		q.Scale = *rule.Scale
	}
	if rule.Clip != nil {
		q.Clip = *rule.Clip
	}
	return q
}

// Parameters is the number of trained values.
func (c *Config) Parameters() int {
	n := 0
	for _, t := range c.Tensors() {
		n += t.Len()
	}
	return n
}
