// Package testfile writes model files of esp32-ai with random weights, for tests, and runs them in float64. It is written
// from the formulas and the layout of that project alone: it shares nothing with the reader but the sizes of a model.
//
// Caveats: nothing here is meant to be fast.
package testfile

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Shape is the sizes of a model.
type Shape struct {
	InVocab, OutVocab, D, Layers, Heads, F, P, Context int
	Group                                              int // of every tensor, unless Groups has it
	Groups                                             map[string]int
	Theta                                              float32
	Tied                                               bool
	Older                                              bool // the header without a version; tied always
}

// Full is the model that the project ships: 28,869,920 parameters.
func Full() Shape {
	return Shape{InVocab: 32768, OutVocab: 32768, D: 96, Layers: 6, Heads: 4, F: 66, P: 128, Context: 512, Group: 128, Theta: 10000, Tied: true}
}

// Quant is a quantised tensor: values are Codes times the scale of their group.
type Quant struct {
	Rows, Cols, Group int
	Codes             []int8   // -8 to 7
	Scales            []uint16 // float16
}

// Layer is the tensors of a layer.
type Layer struct {
	AttnNorm, FFNNorm, PLENorm                      []float32
	QKV, AttnProj, Gate, Up, Down, PLEGate, PLEProj *Quant
}

// Model is a model of random weights.
type Model struct {
	Shape
	TokEmb, PLEModelProj, PLETable *Quant
	PLEProjNorm, OutNorm           []float32
	Layer                          []Layer
	Head                           *Quant // nil when tied
}

// Random makes a model: codes of every value from -7 to 7, scales such that activations keep their size.
func Random(s Shape, seed uint64) *Model {
	rng := rand.New(rand.NewPCG(seed, 1))
	quant := func(name string, rows, cols int, size float64) *Quant {
		q := &Quant{Rows: rows, Cols: cols, Group: s.Group, Codes: make([]int8, rows*cols)}
		if g, ok := s.Groups[name]; ok {
			q.Group = g
		}
		for i := range q.Codes {
			q.Codes[i] = int8(max(-7, min(7, math.Round(3*rng.NormFloat64()))))
		}
		q.Scales = make([]uint16, rows*q.groups())
		for i := range q.Scales {
			q.Scales[i] = Half(size / 3 * (0.8 + 0.4*rng.Float64()))
		}
		return q
	}
	norm := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(1 + 0.2*rng.NormFloat64())
		}
		return v
	}
	in := func(n int) float64 { return 1 / math.Sqrt(float64(n)) }
	lp := s.Layers * s.P
	m := &Model{Shape: s}
	m.TokEmb = quant("tok_emb", s.InVocab, s.D, in(s.D))
	m.PLEModelProj = quant("ple_model_proj", lp, s.D, in(s.D))
	m.PLEProjNorm = norm(s.P)
	m.PLETable = quant("ple_table", s.InVocab, lp, in(s.P))
	for range s.Layers {
		var l Layer
		l.AttnNorm = norm(s.D)
		l.QKV = quant("qkv", 3*s.D, s.D, in(s.D))
		l.AttnProj = quant("attn_proj", s.D, s.D, in(s.D))
		l.FFNNorm = norm(s.D)
		l.Gate = quant("gate", s.F, s.D, in(s.D))
		l.Up = quant("up", s.F, s.D, in(s.D))
		l.Down = quant("down", s.D, s.F, in(s.F))
		l.PLEGate = quant("ple_gate", s.P, s.D, in(s.D))
		l.PLEProj = quant("ple_proj", s.D, s.P, in(s.P))
		l.PLENorm = norm(s.D)
		m.Layer = append(m.Layer, l)
	}
	m.OutNorm = norm(s.D)
	if !s.Tied && !s.Older {
		m.Head = quant("head", s.OutVocab, s.D, in(s.D))
	}
	return m
}

func (q *Quant) groups() int { return (q.Cols + q.Group - 1) / q.Group }

// Value is a weight.
func (q *Quant) Value(row, col int) float64 {
	return float64(q.Codes[row*q.Cols+col]) * HalfValue(q.Scales[row*q.groups()+col/q.Group])
}

// Bytes is the file of the model.
func (m *Model) Bytes() []byte {
	le := binary.LittleEndian
	var b []byte
	word := func(v ...int) {
		for _, x := range v {
			b = le.AppendUint32(b, uint32(x))
		}
	}
	switch {
	case m.Older:
		word(0x504C4531, m.InVocab)
	case m.Tied:
		word(0x00454C50, 1, 56, 1, m.InVocab, m.OutVocab)
	default:
		word(0x00454C50, 1, 56, 0, m.InVocab, m.OutVocab)
	}
	word(m.D, m.Layers, m.Heads, m.F, m.P, m.Context, m.Group)
	b = le.AppendUint32(b, math.Float32bits(m.Theta))
	quant := func(q *Quant) {
		word(q.Group)
		for r := range q.Rows {
			for c := 0; c < q.Cols; c += 2 {
				x := byte(q.Codes[r*q.Cols+c]+8) & 15
				if c+1 < q.Cols {
					x |= byte(q.Codes[r*q.Cols+c+1]+8) << 4
				}
				b = append(b, x)
			}
		}
		for _, s := range q.Scales {
			b = le.AppendUint16(b, s)
		}
	}
	floats := func(v []float32) {
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
	}
	quant(m.TokEmb)
	quant(m.PLEModelProj)
	floats(m.PLEProjNorm)
	quant(m.PLETable)
	for _, l := range m.Layer {
		floats(l.AttnNorm)
		quant(l.QKV)
		quant(l.AttnProj)
		floats(l.FFNNorm)
		quant(l.Gate)
		quant(l.Up)
		quant(l.Down)
		quant(l.PLEGate)
		quant(l.PLEProj)
		floats(l.PLENorm)
	}
	floats(m.OutNorm)
	if m.Head != nil {
		quant(m.Head)
	}
	return b
}

// HalfValue is the number that a float16 stands for.
func HalfValue(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1+frac/1024, exp-15)
	switch exp {
	case 0:
		v = math.Ldexp(frac, -24)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	}
	if h>>15 != 0 {
		v = -v
	}
	return v
}

// Half is the float16 nearest to a number from 0 to 65504.
func Half(v float64) uint16 {
	if v < 0x1p-14 {
		return uint16(math.RoundToEven(v * 0x1p24))
	}
	frac, exp := math.Frexp(v) // v = frac * 2^exp, frac from 1/2
	return uint16(exp+13)<<10 + uint16(math.RoundToEven(frac*2048))
}
