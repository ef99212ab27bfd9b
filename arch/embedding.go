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

// tableRowsAtOnce is the number of rows that are gathered and added or mixed at a time: they are still in the nearest cache.
const tableRowsAtOnce = 16

// embedding gathers the rows of the token embedding, quantising only those, and adds those of the bigram table if there is
// one.
func (b *builder) embedding() *gorgonia.Node {
	t, d := b.specs[configs.TokenEmbedding], b.cfg.DModel
	table := b.params[configs.TokenEmbedding]
	if b.ngram != nil {
		return b.ngramEmbedding(t, table)
	}
	forward := func(in []gorgonia.Value, y []float32) {
		kernels.Gather(floats(in[0]), ints(in[1]), d, t.Quant, b.tableMode(), y)
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{b.scatter(t, grad, b.ids, 1, b.headGrad), nil}
	}
	return b.node("embedding", profile.Memory(profile.Embedding, 2*b.rows*d), tensor.Shape{b.rows, d}, forward, grad, wrt(table), fixed(b.ids))
}

// ngramEmbedding is the sum of a row of the token embedding and one of the bigram table.
func (b *builder) ngramEmbedding(t configs.Tensor, table *gorgonia.Node) *gorgonia.Node {
	d, spec, pairs := b.cfg.DModel, b.specs[configs.NgramTable], b.params[configs.NgramTable]
	part := make([]float32, min(tableRowsAtOnce, b.rows)*d)
	forward := func(in []gorgonia.Value, y []float32) {
		table, ids, pairs, rows := floats(in[0]), ints(in[1]), floats(in[2]), ints(in[3])
		for from := 0; from < b.rows; from += tableRowsAtOnce {
			to := min(from+tableRowsAtOnce, b.rows)
			y, part := y[from*d:to*d], part[:(to-from)*d]
			kernels.Gather(table, ids[from:to], d, t.Quant, b.tableMode(), y)
			kernels.Gather(pairs, rows[from:to], d, spec.Quant, b.tableMode(), part)
			kernels.Add(y, part, y)
		}
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{b.scatter(t, grad, b.ids, 1, b.headGrad), nil, b.scatter(spec, grad, b.ngram, 1, nil), nil}
	}
	return b.node("embedding", profile.Memory(profile.Embedding, 4*b.rows*d), tensor.Shape{b.rows, d}, forward, grad,
		wrt(table), fixed(b.ids), wrt(pairs), fixed(b.ngram))
}

// scatter is the gradient of a table: scale * dy added to the rows that were read, one a position. onto, when not nil, is a gradient of
// the same table to add to, in place; else the table is zero elsewhere, and only rows touched by the last run are cleared.
func (b *builder) scatter(t configs.Tensor, dy, read *gorgonia.Node, scale float32, onto *gorgonia.Node) *gorgonia.Node {
	name, shape, cols := t.Name+".grad", tensor.Shape{t.Rows(), t.Cols()}, t.Cols()
	cost := profile.Memory(profile.EmbeddingGradient, 3*b.rows*cols) // dy read; rows of the table read and written
	if onto != nil {
		return b.nodeInto(name, cost, shape, b.head.dw, func(in []gorgonia.Value, dt []float32) {
			kernels.ScatterAdd(floats(in[0]), ints(in[1]), cols, scale, dt)
		}, nil, fixed(dy), fixed(read), fixed(onto))
	}
	rows := newTableRows(t.Rows(), b.rows)
	b.tables[t.Name] = rows
	return b.node(name, cost, shape, func(in []gorgonia.Value, dt []float32) {
		kernels.ClearRows(rows.list, cols, dt)
		rows.set(ints(in[1]))
		kernels.ScatterAdd(floats(in[0]), ints(in[1]), cols, scale, dt)
	}, nil, fixed(dy), fixed(read))
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
