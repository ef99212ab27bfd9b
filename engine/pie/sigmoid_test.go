package pie_test

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// TestReciprocalsAreThoseOfADivision runs the sigmoid, which has no division, over fractions of its divisor: all 2^23 of
// them prove it, since exponents change nothing but exponents.
func TestReciprocalsAreThoseOfADivision(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 61
	}
	text, err := os.ReadFile("sigmoid.S")
	if err != nil {
		t.Fatal(err)
	}
	program, err := sim.Parse("sigmoid.S", text)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1 << 13
	ones, exps, y := make([]byte, 4*n), make([]byte, 4*n), make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(ones[4*i:], math.Float32bits(1))
	}
	m := sim.New()
	at := m.Map("ones", ones, pie.Read)
	from, to := m.Map("exps", exps, pie.Read), m.Map("y", y, pie.Write)
	for first := 1<<23 - 1; first >= 0; first -= n * step { // from a fraction of all ones down
		for i := range n {
			exp := float32(max(first-i*step, 0)) * 0x1p-23
			binary.LittleEndian.PutUint32(exps[4*i:], math.Float32bits(exp))
		}
		if _, err := m.Call(t.Context(), program, "chiplm_pie_sigmoid", at, from, at, n, to, 0x7ef311c7); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b := 1 + math.Float32frombits(binary.LittleEndian.Uint32(exps[4*i:]))
			if got, want := math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:])), 1/b; got != want {
				t.Fatalf("1 / %x is %x, want %x", b, got, want)
			}
		}
	}
}
