package check

import (
	"context"
	"fmt"
	"io/fs"
	"unsafe"

	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// Twin runs what a kernel is compared with, on the buffers of the arguments.
type Twin func(symbol string, args []pie.Argument) (uint32, error)

// Checker runs cases of one kernel, one at a time.
type Checker struct {
	runner *cycles.Runner
	twin   Twin
}

// New makes a checker of a kernel and its twin in plain C.
func New(k pie.Kernel) (*Checker, error) { return newChecker(k, pie.Files, engine.PieTwin) }

func newChecker(k pie.Kernel, folder fs.FS, twin Twin) (*Checker, error) {
	r, err := cycles.New(k, folder)
	if err != nil {
		return nil, err
	}
	return &Checker{r, twin}, nil
}

// Run checks one case: see [Checker.Run].
func Run(ctx context.Context, k pie.Kernel, s pie.Shape, v pie.Values, seed uint64) (sim.Result, error) {
	c, err := New(k)
	if err != nil {
		return sim.Result{}, err
	}
	return c.Run(ctx, s, v, seed)
}

// Run runs a case in the interpreter and its copy by the twin, and compares. The error is a [*Difference] where they
// differ, and has a [*sim.Trap] where the kernel did what no kernel may do.
func (c *Checker) Run(ctx context.Context, s pie.Shape, v pie.Values, seed uint64) (sim.Result, error) {
	k := c.runner.Kernel
	about := func() string { return fmt.Sprintf("%s %+v, values %v, seed %d", k.Symbol, s, v, seed) }
	ours := cycles.Make(k, s, v, seed)
	r, err := c.runner.Run(ctx, ours)
	if err != nil {
		return r, fmt.Errorf("%s: %w", about(), err)
	}
	want, err := c.expect(s, v, seed)
	if err != nil {
		return r, fmt.Errorf("%s: %w", about(), err)
	}
	if d := want.differs(ours, r.Return, k.Returns); d != nil {
		d.Case = about()
		return r, d
	}
	return r, nil
}

// expected is what a twin made of a case.
type expected struct {
	args     []pie.Argument
	returned uint32
}

// guard is the number of bytes behind each buffer of a twin that it must leave alone.
const guard = 64

// expect makes a case and runs the twin on it.
func (c *Checker) expect(s pie.Shape, v pie.Values, seed uint64) (*expected, error) {
	k := c.runner.Kernel
	args := cycles.Make(k, s, v, seed)
	made := make([]pie.Argument, len(args))
	for i, a := range args {
		made[i] = a
		if a.Buffer == nil {
			continue
		}
		made[i].Buffer = aligned(a.Buffer)
		for j := range i {
			if cycles.Same(args[j].Buffer, a.Buffer) {
				made[i].Buffer = made[j].Buffer
			}
		}
	}
	returned, err := c.twin(k.Symbol, made)
	if err != nil {
		return nil, err
	}
	for i, a := range made {
		for at, b := range a.Buffer[:cap(a.Buffer)][len(a.Buffer):] {
			if a.Buffer != nil && b != 0x5a {
				return nil, fmt.Errorf("the twin wrote byte %d of %q, which has %d", len(a.Buffer)+at, a.Name, len(a.Buffer))
			}
		}
		if a.Access&pie.Write == 0 && string(a.Buffer) != string(args[i].Buffer) && !c.shared(args, i) {
			return nil, fmt.Errorf("the twin wrote to %q, which may only be read", a.Name)
		}
	}
	return &expected{made, returned}, nil
}

// shared says that another argument is the same buffer.
func (c *Checker) shared(args []pie.Argument, i int) bool {
	for j := range args {
		if j != i && cycles.Same(args[i].Buffer, args[j].Buffer) {
			return true
		}
	}
	return false
}

// aligned copies a buffer to a multiple of 64, with a guard behind it as its spare capacity.
func aligned(b []byte) []byte {
	whole := make([]byte, len(b)+guard+64)
	skip := -int(uintptr(unsafe.Pointer(&whole[0]))) & 63
	made := whole[skip : skip+len(b) : skip+len(b)+guard]
	copy(made, b)
	for i := range made[:cap(made)][len(b):] {
		made[:cap(made)][len(b)+i] = 0x5a
	}
	return made
}

// Difference is a case in which kernel and twin do not agree.
type Difference struct {
	Case      string
	Argument  string // of the buffer; empty: the returned word
	At        int    // first byte that differs
	Count     int    // bytes that differ
	Got, Want []byte // a few, from a multiple of 4 on
}

func (d *Difference) Error() string {
	if d.Argument == "" {
		return fmt.Sprintf("%s: returns % x, its twin % x", d.Case, d.Got, d.Want)
	}
	return fmt.Sprintf("%s: %d bytes of %q differ from the twin's; from byte %d on it has % x, the twin % x",
		d.Case, d.Count, d.Argument, d.At, d.Got, d.Want)
}

// differs compares with what the interpreter left. nil: all the same.
func (e *expected) differs(args []pie.Argument, returned uint32, returns bool) *Difference {
	for i, a := range args {
		want := e.args[i].Buffer
		if a.Name == "scratch" || string(a.Buffer) == string(want) {
			continue
		}
		d := &Difference{Argument: a.Name, At: -1}
		for at := range want {
			if a.Buffer[at] != want[at] {
				if d.Count++; d.At < 0 {
					d.At = at
				}
			}
		}
		from := d.At &^ 3
		to := min(from+16, len(want))
		d.Got, d.Want = a.Buffer[from:to], want[from:to]
		return d
	}
	if returns && returned != e.returned {
		word := func(v uint32) []byte { return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }
		return &Difference{Got: word(returned), Want: word(e.returned)}
	}
	return nil
}
