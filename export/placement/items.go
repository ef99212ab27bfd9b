// Package placement decides which memory of a chip each tensor of a model is read from, and estimates what a token
// then costs.
//
// # Overview
//
// [Items] says how many bytes of each tensor a token reads. [Plan] puts the engine's buffers first, then the tensors
// that are read most per byte into the fastest memory until it is full, the rest into the next, and tables of which a
// token reads one row into the slowest. It refuses what does not fit, with numbers and what to do.
// [Layout.Cost] is a model of the time: bytes over bandwidth, multiply-accumulates times cycles, fixed work.
//
// # Caveats
//
// The cost model knows the full head and reads every neuron; it was fitted to nothing, its figures are the target's.
// A tensor lies in one memory whole. Which expert is read is taken as even.
package placement

import (
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

// table reports whether a token reads single rows only.
func (i Item) table() bool { return i.RowReads > 0 && i.Weights == 0 }

// Items lists the tensors of a model, in their order, with what a token reads of them: a matrix whole, an expert with
// the share 1/E, a table one row. The tied embedding is read whole as the head, and a row of it as the embedding.
func Items(c *configs.Config) []Item {
	var out []Item
	for _, t := range c.Budget().Tensors {
		row := float64(t.Codes+t.Scales) / float64(t.Rows())
		it := Item{
			Name: t.Name, Class: t.Class, Bits: t.Quant.Bits,
			Bytes:     align(t.Codes, image.Align) + align(t.Scales, image.Align),
			ReadBytes: float64(t.TokenRead), Weights: float64(t.Products),
		}
		if t.Class == configs.ClassPLETable || t.Class == configs.ClassEmbedding {
			it.RowBytes, it.RowReads = row, 1
			if t.Scales > 0 {
				it.RowReads = 2 // the row's codes, and its scales elsewhere
			}
		}
		out = append(out, it)
	}
	return out
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }
