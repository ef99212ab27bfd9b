package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
)

// tableMode is the mode in which rows of a table are read: values also in exact mode, as the engine does.
func (b *builder) tableMode() kernels.Mode {
	if b.opt.Float {
		return kernels.Float
	}
	return kernels.Values
}

// embedding gathers the rows of the token embedding, quantising only those.
func (b *builder) embedding() *gorgonia.Node {
	t, d := b.specs[configs.TokenEmbedding], b.cfg.DModel
	table := b.params[configs.TokenEmbedding]
	forward := func(in []gorgonia.Value, y []float32) {
		kernels.Gather(floats(in[0]), ints(in[1]), d, t.Quant, b.tableMode(), y)
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{b.scatter(t, grad, 1, b.headGrad), nil}
	}
	return b.node("embedding", profile.Memory(profile.Embedding, 2*b.rows*d), tensor.Shape{b.rows, d}, forward, grad, wrt(table), fixed(b.ids))
}

// scatter is the gradient of a table: scale * dy added to the rows that were read. onto, when not nil, is a gradient of
// the same table to add to, in place; else the table is zero elsewhere, and only rows touched by the last run are cleared.
func (b *builder) scatter(t configs.Tensor, dy *gorgonia.Node, scale float32, onto *gorgonia.Node) *gorgonia.Node {
	name, shape, cols := t.Name+".grad", tensor.Shape{t.Rows(), t.Cols()}, t.Cols()
	cost := profile.Memory(profile.EmbeddingGradient, 3*b.rows*cols) // dy read; rows of the table read and written
	if onto != nil {
		return b.nodeInto(name, cost, shape, b.head.dw, func(in []gorgonia.Value, dt []float32) {
			kernels.ScatterAdd(floats(in[0]), ints(in[1]), cols, scale, dt)
		}, nil, fixed(dy), fixed(b.ids), fixed(onto))
	}
	rows := newTableRows(t.Rows(), b.rows)
	b.tables[t.Name] = rows
	return b.node(name, cost, shape, func(in []gorgonia.Value, dt []float32) {
		kernels.ClearRows(rows.list, cols, dt)
		rows.set(ints(in[1]))
		kernels.ScatterAdd(floats(in[0]), ints(in[1]), cols, scale, dt)
	}, nil, fixed(dy), fixed(b.ids))
}

// tableRows are the rows of a table that a batch reads: those of its gradient that may not be zero.
type tableRows struct {
	read []bool  // by row
	list []int32 // ascending
}

// newTableRows makes the set for a table, of which a batch of that many positions reads rows.
func newTableRows(rows, batch int) *tableRows {
	return &tableRows{read: make([]bool, rows), list: make([]int32, 0, min(rows, batch))}
}

// set makes the rows those that are among ids.
func (t *tableRows) set(ids []int32) {
	for _, id := range ids {
		t.read[id] = true
	}
	t.list = t.list[:0]
	for r, read := range t.read {
		if read {
			t.list = append(t.list, int32(r))
			t.read[r] = false
		}
	}
}
