package kernels

// #include "kernels.h"
import "C"

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
	rows := s.Batch * s.Heads * s.Seq
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

// Forward computes y [batch*seq, heads*dim] from qkv [batch*seq, 3*heads*dim].
func (a *Attention) Forward(qkv, y []float32) {
	size := a.batch * a.seq * a.heads * a.dim
	need("qkv", len(qkv), 3*size)
	need("y", len(y), size)
	C.k_attention(ptr(qkv), n(a.batch), n(a.seq), n(a.heads), n(a.dim), ptr(a.cos), ptr(a.sin), C.float(a.eps),
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
