package arch

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// headRows is the number of positions whose logits exist at a time in training.
const headRows = 128

// logitStride is the distance between rows of n logits: an odd number of cache lines of 16 floats, since rows a power of
// two apart would compete for the same lines.
func logitStride(n int) int { return ((n+15)/16 | 1) * 16 }

// head is the output layer fused with the cross-entropy. It works in blocks of rows: with a large vocabulary the logits
// of a whole batch would not fit a cache. In training both gradients are computed block by block in the forward pass.
type head struct {
	loss   float64
	nll    []float32
	logits []float32 // all of them when asked for, else one block

	teacher []float32 // all logits of the teacher in this run, or nil
	unused  []float32 // the teacher's nats
	dx, dw  []float32
}

// distill turns the gradients of a block of logits, those of position from and after, into those against a mixture of the
// targets and the teacher's distributions, in which these have the weight share. With p, q and t for what the model says, what
// the teacher says and the target, it is p - ((1-share) t + share q) = (p - t) - share (q - t).
func (h *head) distill(gradients kernels.Mat, targets []int32, from, v int, share, weight float32) {
	teacher := h.teacher[from*v : (from+len(targets))*v]
	kernels.CrossEntropy(kernels.M(teacher, v), targets, v, true, weight, h.unused[:len(targets)])
	for r := range targets {
		kernels.Blend(-share, teacher[r*v:(r+1)*v], 1, gradients.Data[r*gradients.Stride:][:v])
	}
}

// headLoss is the mean cross-entropy over the targets that are not negative.
func (b *builder) headLoss(x *gorgonia.Node) *gorgonia.Node {
	name := configs.Head
	if b.cfg.TieEmbeddings {
		name = configs.TokenEmbedding
	}
	w := b.weight(name)
	n, d, v := b.rows, w.cols, w.rows
	h := &head{nll: make([]float32, n)}
	b.head = h
	acts := b.activations(n, d, w.mode)
	block, stride := min(headRows, n), logitStride(v)
	if b.opt.Logits {
		stride = v
		h.logits = pages.Make[float32](n * v)
		b.step(-1, configs.Head, v, rowsOf(h.logits, v))
	} else {
		h.logits = pages.Make[float32](block * stride)
	}
	if b.opt.Train {
		h.dx, h.dw = pages.Make[float32](n*d), pages.Make[float32](v*d)
	}
	if b.opt.Distill > 0 {
		h.unused = make([]float32, block)
	}
	forward := func(in []gorgonia.Value) (gorgonia.Value, error) {
		weights, targets := floats(in[1]), ints(in[2])
		count := 0
		for _, t := range targets {
			if t >= 0 {
				count++
			}
		}
		weight := 1 / float32(max(count, 1))
		acts.load(floats(in[0]), n)
		h.loss = 0
		for from := 0; from < n; from += block {
			rows := min(block, n-from)
			logits := kernels.M(h.logits, stride)
			if b.opt.Logits {
				logits.Data = logits.Data[from*v:]
			}
			acts.product(w, weights, 0, from, rows, logits)
			b.opt.Profile.Lap(profile.Product(profile.HeadProduct, rows, v, d))
			nll := h.nll[from : from+rows]
			kernels.CrossEntropy(logits, targets[from:from+rows], v, b.opt.Train, weight, nll)
			if h.teacher != nil {
				h.distill(logits, targets[from:from+rows], from, v, float32(b.opt.Distill), weight)
			}
			for _, l := range nll {
				h.loss += float64(l)
			}
			b.opt.Profile.Lap(profile.Memory(profile.HeadSoftmax, 2*rows*v))
			if b.opt.Train {
				kernels.Gemm(rows, d, v, logits, kernels.M(weights, d), false, kernels.M(h.dx[from*d:], d))
				acts.gradient(logits, v, from, rows, from > 0, h.dw)
				b.opt.Profile.Lap(profile.Product(profile.HeadGradient, rows, v, 2*d))
			}
		}
		h.loss /= float64(max(count, 1))
		return gorgonia.NewF32(float32(h.loss)), nil
	}
	// The blocks' gradients are those of the loss itself; what comes down from above scales them.
	scaled := func(name string, out []float32, shape tensor.Shape, loss, grad *gorgonia.Node) *gorgonia.Node {
		return b.nodeInto(name, profile.Cost{}, shape, out, func(in []gorgonia.Value, out []float32) {
			if f := in[0].Data().(float32); f != 1 {
				kernels.Scale(out, f)
			}
		}, nil, fixed(grad), fixed(loss))
	}
	grad := func(loss, grad *gorgonia.Node) gorgonia.Nodes {
		dx := scaled("head.dx", h.dx, tensor.Shape{n, d}, loss, grad)
		dw := scaled("head.dw", h.dw, tensor.Shape{v, d}, loss, grad)
		if b.cfg.TieEmbeddings {
			b.headGrad = dw // the embedding, which is differentiated later, adds its own part
			return gorgonia.Nodes{dx, nil, nil}
		}
		return gorgonia.Nodes{dx, dw, nil}
	}
	o := &op{name: "loss", types: []hm.Type{tensor.Float32}, shape: tensor.ScalarShape(), do: forward}
	return b.apply(o, grad, wrt(x), input{w.node, !b.cfg.TieEmbeddings}, fixed(b.target))
}
