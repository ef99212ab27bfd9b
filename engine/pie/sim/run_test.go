package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

// dot8 adds up products of bytes, 16 a round, and returns the sum.
const dot8 = `
#define WIDTH 16
	.text
	.align 4
	.global dot8
	.type dot8, @function
dot8:	// (const int8_t *x, const int8_t *y, uint32_t n)
	entry a1, 32
	ee.zero.accx
	srli a4, a4, 4          /* rounds */
	loopnez a4, 1f
	ee.vld.128.ip q0, a2, WIDTH
	ee.vld.128.ip q1, a3, WIDTH
	ee.vmulas.s8.accx q0, q1
1:	rur.accx_0 a2
	retw
	.size dot8, . - dot8
`

func parse(t testing.TB, text string) *Program {
	t.Helper()
	p, err := Parse("test.S", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDot(t *testing.T) {
	p := parse(t, dot8)
	x, y := make([]byte, 64), make([]byte, 64)
	want := int32(0)
	for i := range x {
		x[i], y[i] = byte(7*i), byte(200-3*i)
		want += int32(int8(x[i])) * int32(int8(y[i]))
	}
	m := New()
	a, b := m.Map("x", x, pie.Read), m.Map("y", y, pie.Read)
	r, err := m.Call(context.Background(), p, "dot8", a, b, 64)
	if err != nil || int32(r.Return) != want {
		t.Fatalf("%d, want %d; %v", int32(r.Return), want, err)
	}
	// The call and entry, three, 4 rounds of three, rur and retw.
	if r.Instructions != 1+1+3+12+2 {
		t.Errorf("%d instructions", r.Instructions)
	}
	if r.Cycles != r.Instructions+r.Stalls.Total() {
		t.Errorf("%d cycles, %+v", r.Cycles, r)
	}
	if _, err := m.Call(context.Background(), p, "dot8", a, b, 80); err == nil || !strings.Contains(err.Error(), `past the end of "x"`) {
		t.Errorf("reading past the end: %v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	p := parse(b, dot8)
	x := make([]byte, 4096)
	m := New()
	a, c := m.Map("x", x, pie.Read), m.Map("y", make([]byte, 4096), pie.Read)
	n := uint64(0)
	for b.Loop() {
		r, err := m.Call(context.Background(), p, "dot8", a, c, 4096)
		if err != nil {
			b.Fatal(err)
		}
		n += r.Instructions
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "M/s")
}
