package arch

import (
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// perLayer mixes the projection of the embedding, [n, layers*ple_dim], with the rows of the per-layer table.
func (b *builder) perLayer(projection *gorgonia.Node) *gorgonia.Node {
	c, n := b.cfg, b.rows
	mix := kernels.PLE{
		Layers: c.NLayers, Dim: c.PLEDim, Eps: float32(c.NormEps),
		InScale:    float32(1 / math.Sqrt(float64(c.DModel))),
		TableScale: float32(math.Sqrt(float64(c.PLEDim))),
		Mix:        float32(1 / math.Sqrt(2)),
	}
	width := mix.Layers * mix.Dim
	t, gain, table := b.specs[configs.PLETable], b.params[configs.PLEProjectionNorm], b.params[configs.PLETable]
	inv := make([]float32, n*mix.Layers)
	forward := func(in []gorgonia.Value, e []float32) {
		x, gain, table, ids := floats(in[0]), floats(in[1]), floats(in[2]), ints(in[3])
		for from := 0; from < n; from += tableRowsAtOnce {
			rows := min(tableRowsAtOnce, n-from)
			part := e[from*width : (from+rows)*width]
			kernels.Gather(table, ids[from:from+rows], width, t.Quant, b.tableMode(), part)
			mix.Forward(x[from*width:], gain, part, rows, inv[from*mix.Layers:], part)
		}
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		dgain := make([]float32, mix.Dim)
		cost := profile.Memory(profile.PLEMixGradient, 3*n*width)
		dx := b.node("ple.dx", cost, tensor.Shape{n, width}, func(in []gorgonia.Value, dx []float32) {
			mix.Grad(floats(in[2]), floats(in[1]), inv, floats(in[0]), n, dx, dgain)
		}, nil, fixed(grad), fixed(gain), fixed(projection))
		dg := b.nodeInto("ple.dgain", profile.Cost{}, tensor.Shape{mix.Dim}, dgain, nil, nil, fixed(dx))
		return gorgonia.Nodes{dx, dg, b.scatter(t, grad, b.ids, mix.TableScale*mix.Mix, nil), nil}
	}
	cost := profile.Memory(profile.PLEMix, 3*n*width) // but for the table's rows
	return b.node("ple", cost, tensor.Shape{n, width}, forward, grad, wrt(projection), wrt(gain), wrt(table), fixed(b.ids))
}

// perLayerGate is gelu(g) * e_l for one layer, [n, ple_dim]. The layers fill one gradient buffer for e; differentiation
// runs from the last layer to the first, and the first one's gradient node waits for all of them.
func (b *builder) perLayerGate(name string, layer int, g, e *gorgonia.Node) *gorgonia.Node {
	n, p := b.rows, b.cfg.PLEDim
	width := b.cfg.NLayers * p
	slice := func(data []float32) kernels.Mat { return kernels.M(data[layer*p:], width) }
	forward := func(in []gorgonia.Value, y []float32) {
		kernels.GELUMul(floats(in[0]), slice(floats(in[1])), n, p, y)
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		if b.pleGrad == nil {
			b.pleGrad = pages.Make[float32](n * width)
		}
		de := b.pleGrad
		cost := profile.Memory(profile.PLEGateGradient, 5*n*p)
		dg := b.node(name+".dg", cost, tensor.Shape{n, p}, func(in []gorgonia.Value, dg []float32) {
			kernels.GELUMulGrad(floats(in[1]), slice(floats(in[2])), floats(in[0]), n, p, dg, slice(de))
		}, nil, fixed(grad), fixed(g), fixed(e))
		b.pleParts = append(b.pleParts, dg)
		if layer > 0 {
			return gorgonia.Nodes{dg, nil}
		}
		var parts []input
		for _, n := range b.pleParts {
			parts = append(parts, fixed(n))
		}
		return gorgonia.Nodes{dg, b.nodeInto("ple.de", profile.Cost{}, tensor.Shape{n, width}, de, nil, nil, parts...)}
	}
	return b.node(name, profile.Memory(profile.PLEGate, 3*n*p), tensor.Shape{n, p}, forward, grad, wrt(g), input{e, layer == 0})
}
