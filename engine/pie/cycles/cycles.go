package cycles

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// Seed is that of the values in [Of].
const Seed = 1

// Runner runs cases of one kernel, one at a time.
type Runner struct {
	Kernel  pie.Kernel
	Program *sim.Program
	Machine *sim.Machine
	words   []uint32
}

// New reads the kernel's file from a folder such as pie.Files.
func New(k pie.Kernel, folder fs.FS) (*Runner, error) {
	p, err := sim.ParseFile(folder, k.File)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Symbol, err)
	}
	return With(k, p), nil
}

// With is a runner for another text of the kernel.
func With(k pie.Kernel, p *sim.Program) *Runner {
	return &Runner{Kernel: k, Program: p, Machine: sim.New()}
}

// Make makes a case. The same seed gives the same one.
func Make(k pie.Kernel, s pie.Shape, v pie.Values, seed uint64) []pie.Argument {
	return k.Make(s, v, rand.New(rand.NewPCG(seed, uint64(v))))
}

// Run runs a case, whose buffers it changes. A buffer that is passed twice is one buffer.
func (r *Runner) Run(ctx context.Context, args []pie.Argument) (sim.Result, error) {
	r.Machine.Unmap()
	r.words = r.words[:0]
	for i, a := range args {
		word := a.Word
		if a.Buffer != nil {
			access, first := a.Access, true
			for k, b := range args {
				if !Same(a.Buffer, b.Buffer) {
					continue
				}
				if access |= b.Access; k < i && first {
					word, first = r.words[k], false
				}
			}
			if first {
				word = r.Machine.Map(a.Name, a.Buffer, access)
			}
		}
		r.words = append(r.words, word)
	}
	res, err := r.Machine.Call(ctx, r.Program, r.Kernel.Symbol, r.words...)
	if err != nil {
		return res, fmt.Errorf("%s: %w", r.Kernel.Symbol, err)
	}
	return res, nil
}

// Same says that two buffers are one.
func Same(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Find is the kernel of a symbol.
func Find(symbol string) (pie.Kernel, error) {
	for _, k := range pie.Kernels() {
		if k.Symbol == symbol {
			return k, nil
		}
	}
	return pie.Kernel{}, fmt.Errorf("there is no kernel %q; chiplm pie list shows them", symbol)
}

// Measure runs one case with random values.
func Measure(ctx context.Context, k pie.Kernel, s pie.Shape) (sim.Result, error) {
	r, err := New(k, pie.Files)
	if err != nil {
		return sim.Result{}, err
	}
	return r.Run(ctx, Make(k, s, pie.Random, Seed))
}

// Of gives the cycles of one call, the caller's call instruction included. Nothing is kept: see [Memo].
func Of(symbol string, s pie.Shape) (float64, error) {
	k, err := Find(symbol)
	if err != nil {
		return 0, err
	}
	r, err := Measure(context.Background(), k, s)
	return float64(r.Cycles), err
}

// Memo keeps what it measured. The zero value is ready. It is for one goroutine.
type Memo struct {
	kernels map[string]*Runner
	known   map[memoKey]float64
}

type memoKey struct {
	symbol string
	shape  pie.Shape
}

// Of is as the function of that name, and measures each kernel and shape once.
func (m *Memo) Of(symbol string, s pie.Shape) (float64, error) {
	key := memoKey{symbol, s}
	if n, ok := m.known[key]; ok {
		return n, nil
	}
	if m.known == nil {
		m.kernels, m.known = map[string]*Runner{}, map[memoKey]float64{}
	}
	r := m.kernels[symbol]
	if r == nil {
		k, err := Find(symbol)
		if err != nil {
			return 0, err
		}
		if r, err = New(k, pie.Files); err != nil {
			return 0, err
		}
		m.kernels[symbol] = r
	}
	res, err := r.Run(context.Background(), Make(r.Kernel, s, pie.Random, Seed))
	if err != nil {
		return 0, err
	}
	m.known[key] = float64(res.Cycles)
	return m.known[key], nil
}
