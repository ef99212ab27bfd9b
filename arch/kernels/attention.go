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
	batch, seq, heads, dim int
	cos, sin               []float32 // by blocks of positions
	norm                   bool
	eps, scale             float32
	mode                   Mode
	train                  bool

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
	return &Attention{batch: s.Batch, seq: s.Seq, heads: s.Heads, dim: s.HeadDim, norm: s.QKNorm, eps: s.Eps, scale: s.Scale,
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

// Forward computes y [batch*seq, heads*dim] from qkv [batch*seq, 3*heads*dim]. It is for training: see [Attention.Score].
func (a *Attention) Forward(qkv, y []float32) {
	size := a.batch * a.seq * a.heads * a.dim
	need("qkv", len(qkv), 3*size)
	need("y", len(y), size)
	need("sum", len(a.sum), a.batch*a.heads*a.seq)
	a.forward(a.batch, a.seq, qkv, y)
}

// Score is Forward without a gradient to come, on sequences of any lengths up to Seq, one after another. Rows of y
// behind the last one stay as they are. A position's result does not depend on the sequences around its own, nor on
// what follows it.
func (a *Attention) Score(lengths []int, qkv, y []float32) {
	width, row := a.heads*a.dim, 0
	for _, seq := range lengths {
		if seq < 1 || seq > a.seq {
			panic(fmt.Sprintf("kernels: a sequence of %d positions, where 1 to %d are possible", seq, a.seq))
		}
		q, o := qkv[row*3*width:], y[row*width:]
		need("qkv", len(q), seq*3*width)
		need("y", len(o), seq*width)
		a.forward(1, seq, q, o)
		row += seq
	}
}

func (a *Attention) forward(batch, seq int, qkv, y []float32) {
	C.k_attention(ptr(qkv), n(batch), n(seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin), C.float(a.eps),
		C.float(a.scale), C.int32_t(a.mode), flag(a.norm), ptr(a.max), ptr(a.sum), ptr(a.work), ptr(y))
}

// Grad computes dqkv for the last [Attention.Forward] on the same qkv. Quantisation passes gradients straight through.
func (a *Attention) Grad(qkv, dy, dqkv []float32) {
	size := a.batch * a.seq * a.heads * a.dim
	need("qkv", len(qkv), 3*size)
	need("dqkv", len(dqkv), 3*size)
	need("dy", len(dy), size)
	if !a.train {
		panic("kernels: the gradient of attention made without one")
	}
	C.k_attention_grad(ptr(qkv), ptr(dy), n(a.batch), n(a.seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin),
		C.float(a.eps), C.float(a.scale), C.int32_t(a.mode), flag(a.norm), ptr(a.max), ptr(a.sum), ptr(a.work), ptr(dqkv))
}
