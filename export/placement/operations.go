package placement

import (
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/qat"
)

// operation is a piece of a token's work that is done in one go: what it reads, where from, and what it computes.
type operation struct {
	name   string // of the row in tables: the layers' operations of a kind share one
	memory *targets.Memory
	stream float64 // bytes read in order, by all cores
	lines  float64 // bytes of whole lines, read in scattered rows by all cores
	rows   float64 // such rows
	table  float64 // bytes of rows that one core reads on their own
	tables float64 // such rows
	cycles float64 // on the clock: what is split is divided by the cores
	alone  bool    // one core does all of it: it waits for its memory, and then computes

	// What a position that is attended over adds to stream and cycles.
	streamEach, cyclesEach float64
}

// read is the time that the operation's bytes take, in milliseconds, with so many positions attended over.
func (o *operation) read(cores, positions float64) float64 {
	m := o.memory
	if m == nil {
		return 0
	}
	if o.alone {
		cores = 1
	}
	us := (o.stream + o.streamEach*positions) / m.SequentialMBs.Value
	us += max(o.lines/m.SequentialMBs.Value, (o.rows*m.RowLatencyUs.Value+o.lines/m.RowMBs.Value)/cores)
	us += o.tables*m.RowLatencyUs.Value + o.table/m.RowMBs.Value
	return us / 1e3
}

// bytes is what the operation reads.
func (o *operation) bytes(positions float64) float64 {
	return o.stream + o.streamEach*positions + o.lines + o.table
}

// work lists the operations of a token. It is made for one plan, chip and engine.
type work struct {
	c      *configs.Config
	t      *targets.Target
	p      *targets.Profile
	layout *Layout
	list   []operation
}

// operations lists what a token does.
func (l *Layout) operations(c *configs.Config, t *targets.Target, p *targets.Profile) []operation {
	w := &work{c: c, t: t, p: p, layout: l}
	for i, b := range c.Budget().Tensors {
		w.tensor(b, t.Memory(l.Tensors[i].Tier))
	}
	w.search()
	w.attention()
	w.vectors()
	f := &p.Fixed
	w.list = append(w.list, operation{name: "work between", cycles: (f.UsPerToken.Value + f.UsPerLayer.Value*float64(c.NLayers)) * t.ClockMHz})
	return w.list
}

// cycles is the time of a kind of work on vectors on the clock, in cycles: nothing where fixed work covers it.
func (w *work) cycles(kind targets.Work, calls, rows, values float64) float64 {
	return w.add(w.p.For(kind, 0, 0, 0), calls, calls, rows, 0, values)
}

// add is the time of kernels on the clock, in so many jobs that are handed over where the work is split.
func (w *work) add(kernels []*targets.Kernel, jobs, calls, rows, groups, values float64) float64 {
	sum, split := 0.0, false
	for _, k := range kernels {
		n := k.Cycles(calls, rows, groups, values)
		if k.Split && w.t.Cores > 1 {
			n /= float64(w.t.Cores)
			split = true
		}
		sum += n
	}
	if split {
		sum += jobs * w.p.HandOver.Value
	}
	return sum
}

// product is the time of a product with so many rows that follow each other.
func (w *work) product(b configs.TensorBudget, rows float64) float64 {
	kernels := w.p.For(targets.Product, b.Quant.Bits, b.Cols(), grouped(b))
	return w.add(kernels, 1, 1, rows, rows*groups(b), rows*float64(b.Cols()))
}

// listed is the time of a product with so many rows of a list.
func (w *work) listed(b configs.TensorBudget, rows float64) float64 {
	kernels, calls := w.p.For(targets.Listed, b.Quant.Bits, b.Cols(), grouped(b)), rows
	if len(kernels) > 0 && kernels[0].Work == targets.Listed {
		calls = 1
	}
	return w.add(kernels, 1, calls, rows, rows*groups(b), rows*float64(b.Cols()))
}

// oneByOne is the time of products with one row each, all on one core.
func (w *work) oneByOne(b configs.TensorBudget, rows float64) float64 {
	sum := 0.0
	for _, k := range w.p.For(targets.Product, b.Quant.Bits, b.Cols(), grouped(b)) {
		sum += k.Cycles(rows, rows, rows*groups(b), rows*float64(b.Cols()))
	}
	return sum
}

// groups is the number of groups of a row that share a scale.
func groups(b configs.TensorBudget) float64 {
	if b.Quant.Bits == 32 {
		return 1
	}
	return float64(qat.Groups(b.Quant, b.Cols()))
}

// grouped is the number of columns that share a scale.
func grouped(b configs.TensorBudget) int {
	if b.Quant.Group == 0 || b.Quant.Group > b.Cols() {
		return b.Cols()
	}
	return b.Quant.Group
}

// tensor adds what a token does with a tensor of the model.
func (w *work) tensor(b configs.TensorBudget, m *targets.Memory) {
	layer, part := configs.SplitTensor(b.Name)
	if layer < 0 {
		part = b.Name
	}
	rows, row := float64(b.Rows()), float64(b.Codes+b.Scales)/float64(b.Rows())
	switch {
	case len(b.Shape) == 1: // a norm's gain: its work is counted with the vectors
		w.list = append(w.list, operation{name: "norms", memory: m, stream: float64(b.TokenRead)})
		return
	case b.Class.Table():
		parts := 1.0
		if b.Scales > 0 {
			parts = 2 // the row's codes, and its scales elsewhere
		}
		w.list = append(w.list, operation{name: part + ", a row", memory: m, table: row, tables: parts,
			cycles: w.add(w.p.For(targets.Unpack, 0, 0, 0), 1, 1, 1, groups(b), float64(b.Cols()))})
	}
	measured := w.layout.Measured
	switch {
	case b.Products == 0:
	case b.Class == configs.ClassHead || b.Class == configs.ClassEmbedding:
		w.head(b, m)
	case part == configs.Up && measured != nil && measured.Neurons != nil:
		n := float64(measured.Neurons[layer].Up) / float64(measured.Tokens)
		o := operation{name: part, memory: m, cycles: w.listed(b, n)}
		o.scatter(n, rows, float64(b.Codes)/rows)
		o.scatter(n, rows, float64(b.Scales)/rows)
		w.list = append(w.list, o)
	case part == configs.Down && b.Block > 0 && measured != nil && measured.Neurons != nil:
		n := float64(measured.Neurons[layer].Down) / float64(measured.Tokens)
		groups := float64(measured.Neurons[layer].Groups) / float64(measured.Tokens)
		column, group := ColumnBytes(b)
		o := operation{name: part, memory: m, stream: groups * float64(group),
			cycles: w.add(w.p.For(targets.Columns, b.Quant.Bits, b.Cols(), grouped(b)), 1, 1, n, groups*float64(b.Block), n*float64(b.Block))}
		o.scatter(n, float64(b.Cols()), float64(column))
		w.list = append(w.list, o)
	default:
		w.list = append(w.list, operation{name: part, memory: m, stream: float64(b.TokenRead), cycles: w.product(b, float64(b.Products)/float64(b.Cols()))})
	}
}

// scatter adds n of so many rows, each of so many bytes, read where they lie: in whole lines, of which rows that are
// neighbours share some.
func (o *operation) scatter(n, of, bytes float64) {
	line := float64(o.memory.Line)
	if n == 0 || bytes == 0 || of == 0 {
		return
	}
	lines := n * math.Ceil(bytes/line)
	if bytes < line {
		lines = math.Ceil(of*bytes/line) * (1 - math.Pow(1-min(n/of, 1), line/bytes))
	}
	o.rows += min(n, lines)
	o.lines += min(lines*line, math.Ceil(of*bytes/line)*line)
}

// head adds the output layer: whole, or the rows that a search reads in full.
func (w *work) head(b configs.TensorBudget, m *targets.Memory) {
	o := operation{name: configs.Head, memory: m}
	rows, row := float64(b.Rows()), float64(b.Codes+b.Scales)/float64(b.Rows())
	n := rows
	h := w.layout.Measured.head()
	switch {
	case h == nil:
		o.stream = rows * row
		o.cycles = w.product(b, n) + w.cycles(targets.Best, 1, 0, n)
	case h.Means: // a cluster's rows lie together
		n = h.Rows
		o.stream = n * row
		o.cycles = w.product(b, n) + w.cycles(targets.Best, 1, 0, n)
	default: // a row at a time, as each may change what need be read
		n = h.Rows
		o.alone = true
		o.scatter(n, rows, float64(b.Codes)/rows)
		o.scatter(n, rows, float64(b.Scales)/rows)
		o.cycles = w.oneByOne(b, n) + w.cycles(targets.Best, 1, n, n)
	}
	w.list = append(w.list, o)
}

// search adds what a search reads and computes beside the rows that it reads in full.
func (w *work) search() {
	h := w.layout.Measured.head()
	if h == nil {
		return
	}
	const name = "head search"
	clusters, width := float64(h.Clusters), float64(w.c.DModel)
	for _, p := range w.layout.Tensors[len(w.c.Tensors()):] {
		// Bounds are compared one after the other, by one core; the first product of a search is shared.
		o := operation{name: name, memory: w.t.Memory(p.Tier), alone: !h.Means && p.Name != image.HeadRotation}
		switch p.Name {
		case HeadMeans:
			o.stream, o.cycles = p.ReadBytes, w.cycles(targets.Means, 1, clusters, clusters*width)
		case image.HeadRotation:
			o.stream, o.cycles = p.ReadBytes, w.add(w.p.For(targets.Product, p.Bits, w.c.DModel, w.c.DModel), 1, 1, width, width, width*width)
		case image.HeadBounds:
			o.stream, o.cycles = p.ReadBytes, w.cycles(targets.Boxes, 1, clusters, 0)
		case image.HeadBlocks0: // a cluster's blocks lie together, and their bounds are a call
			visited := clusters * h.Blocks[0] / float64(w.c.VocabSize)
			o.stream, o.cycles = p.ReadBytes, w.cycles(targets.Blocks, visited, h.Blocks[0], h.Blocks[0]*image.BlockLanes)
		case image.HeadBlocks1:
			o.scatter(h.Blocks[1], float64(w.c.VocabSize), p.ReadBytes/max(h.Blocks[1], 1))
			o.cycles = w.cycles(targets.Blocks, h.Blocks[1], h.Blocks[1], h.Blocks[1]*image.BlockLanes)
		case image.HeadOrder:
			o.scatter(h.Rows, float64(w.c.VocabSize), p.ReadBytes/max(h.Rows, 1))
		}
		w.list = append(w.list, o)
	}
}

// attention adds the products with keys and values, whose size grows with the position: keys are read for the scores,
// values for their mix.
func (w *work) attention() {
	layers, heads, width := float64(w.c.NLayers), float64(w.c.NHeads), float64(w.c.DModel)
	cache := w.t.Memory(w.t.Buffers.Cache)
	each := float64(w.layout.Buffers.Cache) / float64(w.c.ContextLength) / 2
	// A layer is one job, in which each core takes heads.
	add := func(name string, kind targets.Work, m *targets.Memory, jobs, stream, rows, values float64) {
		kernels := w.p.For(kind, 0, 0, 0)
		start := w.add(kernels, jobs*layers, layers*heads, 0, layers*width, 0)
		w.list = append(w.list, operation{name: name, memory: m, streamEach: stream, cycles: start,
			cyclesEach: w.add(kernels, 0, 0, rows*layers, 0, values*layers)})
	}
	add("attention scores", targets.Scores, cache, 1, each, heads, width)
	add("attention softmax", targets.Softmax, nil, 0, 0, 0, heads)
	add("attention mix", targets.Mix, cache, 0, each, heads, width)
}

// vectors adds the work on vectors between the products.
func (w *work) vectors() {
	c := w.c
	layers, d, f, heads := float64(c.NLayers), float64(c.DModel), float64(c.DFF), float64(c.NHeads)
	ple := float64(c.PLEDim)
	add := func(name string, kind targets.Work, rows, values float64) {
		if values > 0 {
			w.list = append(w.list, operation{name: name, cycles: w.cycles(kind, rows, rows, values)})
		}
	}
	// Queries, keys and values are made ready head by head, in the job of the scores.
	inJob := func(name string, kind targets.Work, rows, values float64) {
		w.list = append(w.list, operation{name: name, cycles: w.add(w.p.For(kind, 0, 0, 0), 0, rows, rows, 0, values)})
	}
	// Before the layers the per-layer embeddings, if there are any; after them the output norm.
	has := 0.0
	if c.PLEDim > 0 {
		has = 1
	}
	norms, normed := layers*(2+2*has)+1, layers*(2*d+has*(d+ple))+d
	add("norms", targets.Norm, norms, normed)
	if c.QKNorm {
		inJob("norms", targets.HeadNorm, layers*2*heads, layers*2*d)
	}
	// The inputs of qkv, attention_output, the feed-forward's first products and down; of the per-layer embedding's two;
	// before the layers that of ple_projection, after them that of the head.
	add("quantising", targets.Quantise, layers*(4+2*has)+has+1, layers*(3*d+f+has*(d+ple))+has*d+d)
	inJob("quantising", targets.HeadCode, layers*3*heads, layers*3*d)
	inJob("rotation", targets.Rotate, layers*2*heads, layers*2*d)
	gate := targets.SiLU
	if c.Activation == configs.ReLU {
		gate = targets.Gate
	}
	add("gate of neurons", gate, layers, layers*f)
	add("gelu", targets.GELU, layers, layers*ple)
	add("mix of embeddings", targets.PLEMix, 1, layers*ple)
	sums := layers * (2 + has)
	if c.NgramRows > 0 { // the row of the bigram table
		sums++
	}
	add("residual sums", targets.Add, sums, sums*d)
	// The rotary tables stay in the image: a row of cosines and one of sines.
	last := &w.t.Memories[len(w.t.Memories)-1]
	w.list = append(w.list, operation{name: "rotation", memory: last, table: 4 * d / heads, tables: 2})
}
