package engine

import (
	"hash/fnv"
	"math"
	"sort"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// The reference: docs/numerics.md written down once more in plain Go, position by position, with nothing shared between
// positions but lists of past keys and values. Only the building blocks come from package qat.

func (m *testModel) scoreScale() float32 {
	return float32(1 / math.Sqrt(float64(m.cfg.DModel/m.cfg.NHeads)))
}

func (m *testModel) pleScales() (ce, ct, ch float32) {
	if m.cfg.PLEDim == 0 {
		return 0, 0, 0
	}
	return float32(1 / math.Sqrt(float64(m.cfg.DModel))), float32(math.Sqrt(float64(m.cfg.PLEDim))),
		float32(1 / math.Sqrt(2))
}

// product is rows first..first+rows of a matrix times x, x quantised as one vector.
func (m *testModel) product(name string, x []float32, first, rows int) []float32 {
	w := m.matrices[name]
	codes := make([]int8, len(x))
	sx := qat.QuantiseVector(x, codes)
	group := w.Spec.Group
	if group == 0 {
		group = w.Cols
	}
	groups := qat.Groups(w.Spec, w.Cols)
	y := make([]float32, rows)
	for r := range y {
		row := w.Codes[(first+r)*w.Cols : (first+r+1)*w.Cols]
		var acc float32
		for g := range groups {
			var s int32
			for i := g * group; i < min((g+1)*group, w.Cols); i++ {
				s += int32(row[i]) * int32(codes[i])
			}
			acc += float32(float32(s) * w.Scales[(first+r)*groups+g])
		}
		y[r] = acc * sx
	}
	return y
}

func (m *testModel) linear(name string, x []float32) []float32 {
	return m.product(name, x, 0, m.matrices[name].Rows)
}

func (m *testModel) row(name string, id int32) []float32 {
	w := m.matrices[name]
	all := make([]float32, w.Rows*w.Cols)
	w.Dequantise(all)
	return all[int(id)*w.Cols : (int(id)+1)*w.Cols]
}

func (m *testModel) rmsnorm(x, g []float32) []float32 {
	squares := make([]float32, len(x))
	for i, v := range x {
		squares[i] = v * v
	}
	v := qat.Sum8(squares) / float32(len(x))
	r := 1 / float32(math.Sqrt(float64(v+float32(m.cfg.NormEps))))
	y := make([]float32, len(x))
	for i := range y {
		y[i] = x[i] * r
		if g != nil {
			y[i] *= g[i]
		}
	}
	return y
}

func (m *testModel) rotate(x []float32, t int) []float32 {
	half := len(x) / 2
	y := make([]float32, len(x))
	for i := range half {
		c, s := m.cos[t*half+i], m.sin[t*half+i]
		y[i] = float32(x[i]*c) - float32(x[i+half]*s)
		y[i+half] = float32(x[i]*s) + float32(x[i+half]*c)
	}
	return y
}

// vector is a quantised vector.
type vector struct {
	codes []int8
	scale float32
}

func quantised(x []float32) vector {
	v := vector{codes: make([]int8, len(x))}
	v.scale = qat.QuantiseVector(x, v.codes)
	return v
}

func attention(q vector, keys, values []vector, c float32) []float32 {
	n := len(keys)
	a := make([]float32, n)
	top := float32(math.Inf(-1))
	for t, k := range keys {
		var dot int32
		for i := range q.codes {
			dot += int32(q.codes[i]) * int32(k.codes[i])
		}
		a[t] = float32(float32(dot)*float32(q.scale*k.scale)) * c
		top = max(top, a[t])
	}
	u := make([]float32, n)
	for t := range a {
		a[t] = qat.Exp(a[t] - top)
		u[t] = a[t] * values[t].scale
	}
	shares := quantised(u)
	total := qat.Sum8(a)
	o := make([]float32, len(q.codes))
	for i := range o {
		var s int32
		for t := range values {
			s += int32(shares.codes[t]) * int32(values[t].codes[i])
		}
		o[i] = float32(float32(s)*shares.scale) / total
	}
	return o
}

func (m *testModel) ffn(layer, e int, h []float32) []float32 {
	f, d := m.cfg.DFF, m.cfg.DModel
	g := m.product(configs.LayerTensor(layer, configs.Gate), h, e*f, f)
	m.step(layer, "gate", g)
	u := m.product(configs.LayerTensor(layer, configs.Up), h, e*f, f)
	for i := range g {
		if m.cfg.Activation == configs.SwiGLU {
			g[i] = qat.SiLU(g[i]) * u[i]
		} else if g[i] > 0 {
			g[i] *= u[i]
		} else {
			g[i] = 0
		}
	}
	m.step(layer, "ffn", g)
	y := m.product(configs.LayerTensor(layer, configs.Down), g, e*d, d)
	m.step(layer, "down", y)
	return y
}

// step shows a step to the model's tracer, as an engine does.
func (m *testModel) step(layer int, name string, values []float32) {
	if m.tracing != nil {
		m.tracing.Add(Step{Layer: layer, Name: name, Position: m.position, Values: values})
	}
}

// forward is the logits of every position, [len(ids), V].
func (m *testModel) forward(ids []int32) []float32 {
	c := &m.cfg
	d, p, width := c.DModel, c.PLEDim, c.DModel/c.NHeads
	keys := make([][][]vector, c.NLayers) // [layer][head][position]
	values := make([][][]vector, c.NLayers)
	for l := range keys {
		keys[l], values[l] = make([][]vector, c.NHeads), make([][]vector, c.NHeads)
	}
	var logits []float32
	for t, id := range ids {
		m.position = t
		x := m.row(configs.TokenEmbedding, id)
		m.step(-1, "token_embedding", x)
		var mix []float32
		if p > 0 {
			ce, ct, ch := m.pleScales()
			e := m.linear(configs.PLEProjection, x)
			m.step(-1, "ple_projection", e)
			row := m.row(configs.PLETable, id)
			for i := range e {
				e[i] *= ce
			}
			for l := range c.NLayers {
				for i, v := range m.rmsnorm(e[l*p:(l+1)*p], m.floats[configs.PLEProjectionNorm]) {
					mix = append(mix, float32(v+float32(row[l*p+i]*ct))*ch)
				}
			}
			m.step(-1, "mix", mix)
		}
		for l := range c.NLayers {
			part := func(name string) string { return configs.LayerTensor(l, name) }
			qkv := m.linear(part(configs.QKV), m.rmsnorm(x, m.floats[part(configs.AttentionNorm)]))
			m.step(l, "qkv", qkv)
			var o []float32
			for h := range c.NHeads {
				q, k, v := qkv[h*width:(h+1)*width], qkv[d+h*width:d+(h+1)*width], qkv[2*d+h*width:2*d+(h+1)*width]
				if c.QKNorm {
					q, k = m.rmsnorm(q, nil), m.rmsnorm(k, nil)
				}
				keys[l][h] = append(keys[l][h], quantised(m.rotate(k, t)))
				values[l][h] = append(values[l][h], quantised(v))
				o = append(o, attention(quantised(m.rotate(q, t)), keys[l][h], values[l][h], m.scoreScale())...)
			}
			m.step(l, "attention", o)
			y := m.linear(part(configs.AttentionOutput), o)
			m.step(l, "attention_output", y)
			for i, v := range y {
				x[i] += v
			}
			h := m.rmsnorm(x, m.floats[part(configs.FFNNorm)])
			if c.Experts > 1 {
				z := make([]float32, c.Experts)
				best := 0
				for e := range z {
					terms := make([]float32, d)
					for i := range terms {
						terms[i] = m.floats[part(configs.Router)][e*d+i] * h[i]
					}
					z[e] = qat.Sum8(terms)
					if z[e] > z[best] {
						best = e
					}
				}
				m.step(l, "router", z)
				top := z[best]
				for e := range z {
					z[e] = qat.Exp(z[e] - top)
				}
				share := 1 / qat.Sum8(z)
				for i, v := range m.ffn(l, best, h) {
					x[i] += float32(share * v)
				}
			} else {
				for i, v := range m.ffn(l, 0, h) {
					x[i] += v
				}
			}
			if p > 0 {
				g := m.linear(part(configs.PLEGate), x)
				m.step(l, "ple_gate", g)
				for i := range g {
					g[i] = qat.GELU(g[i]) * mix[l*p+i]
				}
				m.step(l, "ple_mix", g)
				y := m.linear(part(configs.PLEOutput), g)
				m.step(l, "ple_output", y)
				for i, v := range m.rmsnorm(y, m.floats[part(configs.PLENorm)]) {
					x[i] += v
				}
			}
			m.step(l, "x", x)
		}
		head := configs.Head
		if c.TieEmbeddings {
			head = configs.TokenEmbedding
		}
		h := m.rmsnorm(x, m.floats[configs.OutputNorm])
		m.step(-1, "output_norm", h)
		z := m.linear(head, h)
		m.step(-1, "head", z)
		logits = append(logits, z...)
	}
	return logits
}

func referenceDigest(ids []int32, logits []float32, v int) uint64 {
	h := fnv.New64a()
	for t, id := range ids {
		b := le.AppendUint32(le.AppendUint32(nil, uint32(t)), uint32(id))
		h.Write(append(b, floatBytes(logits[t*v:(t+1)*v]...)...))
	}
	return h.Sum64()
}

func referenceTop(logits []float32, k int) []TokenLogit {
	all := make([]TokenLogit, len(logits))
	for i, l := range logits {
		all[i] = TokenLogit{int32(i), l}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Logit > all[j].Logit || (all[i].Logit == all[j].Logit && all[i].ID < all[j].ID)
	})
	return all[:min(k, len(all))]
}
