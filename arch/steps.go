package arch

import (
	"slices"

	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/configs"
)

// The names of steps that no weight has lent its name to. The others are [configs.TokenEmbedding] (a row of it),
// [configs.PLEProjection], [configs.QKV], [configs.AttentionOutput], [configs.Router], [configs.Gate], [configs.Down],
// [configs.PLEGate], [configs.PLEOutput] and [configs.Head] (the products), and [configs.OutputNorm].
const (
	StepMix       = "mix"       // the inputs of all layers: per-layer embeddings, mixed
	StepAttention = "attention" // of all heads
	StepFFN       = "ffn"       // act(gate) * up
	StepPLEMix    = "ple_mix"   // gelu(gate) * e
	StepStream    = "x"         // the residual stream at the end of a layer
)

// Step is a place of the model whose values a graph still has after a run: see [Graph.Steps].
type Step struct {
	Layer int    // -1 before the first layer and behind the last
	Name  string // as the engine's trace has it
	Width int    // values of one position

	row func(position int) []float32
}

// Values are those of one position of the batch, from 0 to Batch*Seq-1, in the last run: Width floats that the next run
// overwrites.
func (s Step) Values(position int) []float32 { return s.row(position)[:s.Width] }

// Steps are the places of the model that can be looked at after a run, in the order in which they are computed. The
// logits are among them when the options ask for them. A run costs nothing more for it.
func (g *Graph) Steps() []Step { return slices.Clone(g.steps) }

// step makes rows of an operation's buffer a step.
func (b *builder) step(layer int, name string, width int, row func(position int) []float32) {
	b.steps = append(b.steps, Step{layer, name, width, row})
}

// rowsOf gives the rows of data, stride apart.
func rowsOf(data []float32, stride int) func(position int) []float32 {
	return func(position int) []float32 { return data[position*stride:] }
}

// shown makes the result of a node, one row for each position, a step.
func (b *builder) shown(layer int, name string, n *gorgonia.Node) *gorgonia.Node {
	if b.err == nil {
		out := n.Op().(*op).out
		width := len(out) / b.rows
		b.step(layer, name, width, rowsOf(out, width))
	}
	return n
}

// showRouted makes what is inside the experts of a layer steps. Their rows are sorted by expert.
func (b *builder) showRouted(layer int, m *experts) {
	sorted := func(data []float32, width int) func(int) []float32 {
		return func(position int) []float32 { return data[m.sortedRow(position)*width:] }
	}
	b.step(layer, configs.Router, m.count, rowsOf(m.z, m.count))
	b.step(layer, configs.Gate, m.f, sorted(m.gu, 2*m.f))
	b.step(layer, StepFFN, m.f, sorted(m.a, m.f))
	b.step(layer, configs.Down, m.d, sorted(m.y, m.d))
}

// sortedRow is where a position is among the rows sorted by expert.
func (m *experts) sortedRow(position int) int {
	e := m.choice[position]
	from := m.start[e]
	i, _ := slices.BinarySearch(m.order[from:m.start[e+1]], position) // an expert keeps the order of its positions
	return from + i
}
