package check

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// doubled writes x + x, saturated, and returns the sum of x.
const doubled = `
	.text
	.global doubled
	.align 4
doubled: // (const int8_t *x, int8_t *y, uint32_t blocks)
	entry a1, 32
	ee.zero.accx
	movi a5, 1
	s8i a5, a1, 0
	ee.vldbc.8 q7, a1
	loopnez a4, 1f
	ee.vld.128.ip q0, a2, 16
	ee.vmulas.s8.accx q0, q7
	ee.vadds.s8 q1, q0, q0
	ee.vst.128.ip q1, a3, 16
1:
	rur.accx_0 a2
	retw
`

func doubledKernel() pie.Kernel {
	return pie.Kernel{Symbol: "doubled", File: "doubled.S", Returns: true,
		Any:  func(r *rand.Rand) pie.Shape { return pie.Shape{Columns: 16 * r.IntN(5)} },
		Work: func(s pie.Shape) int { return s.Columns },
		Make: func(s pie.Shape, v pie.Values, r *rand.Rand) []pie.Argument {
			x, y := make([]byte, s.Columns), make([]byte, s.Columns)
			for i := range x {
				y[i] = 0xa5
				if x[i] = byte(r.Uint32()); v == pie.AllMost {
					x[i] = 127
				}
			}
			return []pie.Argument{{Name: "x", Buffer: x, Access: pie.Read}, {Name: "y", Buffer: y, Access: pie.Write},
				{Name: "blocks", Word: uint32(s.Columns / 16)}}
		}}
}

func doubledTwin(_ string, args []pie.Argument) (uint32, error) {
	sum := uint32(0)
	for i, b := range args[0].Buffer {
		sum += uint32(int32(int8(b)))
		args[1].Buffer[i] = byte(max(-128, min(127, 2*int(int8(b)))))
	}
	return sum, nil
}

func folder(text string) fstest.MapFS { return fstest.MapFS{"doubled.S": {Data: []byte(text)}} }

func checker(t *testing.T, text string, twin Twin) *Checker {
	t.Helper()
	c, err := newChecker(doubledKernel(), folder(text), twin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRunAgrees(t *testing.T) {
	c := checker(t, doubled, doubledTwin)
	r := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(100) {
		if _, err := c.Run(context.Background(), c.runner.Kernel.Any(r), pie.Values(seed%3), seed); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunShowsDifferences(t *testing.T) {
	s := pie.Shape{Columns: 32}
	var d *Difference
	_, err := checker(t, strings.Replace(doubled, "vadds", "vsubs", 1), doubledTwin).Run(context.Background(), s, pie.AllMost, 1)
	if !errors.As(err, &d) || d.Argument != "y" || d.At != 0 || d.Count != 32 {
		t.Errorf("a wrong kernel: %v", err)
	}
	_, err = checker(t, doubled, func(s string, args []pie.Argument) (uint32, error) {
		v, err := doubledTwin(s, args)
		args[1].Buffer[21] ^= 1
		return v, err
	}).Run(context.Background(), s, pie.Random, 1)
	if !errors.As(err, &d) || d.At != 21 || d.Count != 1 || !strings.Contains(err.Error(), "doubled {") {
		t.Errorf("one byte: %v", err)
	}
	_, err = checker(t, doubled, func(s string, args []pie.Argument) (uint32, error) {
		v, err := doubledTwin(s, args)
		return v + 1, err
	}).Run(context.Background(), s, pie.Random, 1)
	if !errors.As(err, &d) || d.Argument != "" {
		t.Errorf("the returned word: %v", err)
	}
	var trap *sim.Trap
	_, err = checker(t, strings.Replace(doubled, "q1, a3, 16", "q1, a2, 16", 1), doubledTwin).Run(context.Background(), s, pie.Random, 1)
	if !errors.As(err, &trap) {
		t.Errorf("a store to what may be read only: %v", err)
	}
}

func TestRunWatchesTwins(t *testing.T) {
	s := pie.Shape{Columns: 32}
	for name, twin := range map[string]Twin{
		"wrote byte 33": func(s string, args []pie.Argument) (uint32, error) {
			args[1].Buffer[:40][33] = 0
			return doubledTwin(s, args)
		},
		"may only be read": func(s string, args []pie.Argument) (uint32, error) {
			v, err := doubledTwin(s, args)
			args[0].Buffer[0] ^= 1
			return v, err
		},
	} {
		if _, err := checker(t, doubled, twin).Run(context.Background(), s, pie.Random, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharedBuffers: y may be x where a kernel says so, and then there is one buffer on both sides.
func TestSharedBuffers(t *testing.T) {
	c := checker(t, doubled, doubledTwin)
	makeApart := c.runner.Kernel.Make
	c.runner.Kernel.Make = func(s pie.Shape, v pie.Values, r *rand.Rand) []pie.Argument {
		args := makeApart(s, v, r)
		args[1].Buffer = args[0].Buffer
		return args
	}
	if _, err := c.Run(context.Background(), pie.Shape{Columns: 64}, pie.Random, 5); err != nil {
		t.Error(err)
	}
}

func TestMutateFindsFaults(t *testing.T) {
	m, err := mutate(context.Background(), "doubled.S", []pie.Kernel{doubledKernel()}, folder(doubled), doubledTwin, Mutation{Cases: 50, Every: 1, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Tried < 40 || m.Caught+len(m.Survivors) != m.Tried {
		t.Errorf("%d tried, %d caught, %d survive", m.Tried, m.Caught, len(m.Survivors))
	}
	for _, s := range m.Survivors {
		t.Errorf("no case shows %s -> %s", s.Was, s.Now)
	}
}

// TestMutateTellsSurvivors: an instruction that does nothing is found out, and so is one that no case reaches.
func TestMutateTellsSurvivors(t *testing.T) {
	text := strings.Replace(doubled, "loopnez", "movi a9, 5\n\tbltz a4, 2f\n\tloopnez", 1) + "2:\tmovi a2, 0\n\tretw\n"
	reasons, err := readReasons("test", "doubled.S | movi a9, 5 | movi a9, 6 | nothing reads a9\n")
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutate(context.Background(), "doubled.S", []pie.Kernel{doubledKernel()}, folder(text), doubledTwin, Mutation{Cases: 50, Every: 1, Seed: 1}, reasons)
	if err != nil {
		t.Fatal(err)
	}
	var explained, open, unreached int
	for _, s := range m.Survivors {
		switch {
		case s.Reason != "":
			explained++
		case s.Unreach:
			unreached++
		case s.Was == "movi a9, 5":
			open++
		}
	}
	if explained != 1 || open < 2 || unreached < 3 {
		t.Errorf("%d explained, %d open, %d not reached of %+v", explained, open, unreached, m.Survivors)
	}
}

func TestReasons(t *testing.T) {
	r, err := readReasons("test", "a.S | nop | * | waits\na.S | add a2, a3, a4 | sub a2, a3, a4 | a4 is 0\n")
	if err != nil {
		t.Fatal(err)
	}
	if r.find("a.S", "nop", "nop.n") != "waits" || r.find("a.S", "add a2, a3, a4", "sub a2, a3, a4") != "a4 is 0" ||
		r.find("a.S", "add a2, a3, a4", "and a2, a3, a4") != "" || r.find("b.S", "nop", "x") != "" {
		t.Error("reasons are not found, or others are")
	}
	for _, bad := range []string{"a.S | nop | *", "a.S | nop | * | ", "x"} {
		if _, err := readReasons("test", bad); err == nil || !strings.Contains(err.Error(), "test:1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := KnownReasons(); err != nil {
		t.Error(err)
	}
}

// TestFloatBytes: what a case shows of floats are their bytes.
func TestFloatBytes(t *testing.T) {
	e := &expected{args: []pie.Argument{{Name: "y", Buffer: binary.LittleEndian.AppendUint32(nil, 0x80000000)}}}
	if d := e.differs([]pie.Argument{{Name: "y", Buffer: make([]byte, 4)}}, 0, false); d == nil || d.At != 3 {
		t.Errorf("-0 and 0: %v", d)
	}
}

// TestScratch: what scratch holds at the end is no result.
func TestScratch(t *testing.T) {
	for name, differs := range map[string]bool{"scratch": false, "y": true} {
		e := &expected{args: []pie.Argument{{Name: name, Buffer: []byte{1}}}}
		if d := e.differs([]pie.Argument{{Name: name, Buffer: []byte{2}}}, 0, false); (d != nil) != differs {
			t.Errorf("%s: %v", name, d)
		}
	}
}
