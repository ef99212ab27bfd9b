package qat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

func TestQuantiseByHand(t *testing.T) {
	// m = 7, s = 1: halves go to the even neighbour.
	w := []float32{7, 0.5, 1.5, 2.5, -0.5, -1.5, -7, 3.49}
	m, err := Quantise(Spec{Bits: 4, Scale: configs.ScaleF32}, w, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int8{7, 0, 2, 2, 0, -2, -7, 3}; !slices.Equal(m.Codes, want) || m.Scales[0] != 1 {
		t.Errorf("codes %v scale %v, want %v and 1", m.Codes, m.Scales[0], want)
	}
	// 2 bits: one scale for the first two columns, another for the short last group.
	m, err = Quantise(Spec{Bits: 2, Group: 2, Scale: configs.ScaleF32}, []float32{0.4, -1, 0.25}, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int8{0, -1, 1}; !slices.Equal(m.Codes, want) || !slices.Equal(m.Scales, []float32{1, 0.25}) {
		t.Errorf("codes %v scales %v", m.Codes, m.Scales)
	}
	codes := make([]int8, 3)
	if s := QuantiseVector([]float32{254, -1, 1.5}, codes); s != 2 || !slices.Equal(codes, []int8{127, 0, 1}) {
		t.Errorf("vector codes %v scale %v", codes, s)
	}
}

// TestQuantiseError bounds the error by half a step.
func TestQuantiseError(t *testing.T) {
	w := make([]float32, 4*100)
	for i := range w {
		w[i] = float32(math.Sin(float64(i*i))) / 3
	}
	for _, bits := range []int{2, 4, 8} {
		spec := Spec{Bits: bits, Group: 32, Scale: configs.ScaleF32}
		m, err := Quantise(spec, w, 4, 100)
		if err != nil {
			t.Fatal(err)
		}
		back := make([]float32, len(w))
		m.Dequantise(back)
		for i := range w {
			step := m.Scales[i/100*4+i%100/32]
			if d := math.Abs(float64(w[i] - back[i])); d > 0.5001*float64(step) {
				t.Fatalf("%d bits: weight %d = %v becomes %v with a step of %v", bits, i, w[i], back[i], step)
			}
		}
	}
}

func TestQuantiseRefuses(t *testing.T) {
	ok := Spec{Bits: 4, Group: 32, Scale: configs.ScaleF32}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		spec       Spec
		w          []float32
		rows, cols int
		say        string
	}{
		"bits":     {Spec{Bits: 3, Scale: configs.ScaleF32}, make([]float32, 4), 2, 2, "3 bits"},
		"float":    {Spec{Bits: 32, Scale: configs.ScaleF32}, make([]float32, 4), 2, 2, "32 bits"},
		"group":    {Spec{Bits: 4, Group: -1, Scale: configs.ScaleF32}, make([]float32, 4), 2, 2, "group"},
		"scale":    {Spec{Bits: 4, Scale: "f8"}, make([]float32, 4), 2, 2, `"f8"`},
		"size":     {ok, make([]float32, 5), 2, 2, "5 weights"},
		"empty":    {ok, nil, 0, 2, "0 rows"},
		"nan":      {ok, []float32{0, 0, 0, nan}, 2, 2, "row 1"},
		"infinite": {ok, []float32{0, inf, 0, 0}, 2, 2, "row 0"},
		"overflow": {Spec{Bits: 2, Scale: configs.ScaleF16}, []float32{70000, 1}, 1, 2, "f16"},
	} {
		if _, err := Quantise(c.spec, c.w, c.rows, c.cols); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.say)
		}
	}
}

func TestPackByHand(t *testing.T) {
	m := &Matrix{Spec: Spec{Bits: 4, Scale: configs.ScaleF16}, Rows: 1, Cols: 18, Codes: make([]int8, 18), Scales: []float32{1.5}}
	m.Codes[0], m.Codes[1], m.Codes[16], m.Codes[17] = 1, -7, -1, 7
	want := make([]byte, 16)
	want[0], want[1] = 0xf1, 0x79
	if got := m.PackCodes(); !slices.Equal(got, want) {
		t.Errorf("4 bits: % x, want % x", got, want)
	}
	if got := m.PackScales(); !slices.Equal(got, []byte{0x00, 0x3e}) {
		t.Errorf("scale: % x", got)
	}
	m = &Matrix{Spec: Spec{Bits: 2, Scale: configs.ScaleF32}, Rows: 1, Cols: 64, Codes: make([]int8, 64), Scales: []float32{1}}
	m.Codes[2], m.Codes[18], m.Codes[34], m.Codes[50] = 1, -1, 1, -1
	if got := m.PackCodes(); got[2] != 0b11_01_11_01 || len(got) != 16 {
		t.Errorf("2 bits: % x", got)
	}
}

func TestUnpackRefuses(t *testing.T) {
	spec := Spec{Bits: 4, Group: 0, Scale: configs.ScaleF32}
	codes := func(at int, v byte) []byte { b := make([]byte, 16); b[at] = v; return b }
	scale := func(v float32) []byte {
		return (&Matrix{Spec: spec, Scales: []float32{v}}).PackScales()
	}
	for name, c := range map[string]struct {
		codes, scales []byte
		say           string
	}{
		"short":    {make([]byte, 15), scale(1), "15 bytes"},
		"minus 8":  {codes(3, 0x08), scale(1), "column 3"},
		"padding":  {codes(4, 0x10), scale(1), "padding"},
		"negative": {codes(0, 0), scale(-1), "negative"},
		"nan":      {codes(0, 0), scale(float32(math.NaN())), "not finite"},
		"infinite": {codes(0, 0), scale(float32(math.Inf(1))), "not finite"},
	} {
		if _, err := Unpack(spec, 1, 20, c.codes, c.scales); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.say)
		}
	}
	half := Spec{Bits: 8, Scale: configs.ScaleF16}
	if _, err := Unpack(half, 1, 1, make([]byte, 16), []byte{0, 0x80}); err == nil {
		t.Error("a negative zero as scale is accepted")
	}
	if _, err := Unpack(half, 1, 1, append([]byte{0x80}, make([]byte, 15)...), []byte{0, 0}); err == nil {
		t.Error("code -128 is accepted")
	}
}

// FuzzUnpack: any bytes are refused or come back as they were.
func FuzzUnpack(f *testing.F) {
	f.Add(make([]byte, 32), []byte{0, 0, 128, 63}, uint8(1), uint8(33))
	f.Fuzz(func(t *testing.T, codes, scales []byte, bits, cols uint8) {
		spec := Spec{Bits: []int{2, 4, 8}[bits%3], Group: []int{0, 32, 64, 128}[bits/3%4], Scale: configs.ScaleF32}
		if bits >= 128 {
			spec.Scale = configs.ScaleF16
		}
		m, err := Unpack(spec, 1, int(cols), codes, scales)
		if err != nil {
			return
		}
		if !slices.Equal(m.PackCodes(), codes) || !slices.Equal(m.PackScales(), scales) {
			t.Error("the bytes change")
		}
	})
}

// With a clip, the scale is this share of what it would be; weights within it are rounded to the nearest code, those beyond
// have the largest, and a clip of 1 is none.
func TestClip(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	w := make([]float32, 4*96)
	for i := range w {
		w[i] = float32(rng.NormFloat64())
	}
	quantise := func(bits int, clip float64) *Matrix {
		m, err := Quantise(Spec{Bits: bits, Group: 32, Scale: configs.ScaleF32, Clip: clip}, w, 4, 96)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, bits := range []int{2, 4, 8} {
		none, one := quantise(bits, 0), quantise(bits, 1)
		if !slices.Equal(none.Codes, one.Codes) || !slices.Equal(none.Scales, one.Scales) {
			t.Errorf("%d bits: a clip of 1 changes something", bits)
		}
		for _, clip := range []float64{0.5, 0.9, 0.99} {
			m, q, cut := quantise(bits, clip), float64(MaxCode(bits)), 0
			for i, x := range w {
				s := float64(m.Scales[i/32])
				if got, want := s, clip*float64(one.Scales[i/32]); math.Abs(got-want) > 1e-6*want {
					t.Fatalf("%d bits, clip %v: scale %v, want %v", bits, clip, got, want)
				}
				off := math.Abs(float64(x)) - s*math.Abs(float64(m.Codes[i]))
				switch {
				case math.Abs(float64(m.Codes[i])) == q && off > s/2:
					cut++
				case math.Abs(off) > s*0.500001:
					t.Fatalf("%d bits, clip %v: %v became %v times %v", bits, clip, x, m.Codes[i], s)
				}
			}
			if cut == 0 && clip == 0.5 {
				t.Errorf("%d bits, clip %v: nothing is cut off", bits, clip)
			}
		}
	}
}
