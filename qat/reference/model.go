package reference

import (
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// Model is a quantised model. Tensors go by the names of [configs.Config.Tensors].
type Model struct {
	Config   *configs.Config
	Matrices map[string]*qat.Matrix // quantised tensors, by rows
	Floats   map[string][]float32   // norms and routers
	Cos, Sin []float32              // [context_length, d/2]

	// Trace, if it is set, is shown the steps of each position, outside the layers with layer -1. It must not keep values.
	Trace func(layer int, name string, position int, values []float32)
}

// PLEScales are c_e, c_t and c_h of numerics.md; 0 without per-layer embeddings.
func PLEScales(c *configs.Config) (ce, ct, ch float32) {
	if c.PLEDim == 0 {
		return 0, 0, 0
	}
	return float32(1 / math.Sqrt(float64(c.DModel))), float32(math.Sqrt(float64(c.PLEDim))), float32(1 / math.Sqrt(2))
}

// Forward is the logits of every position, [len(ids), V]. The ids are below V, and no more than the context.
func (m *Model) Forward(ids []int32) []float32 {
	r := &run{Model: m, keys: make([][][]vector, m.Config.NLayers), values: make([][][]vector, m.Config.NLayers)}
	for l := range r.keys {
		r.keys[l], r.values[l] = make([][]vector, m.Config.NHeads), make([][]vector, m.Config.NHeads)
	}
	var logits []float32
	for t, id := range ids {
		r.position = t
		logits = append(logits, r.token(id)...)
	}
	return logits
}

// run is a sequence that the model reads.
type run struct {
	*Model
	position     int
	last         int32        // the id at the position before
	keys, values [][][]vector // [layer][head][position]
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

func (r *run) step(layer int, name string, values []float32) {
	if r.Trace != nil {
		r.Trace(layer, name, r.position, values)
	}
}

// token is the logits after a token at the next position.
func (r *run) token(id int32) []float32 {
	c := r.Config
	x := r.row(configs.TokenEmbedding, id)
	if c.NgramRows > 0 {
		if r.position == 0 {
			r.last = int32(c.VocabSize)
		}
		add(x, r.row(configs.NgramTable, int32(qat.NgramRow(uint32(r.last), uint32(id), uint32(c.NgramRows)))))
		r.last = id
	}
	r.step(-1, configs.TokenEmbedding, x)
	mix := r.mix(x, id)
	for l := range c.NLayers {
		part := func(name string) string { return configs.LayerTensor(l, name) }
		add(x, r.attention(l, r.rmsnorm(x, r.Floats[part(configs.AttentionNorm)])))
		h := r.rmsnorm(x, r.Floats[part(configs.FFNNorm)])
		if c.Experts > 1 {
			add(x, r.experts(l, h))
		} else {
			add(x, r.ffn(l, 0, h))
		}
		if p := c.PLEDim; p > 0 {
			g := r.linear(part(configs.PLEGate), x)
			r.step(l, configs.PLEGate, g)
			for i := range g {
				g[i] = qat.GELU(g[i]) * mix[l*p+i]
			}
			r.step(l, "ple_mix", g)
			y := r.linear(part(configs.PLEOutput), g)
			r.step(l, configs.PLEOutput, y)
			add(x, r.rmsnorm(y, r.Floats[part(configs.PLENorm)]))
		}
		r.step(l, "x", x)
	}
	head := configs.Head
	if c.TieEmbeddings {
		head = configs.TokenEmbedding
	}
	h := r.rmsnorm(x, r.Floats[configs.OutputNorm])
	r.step(-1, configs.OutputNorm, h)
	z := r.linear(head, h)
	r.step(-1, configs.Head, z)
	return z
}

// mix is the per-layer embeddings of a token, [L*P]; nil for a model without.
func (r *run) mix(x []float32, id int32) []float32 {
	c := r.Config
	p := c.PLEDim
	if p == 0 {
		return nil
	}
	ce, ct, ch := PLEScales(c)
	e := r.linear(configs.PLEProjection, x)
	r.step(-1, configs.PLEProjection, e)
	row := r.row(configs.PLETable, id)
	for i := range e {
		e[i] *= ce
	}
	mix := make([]float32, 0, len(e))
	for l := range c.NLayers {
		for i, v := range r.rmsnorm(e[l*p:(l+1)*p], r.Floats[configs.PLEProjectionNorm]) {
			mix = append(mix, float32(v+float32(row[l*p+i]*ct))*ch)
		}
	}
	r.step(-1, "mix", mix)
	return mix
}

// attention adds a position to a layer's keys and values, and is what the layer adds to the stream.
func (r *run) attention(l int, h []float32) []float32 {
	c := r.Config
	d, width := c.DModel, c.DModel/c.NHeads
	qkv := r.linear(configs.LayerTensor(l, configs.QKV), h)
	r.step(l, configs.QKV, qkv)
	var o []float32
	for h := range c.NHeads {
		q, k, v := qkv[h*width:(h+1)*width], qkv[d+h*width:d+(h+1)*width], qkv[2*d+h*width:2*d+(h+1)*width]
		if c.QKNorm {
			q, k = r.rmsnorm(q, nil), r.rmsnorm(k, nil)
		}
		r.keys[l][h] = append(r.keys[l][h], quantised(r.rotate(k)))
		r.values[l][h] = append(r.values[l][h], quantised(v))
		o = append(o, attend(quantised(r.rotate(q)), r.keys[l][h], r.values[l][h], c.ScoreScale())...)
	}
	r.step(l, "attention", o)
	y := r.linear(configs.LayerTensor(l, configs.AttentionOutput), o)
	r.step(l, configs.AttentionOutput, y)
	return y
}

// attend is what one head takes from the values.
func attend(q vector, keys, values []vector, c float32) []float32 {
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

// experts lets the router choose one expert and weighs what it gives.
func (r *run) experts(l int, h []float32) []float32 {
	c := r.Config
	router := r.Floats[configs.LayerTensor(l, configs.Router)]
	z := make([]float32, c.Experts)
	best := 0
	for e := range z {
		terms := make([]float32, c.DModel)
		for i := range terms {
			terms[i] = router[e*c.DModel+i] * h[i]
		}
		z[e] = qat.Sum8(terms)
		if z[e] > z[best] {
			best = e
		}
	}
	r.step(l, configs.Router, z)
	top := z[best]
	for e := range z {
		z[e] = qat.Exp(z[e] - top)
	}
	share := 1 / qat.Sum8(z)
	y := r.ffn(l, best, h)
	for i := range y {
		y[i] = share * y[i]
	}
	return y
}

// ffn is the gated feed-forward of an expert; a dense layer has the one.
func (r *run) ffn(l, e int, h []float32) []float32 {
	f, d := r.Config.DFF, r.Config.DModel
	g := r.product(configs.LayerTensor(l, configs.Gate), h, e*f, f)
	r.step(l, configs.Gate, g)
	u := r.product(configs.LayerTensor(l, configs.Up), h, e*f, f)
	for i := range g {
		switch {
		case r.Config.Activation == configs.SwiGLU:
			g[i] = qat.SiLU(g[i]) * u[i]
		case g[i] > 0:
			g[i] *= u[i]
		default:
			g[i] = 0
		}
	}
	r.step(l, "ffn", g)
	y := r.product(configs.LayerTensor(l, configs.Down), g, e*d, d)
	r.step(l, configs.Down, y)
	return y
}

func (r *run) linear(name string, x []float32) []float32 {
	return r.product(name, x, 0, r.Matrices[name].Rows)
}

// product is rows first to first+rows of a matrix times x, which is quantised as one vector.
func (r *run) product(name string, x []float32, first, rows int) []float32 {
	w := r.Matrices[name]
	in := quantised(x)
	group := w.Group
	if group == 0 {
		group = w.Cols
	}
	groups := qat.Groups(w.Spec, w.Cols)
	y := make([]float32, rows)
	for i := range y {
		row := w.Codes[(first+i)*w.Cols : (first+i+1)*w.Cols]
		var acc float32
		for g := range groups {
			var s int32
			for j := g * group; j < min((g+1)*group, w.Cols); j++ {
				s += int32(row[j]) * int32(in.codes[j])
			}
			acc += float32(float32(s) * w.Scales[(first+i)*groups+g])
		}
		y[i] = acc * in.scale
	}
	return y
}

// row is a dequantised row of a table.
func (r *run) row(name string, id int32) []float32 {
	w := r.Matrices[name]
	groups := qat.Groups(w.Spec, w.Cols)
	one := &qat.Matrix{Spec: w.Spec, Rows: 1, Cols: w.Cols, Codes: w.Codes[int(id)*w.Cols : (int(id)+1)*w.Cols],
		Scales: w.Scales[int(id)*groups : (int(id)+1)*groups]}
	x := make([]float32, w.Cols)
	one.Dequantise(x)
	return x
}

// rmsnorm scales x to a root mean square of 1, and by the gains g; nil is no gains.
func (r *run) rmsnorm(x, g []float32) []float32 {
	squares := make([]float32, len(x))
	for i, v := range x {
		squares[i] = v * v
	}
	v := qat.Sum8(squares) / float32(len(x))
	inverse := 1 / float32(math.Sqrt(float64(v+float32(r.Config.NormEps))))
	y := make([]float32, len(x))
	for i := range y {
		y[i] = x[i] * inverse
		if g != nil {
			y[i] *= g[i]
		}
	}
	return y
}

// rotate turns the pairs of a head by the angles of the position.
func (r *run) rotate(x []float32) []float32 {
	half := len(x) / 2
	y := make([]float32, len(x))
	for i := range half {
		c, s := r.Cos[r.position*half+i], r.Sin[r.position*half+i]
		y[i] = float32(x[i]*c) - float32(x[i+half]*s)
		y[i+half] = float32(x[i]*s) + float32(x[i+half]*c)
	}
	return y
}

func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
