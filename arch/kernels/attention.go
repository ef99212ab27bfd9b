package kernels

// #include "kernels.h"
import "C"

import "fmt"

// MaxHeadDim is the widest head that attention computes.
const MaxHeadDim = 1024

// Attention is causal attention over sequences of Seq positions with rotary positions. It owns what the gradient needs
// of the last forward pass.
type Attention struct {
	batch, seq, heads, dim int
	cos, sin               []float32 // [positions, dim/2]
	norm                   bool
	eps, scale             float32
	mode                   Mode
	keep                   bool // a gradient will be asked for

	q, k, v, sq, sk, sv, rq, rk, prob, code, o, work []float32
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
	rows := s.Heads * s.Seq
	if s.Train {
		rows *= s.Batch // without a gradient, nothing of a sequence is needed after it
	}
	buf := func(n int) []float32 { return make([]float32, n) }
	a := &Attention{batch: s.Batch, seq: s.Seq, heads: s.Heads, dim: s.HeadDim, cos: s.Cos, sin: s.Sin, norm: s.QKNorm,
		eps: s.Eps, scale: s.Scale, mode: s.Mode, keep: s.Train,
		q: buf(rows * s.HeadDim), k: buf(rows * s.HeadDim), v: buf(rows * s.HeadDim), sq: buf(rows), sk: buf(rows), sv: buf(rows),
		code: buf(Block * s.Seq), o: buf(Block * s.HeadDim)}
	if s.QKNorm {
		a.rq, a.rk = buf(rows), buf(rows)
	}
	if s.Train {
		a.prob = buf(rows * s.Seq)
		a.work = buf(5*s.Seq*s.HeadDim + Block*s.Seq)
	} else {
		a.prob = buf(Block * s.Seq)
	}
	return a
}

// Forward computes y [batch*seq, heads*dim] from qkv [batch*seq, 3*heads*dim]. It is for training: see [Attention.Score].
func (a *Attention) Forward(qkv, y []float32) {
	size := a.batch * a.seq * a.heads * a.dim
	need("qkv", len(qkv), 3*size)
	need("y", len(y), size)
	need("prob", len(a.prob), a.batch*a.heads*a.seq*a.seq)
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
		C.float(a.scale), C.int32_t(a.mode), flag(a.keep), ptr(a.q), ptr(a.k), ptr(a.v), ptr(a.sq), ptr(a.sk), ptr(a.sv),
		ptr(a.rq), ptr(a.rk), ptr(a.prob), ptr(a.code), ptr(a.o), ptr(y))
}

// Grad computes dqkv for the last [Attention.Forward] on the same qkv. Quantisation passes gradients straight through.
func (a *Attention) Grad(qkv, dy, dqkv []float32) {
	size := a.batch * a.seq * a.heads * a.dim
	need("qkv", len(qkv), 3*size)
	need("dqkv", len(dqkv), 3*size)
	need("dy", len(dy), size)
	need("work", len(a.work), 1)
	C.k_attention_grad(ptr(qkv), ptr(dy), n(a.batch), n(a.seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin),
		C.float(a.scale), C.int32_t(a.mode), ptr(a.q), ptr(a.k), ptr(a.v), ptr(a.sq), ptr(a.sk), ptr(a.sv), ptr(a.rq),
		ptr(a.rk), ptr(a.prob), ptr(a.work), ptr(dqkv))
}
