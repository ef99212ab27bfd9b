package arch

import (
	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/configs"
)

// model adds the whole decoder and returns its loss.
func (b *builder) model() *gorgonia.Node {
	c := b.cfg
	x := b.shown(-1, configs.TokenEmbedding, b.embedding())
	var e *gorgonia.Node // per-layer embeddings
	var start *fork      // the embedding is read by the per-layer projection and by the first layer
	if c.PLEDim > 0 {
		start = &fork{}
		p := b.shown(-1, configs.PLEProjection, b.linear(configs.PLEProjection, x, b.weight(configs.PLEProjection), start))
		e = b.shown(-1, StepMix, b.perLayer(p))
	}
	for l := range c.NLayers {
		x = b.layer(l, x, e, start)
		start = nil
	}
	return b.headLoss(b.shown(-1, configs.OutputNorm, b.norm(configs.OutputNorm, x, b.params[configs.OutputNorm], normForks{})))
}

// layer adds attention, feed-forward and the per-layer embedding of layer l. start, in the first layer of a model with
// per-layer embeddings, takes the gradient of x.
func (b *builder) layer(l int, x, e *gorgonia.Node, start *fork) *gorgonia.Node {
	name := func(part string) string { return configs.LayerTensor(l, part) }
	weight := func(part string) *weight { return b.weight(name(part)) }
	gain := func(part string) *gorgonia.Node { return b.params[name(part)] }
	linear := func(part string, x *gorgonia.Node, other *fork) *gorgonia.Node {
		return b.shown(l, part, b.linear(name(part), x, weight(part), other))
	}

	at := &fork{}
	forks := normForks{add: at}
	if start != nil {
		forks.to, forks.wait = start, e
	}
	h := b.norm(name(configs.AttentionNorm), x, gain(configs.AttentionNorm), forks)
	qkv := linear(configs.QKV, h, nil)
	o := b.shown(l, StepAttention, b.attention(name(StepAttention), qkv))
	x = b.residual(name("attention_residual"), x, linear(configs.AttentionOutput, o, nil), at)

	at = &fork{}
	h = b.norm(name(configs.FFNNorm), x, gain(configs.FFNNorm), normForks{add: at})
	var f *gorgonia.Node
	if b.cfg.Experts > 1 {
		f = b.experts(name("experts"), l, h)
	} else {
		a := b.shown(l, StepFFN, b.gatedUp(name("gated_up"), l, h, weight(configs.Gate), weight(configs.Up)))
		f = linear(configs.Down, a, nil)
	}
	x = b.residual(name("ffn_residual"), x, f, at)

	if b.cfg.PLEDim == 0 {
		return b.shown(l, StepStream, x)
	}
	at = &fork{}
	g := linear(configs.PLEGate, x, at)
	m := b.shown(l, StepPLEMix, b.perLayerGate(name("ple_gated"), l, g, e))
	o = linear(configs.PLEOutput, m, nil)
	o = b.norm(name(configs.PLENorm), o, gain(configs.PLENorm), normForks{})
	return b.shown(l, StepStream, b.residual(name("ple_residual"), x, o, at))
}
