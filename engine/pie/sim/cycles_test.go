package sim

import (
	"math"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

// frame is what a call costs with nothing in it: the call, entry and return, and the two targets.
const frameCycles = 3 + branchCost + branchCost

// TestCycles works small sequences out by hand: cycles beside those of an empty function.
func TestCycles(t *testing.T) {
	const ready = "movi a8, 2\nssai 4\nee.zero.q q0\nee.zero.q q1\nee.zero.q q2\nee.zero.accx\nee.zero.qacc\nwfr f0, a8\nwfr f1, a8\nwfr f2, a8\nnop\nnop\nnop\n"
	base, err := runKernel(t, kernel(ready))
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(frameCycles + strings.Count(ready, "\n")); base.Cycles != want {
		t.Fatalf("the frame takes %d cycles, want %d", base.Cycles, want)
	}
	for _, c := range []struct {
		body   string
		cycles uint64
		stalls Stalls
	}{
		{"nop", 1, Stalls{}},
		{"add a9, a8, a8\nadd a9, a9, a9", 2, Stalls{}},
		{"l32i a9, a2, 0\nadd a9, a9, a9", 3, Stalls{Word: 1}},
		{"l32i a9, a2, 0\nnop\nadd a9, a9, a9", 3, Stalls{}},
		{"mull a9, a8, a8\nadd a9, a9, a9", 3, Stalls{Word: 1}},
		{"l32i a9, a2, 0\naddi a2, a2, 4", 2, Stalls{}}, // the address is ready at once
		// Vectors: a load defines at stage 2, logic at 1.
		{"ee.vld.128.ip q0, a2, 16\nee.andq q1, q0, q0", 3, Stalls{Vector: 1}},
		{"ee.vld.128.ip q0, a2, 16\nee.zero.q q2\nee.andq q1, q0, q0", 3, Stalls{}},
		{"ee.vld.128.ip q0, a2, 16\nee.vld.128.ip q1, a2, 16", 2, Stalls{}},
		{"ee.andq q1, q0, q0\nee.andq q1, q1, q0", 2, Stalls{}},
		{"ee.vmul.s8 q1, q0, q0\nee.andq q1, q1, q0", 3, Stalls{Vector: 1}},
		{"ee.vsl.32 q1, q0\nee.andq q1, q1, q0", 2, Stalls{}},
		{"ee.vadds.s8 q1, q0, q0\nee.vmulas.s8.accx q1, q1", 2, Stalls{}},
		{"ee.vld.l.64.ip q0, a2, 8\nee.vld.h.64.ip q0, a2, 8\nee.andq q1, q0, q0", 4, Stalls{Vector: 1}},
		// A fused load: used by the instruction after the next one without a wait.
		{"ee.vmulas.s8.accx.ld.ip q0, a2, 16, q0, q1\nee.vmulas.s8.accx q0, q1", 3, Stalls{Vector: 1}},
		{"ee.vmulas.s8.accx.ld.ip q0, a2, 16, q0, q1\nee.vmulas.s8.accx q1, q1", 2, Stalls{}},
		// One multiply-accumulate a cycle, and one to wait for its sum.
		{"ee.vmulas.s8.accx q0, q1\nee.vmulas.s8.accx q0, q1\nee.vmulas.s8.accx q0, q1", 3, Stalls{}},
		{"ee.vmulas.s8.accx q0, q1\nrur.accx_0 a9", 3, Stalls{Accumulator: 1}},
		{"ee.vmulas.s8.accx q0, q1\nnop\nrur.accx_0 a9", 3, Stalls{}},
		{"ee.vmulas.s8.accx q0, q1\nee.srs.accx a9, a8, 0", 3, Stalls{Accumulator: 1}},
		{"ee.vsmulas.s8.qacc q0, q1, 3\nee.srcmb.s8.qacc q2, a8, 0\nee.andq q2, q2, q2", 4, Stalls{Accumulator: 1}},
		{"ee.zero.accx\nee.vmulas.s8.accx q0, q1", 2, Stalls{}},
		{"ee.zero.accx\nrur.accx_0 a9", 2, Stalls{}},
		{"ee.ldqa.s8.128.ip a2, 0\nee.vmulas.s8.qacc q0, q1", 2, Stalls{}},
		{"ee.ldqa.s8.128.ip a2, 0\nrur.qacc_l_0 a9", 3, Stalls{Accumulator: 1}},
		// Floats.
		{"add.s f3, f0, f1\nadd.s f3, f3, f1", 5, Stalls{Float: 3}},
		{"add.s f3, f0, f1\nmul.s f4, f0, f1\nadd.s f5, f1, f1\nmul.s f6, f1, f1\nadd.s f3, f3, f1", 5, Stalls{}},
		{"madd.s f2, f0, f1\nmadd.s f2, f0, f1", 5, Stalls{Float: 3}},
		{"float.s f3, a8, 4\nmul.s f3, f3, f3", 3, Stalls{Float: 1}},
		{"lsi f3, a2, 0\nadd.s f3, f3, f3", 3, Stalls{Float: 1}},
		{"round.s a9, f0, 0\nadd a9, a9, a9", 3, Stalls{Word: 1}},
		{"mul.s f3, f0, f0\nssi f3, a3, 0", 5, Stalls{Float: 3}},
		{"olt.s b0, f0, f1\nbf b0, 1f\n1:", 3 + 2, Stalls{Float: 1, Branch: 2}},
		// A store of 128 bits takes 1.6: 5 of them 8.
		{strings.Repeat("ee.vst.128.ip q0, a3, 0\n", 5), 8, Stalls{Store: 3}},
		{"ee.vst.128.ip q0, a3, 0", 1, Stalls{}},
		{"ee.vst.l.64.ip q0, a3, 0\nee.vst.l.64.ip q0, a3, 0", 2, Stalls{}},
		// Control.
		{"beqz a8, 1f\n1: bnez a8, 1f\n1:", 2 + 2, Stalls{Branch: 2}},
		{"j 1f\n1:", 3, Stalls{Branch: 2}},
		{"loop a8, 1f\nnop\nnop\nnop\nnop\n1:", 1 + 2 + 8, Stalls{Loop: 2}},
		// Between the two rounds of a body of up to three instructions lie 0.9 cycles: nine of ten rounds wait.
		{"movi a9, 11\nloop a9, 1f\nnop\n1:", 1 + 1 + 2 + 11 + 9, Stalls{Loop: 2 + 9}},
		{"loopnez a8, 1f\nnop\nnop\nnop\nnop\n1:\nmovi a9, 0\nloopnez a9, 2f\nnop\n2:", 1 + 2 + 8 + 1 + 1 + 2, Stalls{Loop: 2, Branch: 2}},
	} {
		r, err := runKernel(t, kernel(ready+c.body))
		if err != nil {
			t.Errorf("%q: %v", c.body, err)
			continue
		}
		c.stalls.Branch += 2 * branchCost // of the frame
		if got := r.Cycles - base.Cycles; got != c.cycles || r.Stalls != c.stalls {
			t.Errorf("%q: %d cycles, want %d; %+v", c.body, got, c.cycles, r.Stalls)
		}
		if r.Cycles != r.Instructions+r.Stalls.Total() {
			t.Errorf("%q: %d cycles are not %d instructions and %+v", c.body, r.Cycles, r.Instructions, r.Stalls)
		}
	}
}

// TestInnerLoop: 32 weights of 4 bits in six instructions and no stall, as the vector unit's documentation promises.
func TestInnerLoop(t *testing.T) {
	const rounds = 100
	p := parse(t, `.global f
	.align 4
f:	entry a1, 32
	ssai 4
	ee.zero.accx
	movi a5, 0xf0
	s8i a5, a1, 0
	ee.vldbc.8 q7, a1
	ee.vld.128.ip q0, a2, 16
	ee.vld.128.ip q3, a3, 16
	ee.vld.128.ip q4, a3, 16
	loop a4, 1f
	ee.vsl.32 q1, q0
	ee.andq q2, q0, q7
	ee.andq q1, q1, q7
	ee.vmulas.s8.accx.ld.ip q0, a2, 16, q2, q4
	ee.vmulas.s8.accx.ld.ip q3, a3, 16, q1, q3
	ee.vld.128.ip q4, a3, 16
1:	nop
	rur.accx_0 a2
	retw
`)
	m := New()
	w := m.Map("w", make([]byte, 16*(rounds+1)), pie.Read)
	x := m.Map("x", make([]byte, 32*(rounds+1)), pie.Read)
	var steps []Step
	m.Trace = func(s Step) { steps = append(steps, s) }
	r, err := m.Call(t.Context(), p, "f", w, x, rounds)
	if err != nil {
		t.Fatal(err)
	}
	// 13 instructions around the loop with the call, 2 stalls at most where it begins.
	if most := uint64(6*rounds + 13 + 4 + 2 + 2); r.Cycles > most || r.Stalls.Vector > 1 || r.Stalls.Accumulator > 0 {
		t.Errorf("%d cycles, want %d at most; %+v", r.Cycles, most, r.Stalls)
	}
	if uint64(len(steps)) != r.Instructions-1 || steps[0].Cycle != 3 || steps[len(steps)-1].Instruction.Mnemonic != "retw" {
		t.Errorf("%d steps of %d instructions", len(steps), r.Instructions)
	}
}

// TestFloatEdges: what the second definition of the instructions leaves out.
func TestFloatEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		x, y float64
		body string
		want uint32
	}{
		{inf, 1, "add.s f2, f0, f1\nrfr a2, f2", 0x7f800000},
		{inf, -inf, "add.s f2, f0, f1\nrfr a2, f2", 0x7fc00000},
		{inf, 0, "mul.s f2, f0, f1\nrfr a2, f2", 0x7fc00000},
		{3e38, 3e38, "add.s f2, f0, f1\nrfr a2, f2", 0x7f800000},
		{nan, 1, "add.s f2, f0, f1\nrfr a2, f2", 0x7fc00000},
		{nan, 1, "neg.s f2, f0\nrfr a2, f2", 0xffc00000},
		{nan, 1, "round.s a2, f0, 0", 0x7fffffff},
		{inf, 1, "trunc.s a2, f0, 0", 0x7fffffff},
		{-inf, 1, "floor.s a2, f0, 15", 0x80000000},
		{3e9, 1, "round.s a2, f0, 0", 0x7fffffff},
		{3e9, 1, "utrunc.s a2, f0, 0", 3000000000},
		{5e9, 1, "utrunc.s a2, f0, 0", 0xffffffff},
		{2.5, 1, "round.s a2, f0, 0", 2},
		{3.5, 1, "round.s a2, f0, 0", 4},
		{-2.5, 1, "round.s a2, f0, 0", 0xfffffffe},
		{0.3125, 1, "round.s a2, f0, 3", 2},
		{nan, 1, "un.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 1},
		{nan, 1, "ueq.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 1},
		{nan, 1, "oeq.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 0},
		{nan, 1, "olt.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 0},
		{nan, 1, "ult.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 1},
		{nan, 1, "ule.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 1},
		{0, math.Copysign(0, -1), "oeq.s b0, f0, f1\nmovi a2, 1\nmovi a8, 0\nmovf a2, a8, b0", 1},
	} {
		p := parse(t, kernel("wfr f0, a2\nwfr f1, a3\n"+c.body))
		bits := func(v float64) uint32 { return math.Float32bits(float32(v)) }
		r, err := New().Call(t.Context(), p, "f", bits(c.x), bits(c.y))
		if err != nil || r.Return != c.want {
			t.Errorf("%v, %v, %q: %#x, want %#x; %v", c.x, c.y, c.body, r.Return, c.want, err)
		}
	}
}
