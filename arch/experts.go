package arch

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// experts is the mixture of experts of one layer: a float router sends each position to one feed-forward, whose result
// is weighted with its probability (Fedus, Zoph and Shazeer 2021). Positions are sorted by expert, so that each expert
// works on consecutive rows. In training, the gradient of the load-balancing loss, weighted with router_aux, is part
// of the router's.
type experts struct {
	aux float64 // load-balancing loss of the last run, not weighted

	count, rows, d, f    int
	act                  configs.Activation
	gate, up, down       *weight
	first, second        *activations // what enters gate and up, and what enters down
	z, prob, p, dp, bias []float32
	choice               []int32
	start                []int // rows start[e] to start[e+1], after sorting, belong to expert e
	order                []int // the position of each sorted row
	x, gu, a, y          []float32
	dy, da, dgu, dx, dz  []float32
	sorted, sortedGrad   []float32 // p and its gradient in sorted order
	share                []float32 // of the positions, by expert
	profile              *profile.Profile
}

// experts is the sum that the residual stream receives, [n, d_model].
func (b *builder) experts(name string, l int, h *gorgonia.Node) *gorgonia.Node {
	c, n, d, f := b.cfg, b.rows, b.cfg.DModel, b.cfg.DFF
	part := func(p string) string { return configs.LayerTensor(l, p) }
	router := b.params[part(configs.Router)]
	gate, up, down := b.weights(part(configs.Gate), c.Experts), b.weights(part(configs.Up), c.Experts), b.weights(part(configs.Down), c.Experts)
	if b.err != nil {
		return nil
	}
	buf := func(size int) []float32 { return pages.Make[float32](size) }
	k := c.Experts
	m := &experts{
		count: k, rows: n, d: d, f: f, act: c.Activation, gate: gate, up: up, down: down,
		first: b.activations(n, d, gate.mode), second: b.activations(n, f, down.mode),
		z: buf(n * k), prob: buf(n * k), p: buf(n), choice: make([]int32, n), start: make([]int, k+1), order: make([]int, n),
		x: buf(n * d), gu: buf(2 * n * f), a: buf(n * f), y: buf(n * d), share: buf(k),
		profile: b.opt.Profile,
	}
	b.routers = append(b.routers, m)
	b.showRouted(l, m)
	forward := func(in []gorgonia.Value, y []float32) {
		m.forward(floats(in[0]), floats(in[1]), floats(in[2]), floats(in[3]), floats(in[4]), y)
	}
	shape := func(w *weight) tensor.Shape { return tensor.Shape{w.rows, w.cols} }
	grad := func(_, grad *gorgonia.Node) gorgonia.Nodes {
		m.dp, m.bias, m.dz, m.sorted, m.sortedGrad = buf(n), buf(k), buf(n*k), buf(n), buf(n)
		m.dy, m.da, m.dgu, m.dx = buf(n*d), buf(n*f), buf(2*n*f), buf(n*d)
		drouter, dgate, dup, ddown := buf(k*d), buf(k*f*d), buf(k*f*d), buf(k*d*f)
		cost := profile.Product(profile.Router, n, d, 2*k) // of what backward does not charge
		dh := b.node(name+".dx", cost, tensor.Shape{n, d}, func(in []gorgonia.Value, dh []float32) {
			m.backward(floats(in[1]), floats(in[2]), floats(in[3]), floats(in[4]), floats(in[5]), floats(in[0]),
				float32(c.Train.RouterAux), dh, drouter, dgate, dup, ddown)
		}, nil, fixed(grad), fixed(h), fixed(router), fixed(gate.node), fixed(up.node), fixed(down.node))
		return gorgonia.Nodes{dh,
			b.nodeInto(name+".drouter", profile.Cost{}, tensor.Shape{k, d}, drouter, nil, nil, fixed(dh)),
			b.nodeInto(name+".dgate", profile.Cost{}, shape(gate), dgate, nil, nil, fixed(dh)),
			b.nodeInto(name+".dup", profile.Cost{}, shape(up), dup, nil, nil, fixed(dh)),
			b.nodeInto(name+".ddown", profile.Cost{}, shape(down), ddown, nil, nil, fixed(dh))}
	}
	cost := profile.Memory(profile.ExpertSorting, 2*n*d) // of what forward does not charge
	return b.node(name, cost, tensor.Shape{n, d}, forward, grad, wrt(h), wrt(router), wrt(gate.node), wrt(up.node), wrt(down.node))
}

// sort groups the positions by chosen expert, in their order.
func (m *experts) sort() {
	clear(m.start)
	for _, e := range m.choice {
		m.start[e+1]++
	}
	for e := range m.count {
		m.share[e] = float32(m.start[e+1]) / float32(m.rows)
		m.start[e+1] += m.start[e]
	}
	next := append([]int(nil), m.start[:m.count]...)
	for r, e := range m.choice {
		m.order[next[e]] = r
		next[e]++
	}
}

// gather copies rows into sorted order; scatter puts them back.
func (m *experts) gather(dst, src []float32) {
	for i, r := range m.order {
		copy(dst[i*m.d:(i+1)*m.d], src[r*m.d:(r+1)*m.d])
	}
}

func (m *experts) scatter(dst, src []float32) {
	for i, r := range m.order {
		copy(dst[r*m.d:(r+1)*m.d], src[i*m.d:(i+1)*m.d])
	}
}

// each calls f with the rows of every expert that has some.
func (m *experts) each(f func(e, from, rows int)) {
	for e := range m.count {
		if rows := m.start[e+1] - m.start[e]; rows > 0 {
			f(e, m.start[e], rows)
		}
	}
}

func (m *experts) forward(h, router, gate, up, down, out []float32) {
	d, f := m.d, m.f
	kernels.ProductSum8(h, m.rows, d, router, m.count, kernels.M(m.z, m.count))
	m.profile.Lap(profile.Product(profile.Router, m.rows, m.count, d))
	kernels.Route(m.z, m.count, m.choice, m.p, m.prob)
	m.sort()
	m.aux = 0
	for e, share := range m.share {
		mean := 0.0
		for r := range m.rows {
			mean += float64(m.prob[r*m.count+e])
		}
		m.aux += float64(m.count) * float64(share) * mean / float64(m.rows)
	}
	m.gather(m.x, h)
	m.profile.Lap(profile.Memory(profile.ExpertSorting, 2*m.rows*d))
	m.first.load(m.x, m.rows)
	m.each(func(e, from, rows int) {
		m.first.product(m.gate, gate, e, from, rows, kernels.M(m.gu[from*2*f:], 2*f))
		m.first.product(m.up, up, e, from, rows, kernels.M(m.gu[from*2*f+f:], 2*f))
		m.profile.Lap(profile.Product(profile.LinearForward, rows, 2*f, d))
	})
	kernels.Gate(m.gu, m.rows, f, m.act, m.a)
	m.profile.Lap(profile.Memory(profile.Gate, 3*m.rows*f))
	m.second.load(m.a, m.rows)
	m.each(func(e, from, rows int) {
		m.second.product(m.down, down, e, from, rows, kernels.M(m.y[from*d:], d))
		m.profile.Lap(profile.Product(profile.LinearForward, rows, d, f))
	})
	m.scatter(out, m.y)
	kernels.DotScaleRows(out, nil, m.p, d, nil)
}

func (m *experts) backward(h, router, gate, up, down, grad []float32, aux float32, dh, drouter, dgate, dup, ddown []float32) {
	d, f, k := m.d, m.f, m.count
	m.gather(m.dy, grad)
	for i, r := range m.order {
		m.sorted[i] = m.p[r]
	}
	kernels.DotScaleRows(m.dy, m.y, m.sorted, d, m.sortedGrad)
	for i, r := range m.order {
		m.dp[r] = m.sortedGrad[i]
	}
	m.profile.Lap(profile.Memory(profile.ExpertSorting, 2*m.rows*d))
	m.each(func(e, from, rows int) {
		kernels.Gemm(rows, f, d, kernels.M(m.dy[from*d:], d), kernels.M(down[e*d*f:], f), false, kernels.M(m.da[from*f:], f))
		m.profile.Lap(profile.Product(profile.LinearDx, rows, f, d))
	})
	kernels.GateGrad(m.gu, m.da, m.rows, f, m.act, m.dgu)
	m.profile.Lap(profile.Memory(profile.GateGradient, 5*m.rows*f))
	for _, w := range [][]float32{dgate, dup, ddown} {
		clear(w) // an expert without positions has no gradient
	}
	m.profile.Lap(profile.Memory(profile.ExpertSorting, len(dgate)+len(dup)+len(ddown)))
	m.each(func(e, from, rows int) {
		dg, du := kernels.M(m.dgu[from*2*f:], 2*f), kernels.M(m.dgu[from*2*f+f:], 2*f)
		m.first.gradient(dg, f, from, rows, false, dgate[e*f*d:])
		m.first.gradient(du, f, from, rows, false, dup[e*f*d:])
		m.second.gradient(kernels.M(m.dy[from*d:], d), d, from, rows, false, ddown[e*d*f:])
		m.profile.Lap(profile.Product(profile.LinearDw, 3*f, d, rows))
		dx := kernels.M(m.dx[from*d:], d)
		kernels.Gemm(rows, d, f, dg, kernels.M(gate[e*f*d:], d), false, dx)
		kernels.Gemm(rows, d, f, du, kernels.M(up[e*f*d:], d), true, dx)
		m.profile.Lap(profile.Product(profile.LinearDx, rows, d, 2*f))
	})
	m.scatter(dh, m.dx)
	for e, share := range m.share {
		m.bias[e] = aux * float32(k) * share / float32(m.rows)
	}
	m.profile.Lap(profile.Memory(profile.ExpertSorting, 2*m.rows*d))
	kernels.RouteGrad(m.prob, m.choice, m.dp, m.bias, m.dz)
	kernels.Gemm(k, d, m.rows, kernels.M(m.dz, k).T(), kernels.M(h, d), false, kernels.M(drouter, d))
	kernels.Gemm(m.rows, d, k, kernels.M(m.dz, k), kernels.M(router, d), true, kernels.M(dh, d))
}
