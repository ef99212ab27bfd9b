// Package placement decides which memory of a chip each tensor of a model is read from, and estimates what a token
// then costs.
//
// # Overview
//
// [Items] says how many bytes of each tensor a token reads. [Plan] puts the engine's buffers first, then the tensors
// that are read most per byte into the fastest memory until it is full, the rest into the next, and tables of which a
// token reads one row into the slowest. It refuses what does not fit, with numbers and what to do.
// [Predict] says to the byte what a whole run reads, given its [Conditions]: passes, positions, neurons that spoke, rows of
// the head. `chiplm sample --count` holds the engine's own count against it.
// [Layout.Cost] is a model of the time: bytes over bandwidth, multiply-accumulates times cycles, fixed work.
//
// # Caveats
//
// The cost model was fitted to nothing, its figures are the target's. Without [Measured] it reads every row of the head and
// every neuron.
// A tensor lies in one memory whole. Which expert is read is taken as even.
package placement

import (
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
)

// Item is a tensor as the planner sees it.
type Item struct {
	Name      string              `json:"name"`
	Class     configs.TensorClass `json:"class"`
	Bits      int                 `json:"bits"`
	Bytes     int64               `json:"bytes"`      // codes and scales, each padded to the image's alignment
	ReadBytes float64             `json:"read_bytes"` // per token, rows included
	RowBytes  float64             `json:"row_bytes"`  // of them, read as single rows
	RowReads  int                 `json:"row_reads"`  // accesses to single rows per token
	Weights   float64             `json:"weights"`    // that take part in products per token
}

// Heat is the number of times a token reads a byte of the item.
func (i Item) Heat() float64 { return i.ReadBytes / float64(max(i.Bytes, 1)) }

// table reports whether a token reads one row only, which has at most two parts.
func (i Item) table() bool { return i.RowReads > 0 && i.RowReads <= 2 && i.Weights == 0 }

// Measured is what a token reads, on average, of what it need not read whole. It depends on the text.
type Measured struct {
	Tokens  int       `json:"tokens"`            // of the text that it was measured on
	Assumed bool      `json:"assumed,omitempty"` // nobody measured it: see [Assume]
	Head    *Head     `json:"head,omitempty"`
	Neurons []Neurons `json:"neurons,omitempty"` // of each layer with a relu gate, over the whole text
}

// Head is what a search of a clustered head reads for a token.
type Head struct {
	Clusters int        `json:"clusters"`
	Blocks   [2]float64 `json:"blocks"`          // bounds of rows, at both levels
	Rows     float64    `json:"rows"`            // read in full
	Idle     bool       `json:"idle,omitempty"`  // it is not made: reading all rows is faster for [BestTokens]. Image and memory hold its data
	Means    bool       `json:"means,omitempty"` // the means of clusters are scored, not bounds: no engine of ours does so
}

// Items lists the tensors of a model's image, in their order, with what a token reads of them: a matrix whole, an expert
// with the share 1/E, a table one row. The tied embedding is read whole as the head, and a row of it as the embedding.
// m, which may be nil, says how much is read of a clustered head, whose tensors then follow, and of the feed-forward.
func Items(c *configs.Config, m *Measured) []Item {
	var out []Item
	head := m.head()
	for _, t := range c.Budget().Tensors {
		row := float64(t.Codes+t.Scales) / float64(t.Rows())
		it := Item{
			Name: t.Name, Class: t.Class, Bits: t.Quant.Bits,
			Bytes:     align(t.Codes, image.Align) + align(t.Scales, image.Align),
			ReadBytes: float64(t.TokenRead), Weights: float64(t.Products),
		}
		if t.Class.Table() {
			it.RowBytes, it.RowReads = row, 1
			if t.Scales > 0 {
				it.RowReads = 2 // the row's codes, and its scales elsewhere
			}
		}
		if head != nil && t.Products > 0 && (t.Class == configs.ClassHead || t.Class == configs.ClassEmbedding) {
			it.RowBytes += head.Rows * row
			it.RowReads += int(math.Round(head.Rows)) * max(it.RowReads, 1)
			it.ReadBytes, it.Weights = it.RowBytes, head.Rows*float64(t.Cols())
		}
		if m != nil && m.Neurons != nil {
			m.silence(t, row, &it)
		}
		out = append(out, it)
	}
	if m != nil && m.Head != nil {
		out = append(out, m.Head.items(c)...)
	}
	return out
}

// silence has an item read only the neurons that speak. A row of up is two accesses, its codes and its scales; a column of
// down is one, for the scales of a group are read together.
func (m *Measured) silence(t configs.TensorBudget, row float64, it *Item) {
	tokens := float64(m.Tokens)
	switch layer, part := configs.SplitTensor(t.Name); {
	case part == configs.Up:
		n := float64(m.Neurons[layer].Up) / tokens
		it.ReadBytes, it.RowReads, it.Weights = n*row, int(math.Round(2*n)), n*float64(t.Cols())
		it.RowBytes = it.ReadBytes
	case part == configs.Down && t.Block > 0:
		n := float64(m.Neurons[layer].Down) / tokens
		it.ReadBytes = float64(m.Neurons[layer].columns(t)) / tokens
		it.RowBytes, it.RowReads, it.Weights = it.ReadBytes, int(math.Round(n)), n*float64(t.Block)
	}
}

// items are the tensors of the clusters: rotation and bounds are read whole, blocks and ids as the search needs them.
func (h *Head) items(c *configs.Config) []Item {
	if h.Means { // a code of 8 bits for each column, and a scale
		bytes := int64(h.Clusters) * int64(c.DModel+4)
		return []Item{{Name: HeadMeans, Class: configs.ClassHead, Bits: 8, Bytes: align(bytes, image.Align), ReadBytes: float64(bytes),
			Weights: float64(h.Clusters * c.DModel)}}
	}
	var out []Item
	for _, t := range image.HeadTensors(c.VocabSize, c.DModel, h.Clusters) {
		stored := image.Tensor{Rows: t.Rows(), Cols: t.Cols(), Bits: t.Quant.Bits, ScaleType: image.ScaleTypeOf(t.Quant)}
		it := Item{Name: t.Name, Class: t.Class, Bits: t.Quant.Bits, ReadBytes: float64(stored.StoredBytes())}
		row := float64(stored.Stride())
		switch t.Name {
		case image.HeadRotation:
			it.Weights = float64(t.Len())
			it.Bytes = align(int64(stored.Rows*stored.Stride()), image.Align) + align(stored.StoredBytes()-int64(stored.Rows*stored.Stride()), image.Align)
		case image.HeadBlocks0, image.HeadBlocks1: // 30 codes of 4 bits
			n := h.Blocks[0]
			if t.Name == image.HeadBlocks1 {
				n = h.Blocks[1]
			}
			it.ReadBytes, it.Weights, it.Bits = n*row, n*image.BlockLanes, 4
		case image.HeadOrder:
			it.ReadBytes, it.RowBytes, it.RowReads = h.Rows*row, h.Rows*row, max(1, int(math.Round(h.Rows)))
		}
		if it.Bytes == 0 {
			it.Bytes = align(stored.StoredBytes(), image.Align)
		}
		if h.Idle {
			it.ReadBytes, it.Weights, it.RowBytes, it.RowReads = 0, 0, 0, 0
		}
		out = append(out, it)
	}
	return out
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }
