package arch

import (
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// reference computes a model one position at a time in plain Go, straight from docs/numerics.md.
type reference struct {
	cfg      *configs.Config
	w        *Weights
	cos, sin []float32
	quant    map[string]*qat.Matrix
	tables   map[string][]float32 // dequantised
	keys     [][][]vector8        // [layer][head][position]
	values   [][][]vector8
	last     int32 // the id that was fed before
	seen     []seen
}

// seen is a step of the last position that was fed.
type seen struct {
	layer  int
	name   string
	values []float32
}

func (r *reference) see(layer int, name string, values []float32) []float32 {
	r.seen = append(r.seen, seen{layer, name, slices.Clone(values)})
	return values
}

// vector8 is a quantised vector.
type vector8 struct {
	codes []int8
	scale float32
}

func quantised(x []float32) vector8 {
	v := vector8{codes: make([]int8, len(x))}
	v.scale = qat.QuantiseVector(x, v.codes)
	return v
}

func dot(a, b []int8) (sum int32) {
	for i := range a {
		sum += int32(a[i]) * int32(b[i])
	}
	return sum
}

func newReference(t *testing.T, cfg *configs.Config, w *Weights) *reference {
	r := &reference{cfg: cfg, w: w, quant: map[string]*qat.Matrix{}, tables: map[string][]float32{}}
	r.cos, r.sin = qat.Rotary(cfg.ContextLength, cfg.DModel/cfg.NHeads, cfg.RopeTheta)
	for i, tensor := range w.Tensors {
		if tensor.Quant.Bits == 32 {
			continue
		}
		m, err := qat.Quantise(tensor.Quant, w.Data[i], tensor.Rows(), tensor.Cols())
		if err != nil {
			t.Fatal(err)
		}
		r.quant[tensor.Name] = m
		r.tables[tensor.Name] = make([]float32, tensor.Len())
		m.Dequantise(r.tables[tensor.Name])
	}
	return r
}

func (r *reference) reset() {
	r.keys, r.values = nil, nil
	for range r.cfg.NLayers {
		r.keys = append(r.keys, make([][]vector8, r.cfg.NHeads))
		r.values = append(r.values, make([][]vector8, r.cfg.NHeads))
	}
}

// linear multiplies rows first to first+n of a matrix with x.
func (r *reference) linear(name string, first, n int, x []float32) []float32 {
	m := r.quant[name]
	if m == nil {
		return r.product(name, first, n, x)
	}
	v := quantised(x)
	groups := qat.Groups(m.Spec, m.Cols)
	wide := m.Group
	if wide == 0 {
		wide = m.Cols
	}
	y := make([]float32, n)
	for i := range y {
		row := first + i
		var acc float32
		for g := range groups {
			lo, hi := g*wide, min((g+1)*wide, m.Cols)
			s := float32(dot(m.Codes[row*m.Cols+lo:row*m.Cols+hi], v.codes[lo:hi]))
			acc = acc + float32(s*m.Scales[row*groups+g])
		}
		y[i] = acc * v.scale
	}
	return y
}

// product is that of a matrix which is not quantised.
func (r *reference) product(name string, first, n int, x []float32) []float32 {
	y := make([]float32, n)
	for i := range y {
		p := make([]float32, len(x))
		for j := range x {
			p[j] = r.w.Get(name)[(first+i)*len(x)+j] * x[j]
		}
		y[i] = qat.Sum8(p)
	}
	return y
}

func (r *reference) all(name string, x []float32) []float32 {
	return r.linear(name, 0, len(r.w.Get(name))/len(x), x)
}

// row is a dequantised row of a table.
func (r *reference) row(name string, id int32, cols int) []float32 {
	table := r.tables[name]
	if table == nil {
		table = r.w.Get(name)
	}
	return table[int(id)*cols : (int(id)+1)*cols]
}

func (r *reference) inverse(x []float32) float32 {
	sq := make([]float32, len(x))
	for i, v := range x {
		sq[i] = v * v
	}
	v := qat.Sum8(sq) / float32(len(x))
	return 1 / float32(math.Sqrt(float64(v+float32(r.cfg.NormEps))))
}

func (r *reference) rmsnorm(x, gain []float32) []float32 {
	inv := r.inverse(x)
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i]*inv) * gain[i]
	}
	return y
}

func (r *reference) rotated(x []float32, t int) []float32 {
	half := len(x) / 2
	y := make([]float32, len(x))
	inv := float32(1)
	if r.cfg.QKNorm {
		inv = r.inverse(x)
	}
	for i := range half {
		a, b := float32(x[i]*inv), float32(x[i+half]*inv)
		c, s := r.cos[t*half+i], r.sin[t*half+i]
		y[i] = float32(a*c) - float32(b*s)
		y[i+half] = float32(a*s) + float32(b*c)
	}
	return y
}

// attention is that of one head for its newest position.
func (r *reference) attention(q vector8, keys, values []vector8) []float32 {
	d := len(q.codes)
	c := float32(r.cfg.AttentionScale / math.Sqrt(float64(d)))
	a, u := make([]float32, len(keys)), make([]float32, len(keys))
	top := float32(math.Inf(-1))
	for t, k := range keys {
		a[t] = float32(float32(dot(q.codes, k.codes))*float32(q.scale*k.scale)) * c
		top = max(top, a[t])
	}
	for t := range a {
		a[t] = qat.Exp(a[t] - top)
		u[t] = a[t] * values[t].scale
	}
	uq := quantised(u)
	sum := qat.Sum8(a)
	o := make([]float32, d)
	for i := range o {
		var s int32
		for t := range values {
			s += int32(uq.codes[t]) * int32(values[t].codes[i])
		}
		o[i] = float32(float32(s)*uq.scale) / sum
	}
	return o
}

func (r *reference) ffn(l, expert int, h []float32) []float32 {
	f, d := r.cfg.DFF, r.cfg.DModel
	name := func(part string) string { return configs.LayerTensor(l, part) }
	g := r.see(l, configs.Gate, r.linear(name(configs.Gate), expert*f, f, h))
	u := r.linear(name(configs.Up), expert*f, f, h)
	for i := range g {
		switch {
		case r.cfg.Activation == configs.SwiGLU:
			g[i] = qat.SiLU(g[i]) * u[i]
		case g[i] > 0:
			g[i] *= u[i]
		default:
			g[i] = 0
		}
	}
	return r.see(l, configs.Down, r.linear(name(configs.Down), expert*d, d, r.see(l, StepFFN, g)))
}

// ngramRow is the hash of docs/numerics.md, in 64 bits with what lies beyond 32 cut off.
func ngramRow(previous, id int32, rows int) int32 {
	const low = 1<<32 - 1
	k := (uint64(previous)*0x9e3779b1 + uint64(id)) & low
	k = (k ^ k>>15) * 0x6a09e667 & low
	k = (k ^ k>>13) * 0xbb67ae85 & low
	return int32((k ^ k>>16) % uint64(rows))
}

// step feeds one id at position t of a sequence and returns the logits.
func (r *reference) step(id int32, t int) []float32 {
	c := r.cfg
	d, dim := c.DModel, c.DModel/c.NHeads
	r.seen = nil
	x := slices.Clone(r.row(configs.TokenEmbedding, id, d))
	if c.NgramRows > 0 {
		if t == 0 {
			r.last = int32(c.VocabSize)
		}
		for i, v := range r.row(configs.NgramTable, ngramRow(r.last, id, c.NgramRows), d) {
			x[i] += v
		}
		r.last = id
	}
	r.see(-1, configs.TokenEmbedding, x)
	var e []float32
	if p := c.PLEDim; p > 0 {
		e = r.see(-1, configs.PLEProjection, r.all(configs.PLEProjection, x))
		ce := float32(1 / math.Sqrt(float64(d)))
		for i := range e {
			e[i] *= ce
		}
		table := r.row(configs.PLETable, id, c.NLayers*p)
		ct, ch := float32(math.Sqrt(float64(p))), float32(1/math.Sqrt(2))
		for l := range c.NLayers {
			y := r.rmsnorm(e[l*p:(l+1)*p], r.w.Get(configs.PLEProjectionNorm))
			for i := range y {
				e[l*p+i] = (y[i] + float32(table[l*p+i]*ct)) * ch
			}
		}
		r.see(-1, StepMix, e)
	}
	add := func(f []float32) {
		for i := range x {
			x[i] += f[i]
		}
	}
	for l := range c.NLayers {
		name := func(part string) string { return configs.LayerTensor(l, part) }
		all := func(part string, x []float32) []float32 { return r.see(l, part, r.all(name(part), x)) }
		qkv := all(configs.QKV, r.rmsnorm(x, r.w.Get(name(configs.AttentionNorm))))
		var o []float32
		for h := range c.NHeads {
			q := quantised(r.rotated(qkv[h*dim:(h+1)*dim], t))
			r.keys[l][h] = append(r.keys[l][h], quantised(r.rotated(qkv[d+h*dim:d+(h+1)*dim], t)))
			r.values[l][h] = append(r.values[l][h], quantised(qkv[2*d+h*dim:2*d+(h+1)*dim]))
			o = append(o, r.attention(q, r.keys[l][h], r.values[l][h])...)
		}
		add(all(configs.AttentionOutput, r.see(l, StepAttention, o)))

		h := r.rmsnorm(x, r.w.Get(name(configs.FFNNorm)))
		if c.Experts > 1 {
			z := r.see(l, configs.Router, r.product(name(configs.Router), 0, c.Experts, h))
			best := 0
			for j := range z {
				if z[j] > z[best] {
					best = j
				}
			}
			a := make([]float32, len(z))
			for j := range z {
				a[j] = qat.Exp(z[j] - z[best])
			}
			p := 1 / qat.Sum8(a)
			f := r.ffn(l, best, h)
			for i := range x {
				x[i] += float32(p * f[i])
			}
		} else {
			add(r.ffn(l, 0, h))
		}
		if p := c.PLEDim; p > 0 {
			g := all(configs.PLEGate, x)
			for i := range g {
				g[i] = qat.GELU(g[i]) * e[l*p+i]
			}
			add(r.rmsnorm(all(configs.PLEOutput, r.see(l, StepPLEMix, g)), r.w.Get(name(configs.PLENorm))))
		}
		r.see(l, StepStream, x)
	}
	head := configs.Head
	if c.TieEmbeddings {
		head = configs.TokenEmbedding
	}
	return r.see(-1, configs.Head, r.all(head, r.see(-1, configs.OutputNorm, r.rmsnorm(x, r.w.Get(configs.OutputNorm)))))
}

// TestExactEqualsReference holds the graph in exact mode equal, bit for bit, to the reference, however the sequences are
// batched.
func TestExactEqualsReference(t *testing.T) {
	cases := variants()
	for name, edit := range map[string]func(*configs.Config){
		"8 bits by row": func(c *configs.Config) {
			c.Quant.Weights = configs.WeightQuant{Bits: 8, Group: 0, Scale: configs.ScaleF16}
		},
		"2 bits": func(c *configs.Config) { c.Quant.Weights.Bits = 2 },
		"float head": func(c *configs.Config) {
			bits := 32
			c.Quant.Classes = map[configs.TensorClass]configs.ClassRule{configs.ClassEmbedding: {Bits: &bits}}
		},
		"float trunk": func(c *configs.Config) {
			bits := 32
			c.Quant.Classes = map[configs.TensorClass]configs.ClassRule{configs.ClassTrunk: {Bits: &bits}}
		},
		"wide": func(c *configs.Config) { // groups whose sums pass 2^24
			c.DModel, c.NHeads, c.NLayers, c.DFF, c.ContextLength = 1100, 10, 1, 1104, 2
			c.Quant.Weights = configs.WeightQuant{Bits: 8, Group: 0, Scale: configs.ScaleF32}
		},
		"several blocks": func(c *configs.Config) { c.ContextLength = 150 },
		"long":           func(c *configs.Config) { c.ContextLength, c.NLayers = 1100, 1 }, // so do sums over positions
	} {
		cases[name] = testConfig(edit)
	}
	for name, cfg := range cases {
		t.Run(name, func(t *testing.T) {
			w := randomWeights(cfg, 11)
			seq, batch := cfg.ContextLength, 2
			ids, targets := randomBatch(cfg, batch*seq, 4)
			ref := newReference(t, cfg, w)
			var want []float32
			for s := range batch {
				ref.reset()
				for p := range seq {
					want = append(want, ref.step(ids[s*seq+p], p)...)
				}
			}
			together := mustBuild(t, cfg, w, Options{Batch: batch, Seq: seq, Exact: true, Logits: true})
			mustRun(t, together, ids, targets)
			compareBits(t, "whole batch", together.Logits(), want)

			one := mustBuild(t, cfg, w, Options{Batch: 1, Seq: seq, Exact: true, Logits: true})
			for s := range batch {
				mustRun(t, one, ids[s*seq:(s+1)*seq], targets[s*seq:(s+1)*seq])
				compareBits(t, "one sequence", one.Logits(), want[s*seq*cfg.VocabSize:(s+1)*seq*cfg.VocabSize])
			}
		})
	}
}

func compareBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d of position %d is %v (%08x), the reference says %v (%08x)", what, i%29, i/29,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}
