package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
)

// normForks are the forks of the residual stream at the input of a norm.
type normForks struct {
	add  *fork          // its gradient is added to that of x
	to   *fork          // receives the gradient of x, in place of x itself
	wait *gorgonia.Node // only orders: the reader of to must come before the norm
}

// norm is RMSNorm with the gain of that name.
func (b *builder) norm(name string, x *gorgonia.Node, gain *gorgonia.Node, f normForks) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	shape := x.Shape().Clone()
	inv := make([]float32, b.rows)
	eps := float32(b.cfg.NormEps)
	cost := profile.Memory(profile.Norm, 2*shape.TotalSize())
	forward := func(in []gorgonia.Value, y []float32) {
		kernels.RMSNorm(floats(in[0]), floats(in[1]), eps, y, inv)
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		costGrad := profile.Memory(profile.NormGradient, (3+len(f.add.inputs()))*shape.TotalSize())
		dgain := make([]float32, gain.Shape().TotalSize())
		dx := b.node(name+".dx", costGrad, shape, func(in []gorgonia.Value, dx []float32) {
			kernels.RMSNormGrad(floats(in[1]), floats(in[2]), inv, floats(in[0]), f.add.from(in, 3), dx, dgain)
		}, nil, append([]input{fixed(grad), fixed(x), fixed(gain)}, f.add.inputs()...)...)
		dg := b.nodeInto(name+".dgain", profile.Cost{}, gain.Shape().Clone(), dgain, nil, nil, fixed(dx))
		if f.to != nil {
			f.to.grad = dx
			return gorgonia.Nodes{nil, dg, nil}
		}
		return gorgonia.Nodes{dx, dg}
	}
	if f.to != nil {
		return b.node(name, cost, shape, forward, grad, fixed(x), wrt(gain), fixed(f.wait))
	}
	return b.node(name, cost, shape, forward, grad, wrt(x), wrt(gain))
}

// residual is x + f; the gradient of x goes to the fork at x.
func (b *builder) residual(name string, x, f *gorgonia.Node, at *fork) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	forward := func(in []gorgonia.Value, y []float32) { kernels.Add(floats(in[0]), floats(in[1]), y) }
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		at.grad = grad
		return gorgonia.Nodes{nil, grad}
	}
	shape := tensor.Shape(x.Shape().Clone())
	return b.node(name, profile.Memory(profile.Residual, 3*shape.TotalSize()), shape, forward, grad, fixed(x), wrt(f))
}
