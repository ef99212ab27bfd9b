package testfile

import "math"

// Forward is the logits of every position, in float64, with weights dequantised and activations as they are.
func (m *Model) Forward(ids []int32) [][]float64 {
	return m.forward(ids, func(x []float64) []float64 { return x }, func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 })
}

// ForwardRounded is Forward with the two things that chiplm does otherwise. What it rounds to 8 bits is rounded: the input of
// every product, queries, keys and values of each head, and what weighs the values; and gelu has its tanh form. All is
// float64 still.
func (m *Model) ForwardRounded(ids []int32) [][]float64 {
	return m.forward(ids, func(x []float64) []float64 {
		most := 0.0
		for _, v := range x {
			most = max(most, math.Abs(v))
		}
		y := make([]float64, len(x))
		for i, v := range x {
			if most > 0 {
				y[i] = math.RoundToEven(v*127/most) * most / 127
			}
		}
		return y
	}, func(x float64) float64 {
		return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
	})
}

func (m *Model) forward(ids []int32, round func([]float64) []float64, gelu func(float64) float64) [][]float64 {
	d, p := m.D, m.P
	width := d / m.Heads
	keys := make([][][]float64, m.Layers) // [layer][position], all heads
	values := make([][][]float64, m.Layers)
	var out [][]float64
	for t, id := range ids {
		x := m.TokEmb.row(int(id))
		e := m.PLEModelProj.times(round(x))
		table := m.PLETable.row(int(id))
		ple := make([]float64, len(e))
		for l := range m.Layers {
			part := make([]float64, p)
			for i := range part {
				part[i] = e[l*p+i] / math.Sqrt(float64(d))
			}
			for i, v := range rmsNorm(part, m.PLEProjNorm) {
				ple[l*p+i] = (v + table[l*p+i]*math.Sqrt(float64(p))) / math.Sqrt2
			}
		}
		for l := range m.Layer {
			w := &m.Layer[l]
			qkv := w.QKV.times(round(rmsNorm(x, w.AttnNorm)))
			q, k, v := qkv[:d], qkv[d:2*d], qkv[2*d:]
			for h := range m.Heads {
				from, to := h*width, (h+1)*width
				m.rotate(q[from:to], t)
				m.rotate(k[from:to], t)
				for _, x := range [][]float64{q[from:to], k[from:to], v[from:to]} {
					copy(x, round(x))
				}
			}
			keys[l], values[l] = append(keys[l], k), append(values[l], v)
			o := make([]float64, d)
			for h := range m.Heads {
				from, to := h*width, (h+1)*width
				scores := make([]float64, t+1)
				top := math.Inf(-1)
				for s := range scores {
					for i := from; i < to; i++ {
						scores[s] += q[i] * keys[l][s][i] / math.Sqrt(float64(width))
					}
					top = max(top, scores[s])
				}
				total := 0.0
				for s := range scores {
					scores[s] = math.Exp(scores[s] - top)
					total += scores[s]
				}
				// Rounded are the weights times the scale of the values of their position, as numerics.md has it.
				scaled, scale := make([]float64, t+1), make([]float64, t+1)
				for s := range scores {
					for i := from; i < to; i++ {
						scale[s] = max(scale[s], math.Abs(values[l][s][i]))
					}
					scaled[s] = scores[s] * scale[s]
				}
				for s, w := range round(scaled) {
					for i := from; i < to && scale[s] > 0; i++ {
						o[i] += w / total * values[l][s][i] / scale[s]
					}
				}
			}
			add(x, w.AttnProj.times(round(o)))

			h := rmsNorm(x, w.FFNNorm)
			g, u := w.Gate.times(round(h)), w.Up.times(round(h))
			for i := range g {
				g[i] = g[i] / (1 + math.Exp(-g[i])) * u[i]
			}
			add(x, w.Down.times(round(g)))

			g = w.PLEGate.times(round(x))
			for i := range g {
				g[i] = gelu(g[i]) * ple[l*p+i]
			}
			add(x, rmsNorm(w.PLEProj.times(round(g)), w.PLENorm))
		}
		head := m.Head
		if head == nil {
			head = m.TokEmb
		}
		out = append(out, head.times(round(rmsNorm(x, m.OutNorm)))[:m.OutVocab])
	}
	return out
}

// rotate turns the pairs of a head, its first half with its second.
func (m *Model) rotate(x []float64, t int) {
	half := len(x) / 2
	for i := range half {
		sin, cos := math.Sincos(float64(t) * math.Pow(float64(m.Theta), -2*float64(i)/float64(len(x))))
		a, b := x[i], x[i+half]
		x[i], x[i+half] = a*cos-b*sin, b*cos+a*sin
	}
}

func rmsNorm(x []float64, gain []float32) []float64 {
	squares := 0.0
	for _, v := range x {
		squares += v * v
	}
	root := math.Sqrt(squares/float64(len(x)) + 1e-6)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / root * float64(gain[i])
	}
	return y
}

func (q *Quant) row(r int) []float64 {
	x := make([]float64, q.Cols)
	for c := range x {
		x[c] = q.Value(r, c)
	}
	return x
}

func (q *Quant) times(x []float64) []float64 {
	y := make([]float64, q.Rows)
	groups := q.groups()
	for r := range y {
		for g := range groups {
			sum := 0.0
			for c := g * q.Group; c < min((g+1)*q.Group, q.Cols); c++ {
				sum += float64(q.Codes[r*q.Cols+c]) * x[c]
			}
			y[r] += sum * HalfValue(q.Scales[r*groups+g])
		}
	}
	return y
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}
