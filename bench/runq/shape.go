package main

import (
	"fmt"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

// Shape is the sizes of a network that both programs run: Llama 2's with as many key and value heads as query heads, the
// head tied to the embedding, no bias.
type Shape struct {
	Name    string `json:"name"`
	DModel  int    `json:"d_model"`
	DFF     int    `json:"d_ff"`
	Layers  int    `json:"n_layers"`
	Heads   int    `json:"n_heads"`
	Vocab   int    `json:"vocab_size"`
	Context int    `json:"context_length"`
	Group   int    `json:"group"` // columns of weights that share a scale; rows are whole groups
}

// builtin are the shapes that are compared unless the command line says otherwise. The last two are those of two models
// that the opponent's project publishes, with their groups as its exporter would choose them. Of the first of these the
// feed-forward is 172 wide and two query heads share a key head; here it is 192, for whole groups, and no head is shared.
var builtin = []Shape{
	{Name: "combo", DModel: 128, DFF: 320, Layers: 6, Heads: 4, Vocab: 4096, Context: 256, Group: 64},
	{Name: "260K", DModel: 64, DFF: 192, Layers: 5, Heads: 8, Vocab: 512, Context: 512, Group: 64},
	{Name: "15M", DModel: 288, DFF: 768, Layers: 6, Heads: 6, Vocab: 32000, Context: 256, Group: 32},
}

// shapeOf is the opponent's network of the sizes of a chiplm model. What the model has beyond it, such as per-layer
// embeddings, is left out.
func shapeOf(c *configs.Config) (Shape, error) {
	s := Shape{Name: c.Name, DModel: c.DModel, DFF: c.DFF, Layers: c.NLayers, Heads: c.NHeads, Vocab: c.VocabSize,
		Context: c.ContextLength, Group: 64}
	if s.DModel%s.Group != 0 || s.DFF%s.Group != 0 {
		s.Group = 32
	}
	if s.DModel%s.Group != 0 || s.DFF%s.Group != 0 {
		return s, fmt.Errorf("model %s: d_model %d and d_ff %d are not both multiples of %d: the opponent has no model of these sizes, for its rows are whole groups",
			c.Name, c.DModel, c.DFF, s.Group)
	}
	if s.Context < 2 {
		return s, fmt.Errorf("model %s: context_length %d: with one position there is nothing to time", c.Name, c.ContextLength)
	}
	return s, nil
}

// sameSizes says whether two shapes differ in nothing but their names.
func (s Shape) sameSizes(t Shape) bool {
	t.Name = s.Name
	return s == t
}

// config is the shape as a chiplm model with weights of the given bits.
func (s Shape) config(bits int) (*configs.Config, error) {
	c := configs.Defaults()
	c.Name = s.Name
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.ContextLength = s.Vocab, s.DModel, s.Layers, s.Heads, s.DFF, s.Context
	c.Activation, c.QKNorm, c.NormEps = configs.SwiGLU, false, 1e-5 // as the opponent has them
	c.Quant.Weights.Bits, c.Quant.Weights.Group = bits, s.Group
	c.Train.ZeroInitProj = false
	c.Train.MicroBatch, c.Train.BatchTokens = 1, s.Context
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("shape %s: %w", s.Name, err)
	}
	return c, nil
}

// macs is the number of multiply-accumulates of a token: the weights that enter its matrix products, and in every layer
// d_model for the score and d_model for the value of each position that it attends to. It is the mean over positions 1 to
// context-1, which attend to 2 to context positions: (context+2)/2 of them, so that all layers take
// layers * d_model * (context+2).
func macs(c *configs.Config) int64 {
	return c.Budget().Products + int64(c.NLayers)*int64(c.DModel)*int64(c.ContextLength+2)
}

// seed of all random weights.
const seed = 1

// startID is the token from which the opponent starts, and at which it would stop.
const startID = 1

// randomWeights are the weights of a shape, by name. The opponent stops early when the start token is the likeliest next
// one, so that token's row is made small: its logit is then close to 0, below the largest of the others.
func randomWeights(c *configs.Config) map[string][]float32 {
	w := arch.InitWeights(c, seed)
	byName := make(map[string][]float32, len(w.Tensors))
	for i, t := range w.Tensors {
		byName[t.Name] = w.Data[i]
	}
	row := byName[configs.TokenEmbedding][startID*c.DModel : (startID+1)*c.DModel]
	for i := range row {
		row[i] /= 64
	}
	return byName
}
