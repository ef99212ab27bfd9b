package arch

import (
	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/configs"
)

// model adds the whole decoder and returns its loss.
func (b *builder) model() *gorgonia.Node {
	c := b.cfg
	x := b.embedding()
	var e *gorgonia.Node // per-layer embeddings
	var start *fork      // the embedding is read by the per-layer projection and by the first layer
	if c.PLEDim > 0 {
		start = &fork{}
		e = b.perLayer(b.linear(configs.PLEProjection, x, b.weight(configs.PLEProjection), start))
	}
	for l := range c.NLayers {
		x = b.layer(l, x, e, start)
		start = nil
	}
	return b.headLoss(b.norm(configs.OutputNorm, x, b.params[configs.OutputNorm], normForks{}))
}

// layer adds attention, feed-forward and the per-layer embedding of layer l. start, in the first layer of a model with
// per-layer embeddings, takes the gradient of x.
func (b *builder) layer(l int, x, e *gorgonia.Node, start *fork) *gorgonia.Node {
	name := func(part string) string { return configs.LayerTensor(l, part) }
	weight := func(part string) *weight { return b.weight(name(part)) }
	gain := func(part string) *gorgonia.Node { return b.params[name(part)] }

	at := &fork{}
	forks := normForks{add: at}
	if start != nil {
		forks.to, forks.wait = start, e
	}
	h := b.norm(name(configs.AttentionNorm), x, gain(configs.AttentionNorm), forks)
	qkv := b.linear(name(configs.QKV), h, weight(configs.QKV), nil)
	o := b.attention(name("attention"), qkv)
	x = b.residual(name("attention_residual"), x, b.linear(name(configs.AttentionOutput), o, weight(configs.AttentionOutput), nil), at)

	at = &fork{}
	h = b.norm(name(configs.FFNNorm), x, gain(configs.FFNNorm), normForks{add: at})
	var f *gorgonia.Node
	if b.cfg.Experts > 1 {
		f = b.experts(name("experts"), l, h)
	} else {
		a := b.gatedUp(name("gated_up"), h, weight(configs.Gate), weight(configs.Up))
		f = b.linear(name(configs.Down), a, weight(configs.Down), nil)
	}
	x = b.residual(name("ffn_residual"), x, f, at)

	if b.cfg.PLEDim == 0 {
		return x
	}
	at = &fork{}
	g := b.linear(name(configs.PLEGate), x, weight(configs.PLEGate), at)
	m := b.perLayerGate(name("ple_gated"), l, g, e)
	o = b.linear(name(configs.PLEOutput), m, weight(configs.PLEOutput), nil)
	o = b.norm(name(configs.PLENorm), o, gain(configs.PLENorm), normForks{})
	return b.residual(name("ple_residual"), x, o, at)
}
