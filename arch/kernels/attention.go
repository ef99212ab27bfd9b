package kernels

// #include "kernels.h"
import "C"

import (
	"fmt"

	"github.com/chiplm/chiplm/qat/pages"
)

// MaxHeadDim is the widest head that attention computes.
const MaxHeadDim = 1024

// Attention is causal attention over sequences of Seq positions with rotary positions. It owns what the gradient needs
// of the last forward pass: a largest score and a sum for each query and head.
type Attention struct {
	seq, heads, dim int
	cos, sin        []float32 // by blocks of positions
	norm            bool
	eps, scale      float32
	mode            Mode
	train           bool

	max, sum, work []float32
}

// AttentionSpec gives the sizes of an [Attention].
type AttentionSpec struct {
	Batch, Seq, Heads, HeadDim int
	Cos, Sin                   []float32 // [at least Seq, HeadDim/2]
	QKNorm                     bool
	Eps, Scale                 float32
	Mode                       Mode
	Train                      bool
}

// NewAttention allocates the buffers of one attention operation.
func NewAttention(s AttentionSpec) *Attention {
	if s.HeadDim%2 != 0 || s.HeadDim > MaxHeadDim {
		panic("kernels: a head must be even and at most 1024 wide")
	}
	need("cosines", len(s.Cos), s.Seq*s.HeadDim/2)
	need("sines", len(s.Sin), s.Seq*s.HeadDim/2)
	rows := s.Heads * blocks(s.Seq) * C.K_SIDE
	if s.Train {
		rows *= s.Batch // without a gradient, nothing of a sequence is needed after it
	}
	half := s.HeadDim / 2
	return &Attention{seq: s.Seq, heads: s.Heads, dim: s.HeadDim, norm: s.QKNorm, eps: s.Eps, scale: s.Scale,
		mode: s.Mode, train: s.Train, cos: byBlocks(s.Cos, s.Seq, half), sin: byBlocks(s.Sin, s.Seq, half),
		max: make([]float32, rows), sum: make([]float32, rows), work: pages.Make[float32](int(C.k_attention_work(n(s.Seq), n(s.HeadDim))))}
}

// blocks is the number of blocks of positions.
func blocks(positions int) int { return (positions + C.K_SIDE - 1) / C.K_SIDE }

// byBlocks turns every block of positions of a table [at least positions, cols]: [blocks, cols, C.K_SIDE].
func byBlocks(table []float32, positions, cols int) []float32 {
	out := make([]float32, blocks(positions)*cols*C.K_SIDE)
	for t := range positions {
		for c := range cols {
			out[(t/C.K_SIDE*cols+c)*C.K_SIDE+t%C.K_SIDE] = table[t*cols+c]
		}
	}
	return out
}

// Forward computes y [positions, heads*dim] from qkv [positions, 3*heads*dim], on sequences of any lengths up to Seq, one
// after another, of at most Batch*Seq positions in all. Rows of y behind the last one stay as they are. A position's result
// does not depend on the sequences around its own, nor on what follows it.
func (a *Attention) Forward(lengths []int, qkv, y []float32) {
	a.each(lengths, func(seq, row int, max, sum []float32) {
		q, o := a.rows(qkv, 3, row, seq, "qkv"), a.rows(y, 1, row, seq, "y")
		C.k_attention(ptr(q), n(seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin), C.float(a.eps), C.float(a.scale),
			C.int32_t(a.mode), flag(a.norm), ptr(max), ptr(sum), ptr(a.work), ptr(o))
	})
}

// Grad computes dqkv for the last [Attention.Forward] on the same sequences and qkv. Quantisation passes gradients straight
// through.
func (a *Attention) Grad(lengths []int, qkv, dy, dqkv []float32) {
	if !a.train {
		panic("kernels: the gradient of attention made without one")
	}
	a.each(lengths, func(seq, row int, max, sum []float32) {
		q, dq, d := a.rows(qkv, 3, row, seq, "qkv"), a.rows(dqkv, 3, row, seq, "dqkv"), a.rows(dy, 1, row, seq, "dy")
		C.k_attention_grad(ptr(q), ptr(d), n(seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin), C.float(a.eps),
			C.float(a.scale), C.int32_t(a.mode), flag(a.norm), ptr(max), ptr(sum), ptr(a.work), ptr(dq))
	})
}

// each calls f with every sequence, its first row, and where its largest scores and sums are kept.
func (a *Attention) each(lengths []int, f func(seq, row int, max, sum []float32)) {
	need := 0
	for _, seq := range lengths {
		if seq < 1 || seq > a.seq {
			panic(fmt.Sprintf("kernels: a sequence of %d positions, where 1 to %d are possible", seq, a.seq))
		}
		need += a.kept(seq)
	}
	if len(a.max) < need && a.train { // many short sequences, each with a part of a block to spare
		a.max, a.sum = make([]float32, need), make([]float32, need)
	}
	row, at := 0, 0
	for _, seq := range lengths {
		f(seq, row, a.max[at:], a.sum[at:])
		row += seq
		if a.train { // without a gradient, nothing of a sequence is needed after it
			at += a.kept(seq)
		}
	}
}

// kept is the number of largest scores, and of sums, that the gradient needs of a sequence.
func (a *Attention) kept(seq int) int { return a.heads * blocks(seq) * C.K_SIDE }

// rows are those of a sequence in a matrix that is so many times as wide as the heads are together.
func (a *Attention) rows(x []float32, times, row, seq int, what string) []float32 {
	width := times * a.heads * a.dim
	need(what, len(x), (row+seq)*width)
	return x[row*width:]
}
