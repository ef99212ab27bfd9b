package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

// kernel puts instructions into a function f whose arguments are the buffers r (read), w (write) and b (both), of 64, 64
// and 50 bytes, and the word 3.
func kernel(body string) string {
	return ".global f\n.align 4\nf: entry a1, 48\n" + body + "\nretw\n"
}

func runKernel(t testing.TB, text string) (Result, error) {
	t.Helper()
	p := parse(t, text)
	m := New()
	m.Budget = 10_000
	r := m.Map("r", make([]byte, 64), pie.Read)
	w := m.Map("w", make([]byte, 64), pie.Write)
	b := m.Map("b", make([]byte, 50), pie.Read|pie.Write)
	return m.Call(t.Context(), p, "f", r, w, b, 3)
}

func TestTraps(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"l32i a8, a2, 64", `4 bytes past the end of "r"`},
		{"ee.vld.128.ip q0, a4, 0\nee.vld.128.ip q0, a4, 48\nee.vld.128.ip q0, a4, 0", `14 bytes past the end of "b"`},
		{"addi a2, a2, -1\nl8ui a8, a2, 0", `1 bytes before the start of "r"`},
		{"addi a2, a2, -1\nee.vld.128.ip q0, a2, 0", `16 bytes before the start of "r"`},
		{"s32i a5, a2, 4", `byte 4 of "r", which may not be written`},
		{"l32i a8, a3, 8", `byte 8 of "w", which may not be read`},
		{"ee.vst.128.ip q0, a3, 0", "reads q0, which was never written"},
		{"l8ui a8, a5, 0", "reads 1 bytes at 0x00000003"},
		{"mov a8, a6", "reads a6, which"},
		{"add.s f0, f1, f1", "reads f1, which"},
		{"movi a8, 1\nwfr f0, a8\nmadd.s f2, f0, f0", "reads f2, which"},
		{"bt b3, 1f\n1:", "reads b3, which"},
		{"ee.zero.q q0\nee.vmulas.s8.accx q0, q0", "reads ACCX, which"},
		{"ee.zero.q q0\nee.vmulas.s8.qacc q0, q0", "reads QACC_L"},
		{"ee.zero.q q0\nmovi a8, 0\nee.ld.qacc_l.l.128.ip a2, 0\nee.ldqa.s8.128.ip a2, 0\nee.zero.accx\nrur.accx_0 a8\nwur.accx_0 a8\nee.vsr.32 q1, q0", "reads SAR, which"},
		{"ee.ld.qacc_l.l.128.ip a2, 0\nrur.qacc_l_3 a8\nrur.qacc_l_4 a8", "reads QACC_L (word 4)"},
		{"movi a8, 0\nwur.accx_0 a8\nrur.accx_0 a8\nrur.accx_1 a8", "reads ACCX, which"},
		{"ee.zero.q q0\nee.src.q q1, q0, q0", "reads SAR_BYTE"},
		{"ee.vld.l.64.ip q0, a2, 8\nee.vst.l.64.ip q0, a3, 8\nee.vst.h.64.ip q0, a3, 8", "reads q0 (word 2), which"},
		{"ee.movi.32.q q0, a2, 1\nee.movi.32.a q0, a8, 1\nee.movi.32.a q0, a8, 2", "reads q0 (word 2)"},
		{"addi a2, a2, 1\nl32i a8, a2, 0", "not a multiple of 4"},
		{"addi a2, a2, 1\nl16ui a8, a2, 0", "not a multiple of 2"},
		{"addi a3, a3, 2\ns32i a2, a3, 0", "not a multiple of 4"},
		{"addi a2, a2, 2\nlsi f0, a2, 0", "not a multiple of 4"},
		{"movi a8, 0\nquou a8, a2, a8", "divides by zero"},
		{"1: j 1b", "after 10000 instructions"},
		{"movi a8, -1\nloop a8, 1f\nnop\n1:", "after 10000 instructions"},
		{"jx a2", "no instruction of this file starts"},
		{"movi a0, 0", "a0 was changed"},
		{"addi a8, a1, -16\nl32i a8, a8, 0", "below the stack pointer"},
		{"l32i a8, a1, 32", "caller's window is saved"},
		{"l32i a8, a1, 48", "reads 4 bytes"}, // there are no arguments on the stack
		{"movi a8, 33\nwsr.sar a8\nee.zero.q q0\nee.vsr.32 q0, q0", "SAR is 33"},
		{"movi a8, 4\nloop a8, 1f\nbeqi a8, 4, 1f\nnop\n1: nop", "end of the loop"},
		{"retw\n.align 4\n.global g\ng: entry a1, 32\nret", ""},
		{"j g\n.align 4\ng: entry a1, 32", "runs into this function"},
		{"call8 g\nretw\n.align 4\ng: nop", "must reach an entry"},
		{"retw\n.align 4\ng: entry a1, 16\ncall8 h\nretw\n.align 4\nh: entry a1, 32", ""},
		{"call8 g\nretw\n.align 4\ng: entry a1, 16\ncall8 h\nretw\n.align 4\nh: entry a1, 32", "windows need 32"},
		{"call8 f", "calls go"},
	} {
		_, err := runKernel(t, kernel(c.body))
		var trap *Trap
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.body, err)
			}
		} else if !errors.As(err, &trap) || !strings.Contains(err.Error(), c.want) || trap.File != "test.S" || trap.Line == 0 {
			t.Errorf("%q: %v\nwant %s", c.body, err, c.want)
		}
	}
}

func TestTrapSaysWhere(t *testing.T) {
	_, err := runKernel(t, ".global f\n.align 4\nf: entry a1, 32\n\nl32i a8, a2, 68\nretw\n")
	if err == nil || !strings.HasPrefix(err.Error(), "test.S:5: l32i a8, a2, 68: reads 4 bytes at 0x") ||
		!strings.Contains(err.Error(), `8 bytes past the end of "r" (64 bytes at 0x`) {
		t.Error(err)
	}
	_, err = runKernel(t, ".global f\n.align 4\nf: entry a1, 32\nnop")
	if err == nil || !strings.Contains(err.Error(), "test.S:4: after nop: runs off the end") {
		t.Error(err)
	}
	_, err = runKernel(t, ".global f\n.align 4\nf: nop\nretw")
	if err == nil || !strings.Contains(err.Error(), "begin with entry") {
		t.Error(err)
	}
	p := parse(t, kernel("nop")+"h: nop")
	for _, name := range []string{"h", "none"} { // h is not global
		if _, err := New().Call(t.Context(), p, name); err == nil || !strings.Contains(err.Error(), "no global function") {
			t.Error(err)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New().Call(ctx, parse(t, kernel("1: j 1b")), "f"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAfterTrap: a machine is as new after a call that trapped.
func TestAfterTrap(t *testing.T) {
	m := New()
	bad, good := parse(t, kernel("movi a8, 5\nloop a8, 1f\nl32i a9, a9, 0\n1: nop")), parse(t, kernel("nop\nnop\nmovi a2, 7"))
	if _, err := m.Call(t.Context(), bad, "f"); err == nil {
		t.Fatal("no trap")
	}
	if r, err := m.Call(t.Context(), good, "f"); err != nil || r.Return != 7 || r.Instructions != 6 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMap(t *testing.T) {
	m := New()
	last := uint32(0)
	for i := range 20 {
		at := m.Map(fmt.Sprint(i), make([]byte, 1000*i), pie.Read)
		if at%64 != 0 || at%128 == 0 || at < last+4096 {
			t.Errorf("buffer %d at %#x, after one that ends at %#x", i, at, last)
		}
		last = at + uint32(1000*i)
	}
	if at := m.MapAt("odd", make([]byte, 4096), pie.Read, 3); at%4096 != 3 || at < last+4096 {
		t.Errorf("at %#x", at)
	}
	m.Unmap()
	if _, err := m.Call(t.Context(), parse(t, kernel("l32i a2, a2, 0")), "f", last); err == nil || !strings.Contains(err.Error(), "nothing is mapped") {
		t.Error(err)
	}
}

func TestStackArguments(t *testing.T) {
	p := parse(t, ".global f\n.align 4\nf: entry a1, 32\nl32i a8, a1, 32\nl32i a9, a1, 36\nsub a2, a8, a9\nadd a2, a2, a7\nretw")
	if r, err := New().Call(t.Context(), p, "f", 1, 2, 3, 4, 5, 600, 70, 8); err != nil || r.Return != 662 {
		t.Errorf("%d, %v", r.Return, err)
	}
}

func TestWindows(t *testing.T) {
	// g doubles and adds its own: its a registers are not those of f, whose a2 to a7 stay.
	p := parse(t, `.global f
	.align 4
f:	entry a1, 64
	movi a6, 100
	s32i a6, a1, 0
	mov a10, a2
	call8 g
	add a2, a10, a6
	l32i a8, a1, 0
	add a2, a2, a8
	mov a10, a2
	call0 h
	retw
	.align 4
g:	entry a1, 32
	movi a6, 7
	s32i a6, a1, 0
	add a2, a2, a2
	add a2, a2, a6
	retw
	.align 4
h:	addi a2, a2, 1
	ret
`)
	_, err := New().Call(t.Context(), p, "f", 5)
	if err == nil || !strings.Contains(err.Error(), "a0 was changed") {
		t.Errorf("call0 takes a0: %v", err)
	}
	q := parse(t, strings.NewReplacer("call0 h", "mov a9, a0\ncall0 h\nmov a0, a9").Replace(".global f\n.align 4\nf: entry a1, 32\ncall0 h\nretw\n.align 4\nh: addi a2, a2, 1\nret"))
	if r, err := New().Call(t.Context(), q, "f", 5); err != nil || r.Return != 6 {
		t.Errorf("%d, %v", r.Return, err)
	}
	i := slicesIndex(p, "call0 h")
	p, err = p.With(i, "nop")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := New().Call(t.Context(), p, "f", 5); err != nil || r.Return != 5*2+7+100+100 {
		t.Errorf("%d, %v", r.Return, err)
	}
	// What g leaves in registers that f has no value in stays unknown.
	if _, err := New().Call(t.Context(), parse(t, kernel("call8 g\nmov a2, a15\nretw\n.align 4\ng: entry a1, 32")), "f"); err == nil ||
		!strings.Contains(err.Error(), "reads a15") {
		t.Error(err)
	}
}

func slicesIndex(p *Program, text string) int {
	for i, ins := range p.Instructions() {
		if ins.String() == text {
			return i
		}
	}
	return -1
}

func TestLoops(t *testing.T) {
	for _, c := range []struct {
		count int
		kind  string
		want  uint32
	}{{3, "loop", 3}, {1, "loop", 1}, {0, "loopnez", 0}, {5, "loopnez", 5}, {-1, "loopgtz", 0}, {0, "loopgtz", 0}, {2, "loopgtz", 2}} {
		p := parse(t, kernel(fmt.Sprintf("movi a2, 0\nmovi a8, %d\n%s a8, 1f\naddi a2, a2, 1\n1:", c.count, c.kind)))
		if r, err := New().Call(t.Context(), p, "f"); err != nil || r.Return != c.want {
			t.Errorf("%s of %d: %d rounds, want %d; %v", c.kind, c.count, r.Return, c.want, err)
		}
	}
	// A loop in a loop of branches, and one left early.
	p := parse(t, kernel(`movi a2, 0
movi a9, 3
2: movi a8, 4
loop a8, 1f
addi a2, a2, 1
beqi a2, 6, 3f
nop
1: addi a9, a9, -1
bnez a9, 2b
3: nop`))
	if r, err := New().Call(t.Context(), p, "f"); err != nil || r.Return != 6 {
		t.Errorf("%d, %v", r.Return, err)
	}
}

func TestJumps(t *testing.T) {
	// callx8 and jx take addresses that a call has left.
	p := parse(t, kernel("movi a2, 1\nmov a9, a0\ncall0 1f\naddi a2, a2, 16\nj 2f\n.align 4\n1: addi a2, a2, 4\njx a0\n2: mov a0, a9"))
	if r, err := New().Call(t.Context(), p, "f"); err != nil || r.Return != 21 {
		t.Errorf("%d, %v", r.Return, err)
	}
	q := parse(t, kernel("movi a2, 1\nl32r a8, .Lone\nadd a2, a2, a8\nmovi a8, 0x12340000\nadd a2, a2, a8\n.literal .Lone, 0x10000, 5"))
	if r, err := New().Call(t.Context(), q, "f"); err != nil || r.Return != 0x12350001 {
		t.Errorf("%#x, %v", r.Return, err)
	}
}
