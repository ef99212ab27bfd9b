package qat

import (
	"math"
	"testing"
)

// ulps is the distance of got from the exact want, in units in the last place of a float32.
func ulps(got float32, want float64) float64 {
	next := math.Nextafter32(float32(want), math.MaxFloat32)
	return math.Abs(float64(got)-want) / (float64(next) - float64(float32(want)))
}

func TestExpAccuracy(t *testing.T) {
	worst := 0.0
	for i := range 400001 {
		x := float32(-86 + float64(i)*172/400000)
		worst = max(worst, ulps(Exp(x), math.Exp(float64(x))))
	}
	if worst > 2 {
		t.Errorf("exp is wrong by %.2f ulp", worst)
	}
	for _, c := range []struct{ x, want float32 }{{0, 1}, {100, Exp(86)}, {-100, Exp(-86)}, {float32(math.Inf(-1)), Exp(-86)}, {float32(math.NaN()), Exp(-86)}} {
		if got := Exp(c.x); got != c.want {
			t.Errorf("Exp(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if e := Exp(-86); !(e > 0x1p-126) {
		t.Errorf("Exp(-86) = %v is subnormal: flushing would change it", e)
	}
}

func TestSmoothFunctions(t *testing.T) {
	for i := range 2001 {
		x := float64(i-1000) / 50
		s := 1 / (1 + math.Exp(-x))
		tanh := 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		for name, c := range map[string][2]float64{
			"sigmoid": {float64(Sigmoid(float32(x))), s},
			"silu":    {float64(SiLU(float32(x))), x * s},
			"gelu":    {float64(GELU(float32(x))), tanh},
		} {
			if math.Abs(c[0]-c[1]) > 2e-6*(1+math.Abs(x)) {
				t.Errorf("%s(%v) = %v, want %v", name, x, c[0], c[1])
			}
		}
	}
}

func TestRNE(t *testing.T) {
	for _, x := range []float32{0, 0.25, 0.5, 0.75, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 126.5, 127.4999, 1 << 21} {
		if got, want := RNE(x), float32(math.RoundToEven(float64(x))); got != want {
			t.Errorf("RNE(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestSum8Order(t *testing.T) {
	// 2^24 swallows a 1 added to it, so the result tells which terms met.
	v := make([]float32, 16)
	v[0], v[8], v[4], v[1] = 1<<24, 1, 1, 1
	if got, want := Sum8(v), float32(1<<24); got != want {
		t.Errorf("Sum8 = %v, want %v: lane 0 must swallow three ones, one at a time", got, want)
	}
	v = make([]float32, 8)
	v[0], v[1], v[3] = 1<<24, 1, 1 // lanes 1 and 3 are joined first: 2^24 + 2
	if got, want := Sum8(v), float32(1<<24+2); got != want {
		t.Errorf("Sum8 = %v, want %v: odd lanes join before they meet lane 0", got, want)
	}
}

// TestHalf checks all halves, and that rounding takes the nearest one, ties to even.
func TestHalf(t *testing.T) {
	for h := range uint16(0x7c00) {
		v := HalfValue(h)
		want := math.Ldexp(float64(h&0x3ff), -24)
		if e := int(h >> 10); e > 0 {
			want = math.Ldexp(1+float64(h&0x3ff)/1024, e-15)
		}
		if float64(v) != want {
			t.Fatalf("half %04x is %v, want %v", h, v, want)
		}
		if back := halfBits(v); back != h {
			t.Fatalf("half %04x comes back as %04x", h, back)
		}
		if h == 0x7bff {
			break
		}
		next := HalfValue(h + 1)
		middle := (v + next) / 2
		even := h + h&1
		for x, want := range map[float32]uint16{middle: even, math.Nextafter32(middle, 0): h, math.Nextafter32(middle, 1e9): h + 1} {
			if got := halfBits(x); got != want {
				t.Fatalf("%v rounds to %04x, want %04x", x, got, want)
			}
		}
	}
	if halfBits(65519.996) != 0x7bff || halfBits(65520) != 0x7c00 {
		t.Error("halves overflow at the wrong place")
	}
}
