package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
)

// attention is causal attention [n, d_model] over qkv [n, 3*d_model], norms of queries and keys, rotation and
// quantisation included.
func (b *builder) attention(name string, qkv *gorgonia.Node) *gorgonia.Node {
	c := b.cfg
	dim := c.DModel / c.NHeads
	a := kernels.NewAttention(kernels.AttentionSpec{
		Batch: b.opt.Batch, Seq: b.opt.Seq, Heads: c.NHeads, HeadDim: dim, Cos: b.cosines, Sin: b.sines,
		QKNorm: c.QKNorm, Eps: float32(c.NormEps), Scale: c.ScoreScale(),
		Mode: b.activationMode(), Train: b.opt.Train,
	})
	// A position sees (seq+1)/2 keys in the mean, itself included: scores and weighted sum cost 2*d_model for each.
	cost := profile.Product(profile.Attention, b.rows, c.DModel, b.opt.Seq+1)
	costGrad := profile.Product(profile.AttentionGradient, b.rows, 2*c.DModel, b.opt.Seq+1)
	forward := func(in []gorgonia.Value, y []float32) {
		a.Forward(b.sequences.lengths, floats(in[0]), y)
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{b.node(name+".dqkv", costGrad, tensor.Shape{b.rows, 3 * c.DModel}, func(in []gorgonia.Value, dqkv []float32) {
			a.Grad(b.sequences.lengths, floats(in[1]), floats(in[0]), dqkv)
		}, nil, fixed(grad), fixed(qkv))}
	}
	return b.node(name, cost, tensor.Shape{b.rows, c.DModel}, forward, grad, wrt(qkv))
}
