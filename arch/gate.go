package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// gatedUp is the first half of the feed-forward of layer l: act(gate x) * (up x), [n, d_ff].
func (b *builder) gatedUp(name string, l int, x *gorgonia.Node, gate, up *weight) *gorgonia.Node {
	n, f, d, act := b.rows, b.cfg.DFF, b.cfg.DModel, b.cfg.Activation
	acts := b.activations(n, d, gate.mode)
	gu := pages.Make[float32](n * 2 * f) // gate and up of a row, side by side
	b.step(l, configs.Gate, f, rowsOf(gu, 2*f))
	forward := func(in []gorgonia.Value, y []float32) {
		acts.load(floats(in[0]), n)
		acts.product(gate, floats(in[1]), 0, 0, n, kernels.M(gu, 2*f))
		acts.product(up, floats(in[2]), 0, 0, n, kernels.M(gu[f:], 2*f))
		b.opt.Profile.Lap(profile.Product(profile.LinearForward, n, 2*f, d))
		kernels.Gate(gu, n, f, act, y)
	}
	costDgu, costDx := profile.Memory(profile.GateGradient, 5*n*f), profile.Product(profile.LinearDx, n, d, 2*f)
	costDw := profile.Product(profile.LinearDw, 2*f, d, n)
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		dgu := b.node(name+".dgu", costDgu, tensor.Shape{n, 2 * f}, func(in []gorgonia.Value, dgu []float32) {
			kernels.GateGrad(gu, floats(in[0]), n, f, act, dgu)
		}, nil, fixed(grad))
		dx := b.node(name+".dx", costDx, tensor.Shape{n, d}, func(in []gorgonia.Value, dx []float32) {
			g := floats(in[0])
			kernels.Gemm(n, d, f, kernels.M(g, 2*f), kernels.M(floats(in[1]), d), false, kernels.M(dx, d))
			kernels.Gemm(n, d, f, kernels.M(g[f:], 2*f), kernels.M(floats(in[2]), d), true, kernels.M(dx, d))
		}, nil, fixed(dgu), fixed(gate.node), fixed(up.node))
		both := pages.Make[float32](2 * f * d) // the gradients of gate and up, one after the other, in one product
		dgate := b.nodeInto(name+".dgate", costDw, tensor.Shape{f, d}, both[:f*d], func(in []gorgonia.Value, _ []float32) {
			acts.gradient(kernels.M(floats(in[0]), 2*f), 2*f, 0, n, false, both)
		}, nil, fixed(dgu))
		dup := b.nodeInto(name+".dup", profile.Cost{}, tensor.Shape{f, d}, both[f*d:], nil, nil, fixed(dgate))
		return gorgonia.Nodes{dx, dgate, dup}
	}
	cost := profile.Memory(profile.Gate, 3*n*f) // of what forward does not charge
	return b.node(name, cost, tensor.Shape{n, f}, forward, grad, wrt(x), wrt(gate.node), wrt(up.node))
}
