package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
)

// linear is y [n, rows] = x [n, cols] times the transpose of w [rows, cols], with x quantised row by row.
// other is the fork at x, or nil.
func (b *builder) linear(name string, x *gorgonia.Node, w *weight, other *fork) *gorgonia.Node {
	n := b.rows
	acts := b.activations(n, w.cols, w.mode)
	cost := profile.Product(profile.LinearForward, n, w.rows, w.cols)
	costDx, costDw := profile.Product(profile.LinearDx, n, w.cols, w.rows), profile.Product(profile.LinearDw, w.rows, w.cols, n)
	forward := func(in []gorgonia.Value, y []float32) {
		acts.load(floats(in[0]), n)
		acts.product(w, floats(in[1]), 0, 0, n, kernels.M(y, w.rows))
	}
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		dx := b.node(name+".dx", costDx, tensor.Shape{n, w.cols}, func(in []gorgonia.Value, dx []float32) {
			add := false
			if g := other.from(in, 2); g != nil {
				copy(dx, g)
				add = true
			}
			kernels.Gemm(n, w.cols, w.rows, kernels.M(floats(in[0]), w.rows), kernels.M(floats(in[1]), w.cols), add, kernels.M(dx, w.cols))
		}, nil, append([]input{fixed(grad), fixed(w.node)}, other.inputs()...)...)
		dw := b.node(name+".dw", costDw, tensor.Shape{w.rows, w.cols}, func(in []gorgonia.Value, dw []float32) {
			acts.gradient(kernels.M(floats(in[0]), w.rows), w.rows, 0, n, false, dw)
		}, nil, fixed(grad))
		return gorgonia.Nodes{dx, dw}
	}
	return b.node(name, cost, tensor.Shape{n, w.rows}, forward, grad, wrt(x), wrt(w.node))
}
