package fakequant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// groups makes the awkward inputs of quantisation, rows x cols each.
func groups(rows, cols int) map[string][]float32 {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	fill := func(f func(i int) float64) []float32 {
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = float32(f(i))
		}
		return w
	}
	return map[string][]float32{
		"random":     fill(func(int) float64 { return rng.NormFloat64() * 0.05 }),
		"zero":       fill(func(int) float64 { return 0 }),
		"minus zero": fill(func(int) float64 { return math.Copysign(0, -1) }),
		"one outlier": fill(func(i int) float64 {
			return map[bool]float64{true: -40, false: 1e-3 * rng.NormFloat64()}[i%cols == cols/2]
		}),
		"exact half":  fill(func(i int) float64 { return float64(i%15-7) / 2 * 0.25 }), // multiples of half a step once a row holds 7 steps
		"all halves":  fill(func(i int) float64 { return map[bool]float64{true: 7, false: float64(i%13-6) + 0.5}[i%cols == 0] }),
		"denormal":    fill(func(i int) float64 { return rng.NormFloat64() * 0x1p-130 }),
		"threshold":   fill(func(i int) float64 { return map[bool]float64{true: 0x1p-100, false: 0x1.fffffep-101}[i/cols%2 == 0] }),
		"half denorm": fill(func(i int) float64 { return rng.NormFloat64() * 0x1p-20 }),
		"half zero":   fill(func(i int) float64 { return rng.NormFloat64() * 0x1p-28 }),
		"large":       fill(func(i int) float64 { return rng.NormFloat64() * 1e4 }),
	}
}

func specs() (all []qat.Spec) {
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{0, 32, 64, 128} {
			for _, scale := range []configs.ScaleType{configs.ScaleF32, configs.ScaleF16} {
				all = append(all, qat.Spec{Bits: bits, Group: group, Scale: scale})
				if group == 32 || group == 0 {
					all = append(all, qat.Spec{Bits: bits, Group: group, Scale: scale, Clip: 0.9}, qat.Spec{Bits: bits, Group: group, Scale: scale, Clip: 0.5})
				}
			}
		}
	}
	return all
}

// TestParity holds three things equal bit for bit: fake-quantisation in C, quantisation in Go, and what comes back
// from the packed bytes.
func TestParity(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 31}, {2, 64}, {3, 100}, {2, 200}, {4, 320}} {
		rows, cols := size[0], size[1]
		for name, w := range groups(rows, cols) {
			for _, spec := range specs() {
				t.Run(fmt.Sprintf("%s/%dx%d/%+v", name, rows, cols, spec), func(t *testing.T) {
					checkParity(t, spec, w, rows, cols)
				})
			}
		}
	}
}

func checkParity(t *testing.T, spec qat.Spec, w []float32, rows, cols int) {
	t.Helper()
	m, err := qat.Quantise(spec, w, rows, cols)
	values, packed := make([]float32, len(w)), NewPacked(spec, 1, rows, cols)
	Weights(spec, w, rows, cols, values, packed)
	codes, scales := unpack(t, packed)
	if err != nil {
		for _, s := range scales {
			if !(s <= math.MaxFloat32) {
				return // both refuse
			}
		}
		t.Fatalf("only Go refuses: %v", err)
	}
	back, err := qat.Unpack(spec, rows, cols, m.PackCodes(), m.PackScales())
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, len(w))
	back.Dequantise(want)
	for i := range w {
		if math.Float32bits(want[i]) != math.Float32bits(values[i]) || back.Codes[i] != codes[i] {
			t.Fatalf("weight %d = %v: Go %v (code %d), C %v (code %v)", i, w[i], want[i], back.Codes[i], values[i], codes[i])
		}
	}
	for i, s := range scales {
		if math.Float32bits(s) != math.Float32bits(back.Scales[i]) {
			t.Fatalf("scale %d: Go %v, C %v", i, back.Scales[i], s)
		}
	}
}

// unpack gives the codes and scales of a packed matrix in the order of rows, and checks its biases and paddings.
func unpack(t *testing.T, p *Packed) (codes []int8, scales []float32) {
	t.Helper()
	groups, quads, blocks := qat.Groups(p.Spec, p.Cols), Quads(p.Cols), (p.Rows+Block-1)/Block
	codes, scales = make([]int8, p.Rows*p.Cols), make([]float32, p.Rows*groups)
	width := p.Spec.Group
	if width <= 0 || width > p.Cols {
		width = p.Cols
	}
	for r := range blocks * Block {
		sums := make([]int32, groups)
		for c := range 4 * quads {
			code := p.Codes[((r/Block*quads+c/4)*Block+r%Block)*4+c%4]
			if r < p.Rows && c < p.Cols {
				codes[r*p.Cols+c] = code
				sums[c/width] += int32(code)
			} else if code != 0 {
				t.Fatalf("padding at row %d, column %d is %d", r, c, code)
			}
		}
		for g, sum := range sums {
			at := (r/Block*groups+g)*Block + r%Block
			if p.Bias[at] != -128*sum {
				t.Fatalf("bias of row %d, group %d is %d, want %d", r, g, p.Bias[at], -128*sum)
			}
			if r < p.Rows {
				scales[r*groups+g] = p.Scales[at]
			}
		}
	}
	return codes, scales
}

func TestVectorParity(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 7}, {3, 128}, {2, 321}} {
		rows, cols := size[0], size[1]
		for name, x := range groups(rows, cols) {
			stride := 4 * Quads(cols)
			codes, values, scales := make([]uint8, rows*stride), make([]float32, len(x)), make([]float32, rows)
			Activations(x, rows, cols, values, codes, scales)
			want := make([]int8, cols)
			for r := range rows {
				s := qat.QuantiseVector(x[r*cols:(r+1)*cols], want)
				if math.Float32bits(s) != math.Float32bits(scales[r]) {
					t.Fatalf("%s: scale of row %d: Go %v, C %v", name, r, s, scales[r])
				}
				for c, q := range want {
					i := r*cols + c
					if code := codes[r*stride+c]; int(q) != int(code)-128 || math.Float32bits(float32(q)*s) != math.Float32bits(values[i]+0) && q != 0 {
						t.Fatalf("%s: element %d = %v: Go %d, C %v (value %v)", name, i, x[i], q, int(code)-128, values[i])
					}
				}
			}
		}
	}
}

func TestRuleParity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := []float32{0, float32(math.Copysign(0, -1)), 0.5, 1.5, 2.5, -0.5, -1.5, 86, 87, -86, -87, 1e30, -1e30, 1e-30, -1e-40,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 65519, 65520, 0x1p-14, 0x1.ffep-15, 0x1p-25, 0x1.8p-24}
	for range 20000 {
		x = append(x, float32(rng.NormFloat64()*math.Pow(10, rng.Float64()*6-3)))
	}
	for i := range 2001 {
		x = append(x, float32(i-1000)*0.09)
	}
	got := make([]float32, len(x))
	for name, c := range map[string]struct {
		rule rule
		want func(float32) float32
	}{
		"rne": {ruleRNE, qat.RNE}, "exp": {ruleExp, qat.Exp}, "sigmoid": {ruleSigmoid, qat.Sigmoid},
		"silu": {ruleSiLU, qat.SiLU}, "gelu": {ruleGELU, qat.GELU},
	} {
		apply(c.rule, got, x)
		for i, v := range x {
			want := c.want(v)
			if math.Float32bits(want) != math.Float32bits(got[i]) && !(want != want && got[i] != got[i]) {
				t.Fatalf("%s(%v) = %v in Go, %v in C", name, v, want, got[i])
			}
		}
	}
	for n := range 40 {
		if a, b := qat.Sum8(x[24:24+n]), sum8(x[24:24+n]); math.Float32bits(a) != math.Float32bits(b) {
			t.Fatalf("sum8 of %d: %v in Go, %v in C", n, a, b)
		}
	}
}

// FuzzParity looks for weights on which C and Go, or the packed bytes, part.
func FuzzParity(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 0, 191, 1, 0, 0, 0}, uint8(4), uint8(1), true)
	f.Add([]byte{255, 255, 127, 127, 0, 0, 128, 0}, uint8(2), uint8(0), false)
	f.Fuzz(func(t *testing.T, raw []byte, bits, group uint8, half bool) {
		w := make([]float32, len(raw)/4)
		for i := range w {
			w[i] = math.Float32frombits(uint32(raw[4*i]) | uint32(raw[4*i+1])<<8 | uint32(raw[4*i+2])<<16 | uint32(raw[4*i+3])<<24)
		}
		if len(w) == 0 {
			return
		}
		spec := qat.Spec{Bits: []int{2, 4, 8}[bits%3], Group: []int{0, 32, 64, 128}[group%4], Scale: configs.ScaleF32}
		if half {
			spec.Scale = configs.ScaleF16
		}
		checkParity(t, spec, w, 1, len(w))
	})
}
