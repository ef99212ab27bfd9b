package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"

	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// Mutation says how faults are put in.
type Mutation struct {
	Cases  int    // of each kernel, beside the edge cases
	Every  int    // one in so many faults is tried
	Seed   uint64 // of the cases, and of the choice of faults
	Kernel string // faults are put into the instructions of this symbol alone; empty: into the whole file
}

// Survivor is a fault that no case showed.
type Survivor struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Was     string `json:"was"`
	Now     string `json:"now"`
	Reason  string `json:"reason,omitempty"` // why it changes nothing; empty: nobody has said
	Unreach bool   `json:"never_executed,omitempty"`
}

// Mutated is what became of the faults in a file.
type Mutated struct {
	File      string     `json:"file"`
	Kernel    string     `json:"kernel,omitempty"` // the faults were put into it alone
	Tried     int        `json:"tried"`
	Refused   int        `json:"refused"` // the assembler does not take it: not among those tried
	Caught    int        `json:"caught"`
	Survivors []Survivor `json:"survivors"`
}

// attempt is a case with what its twin made of it.
type attempt struct {
	kernel   int
	args     []pie.Argument
	want     *expected
	executed []bool // by instruction
	budget   uint64
}

// mutator holds what is tried on one file.
type mutator struct {
	program *sim.Program
	kernels []pie.Kernel
	runners []*cycles.Runner
	cases   []attempt
}

// Files are the files of some kernels, in order.
func Files(kernels []pie.Kernel) []string {
	var all []string
	for _, k := range kernels {
		if !slices.Contains(all, k.File) {
			all = append(all, k.File)
		}
	}
	return all
}

// Mutate puts faults into a file, one at a time, and runs the cases of its kernels until one shows it: other bytes than
// the twin's, a trap, or no end.
func Mutate(ctx context.Context, file string, m Mutation, reasons Reasons) (*Mutated, error) {
	var kernels []pie.Kernel
	for _, k := range pie.Kernels() {
		if k.File == file {
			kernels = append(kernels, k)
		}
	}
	return mutate(ctx, file, kernels, pie.Files, engine.PieTwin, m, reasons)
}

func mutate(ctx context.Context, file string, kernels []pie.Kernel, folder fs.FS, twin Twin, m Mutation, reasons Reasons) (*Mutated, error) {
	p, err := sim.ParseFile(folder, file)
	if err != nil {
		return nil, err
	}
	t := &mutator{program: p, kernels: kernels}
	for i, k := range kernels {
		if err := t.prepare(ctx, i, k, twin, m); err != nil {
			return nil, err
		}
	}
	from, to := 0, len(p.Instructions())
	if m.Kernel != "" {
		if from, to = p.Range(m.Kernel); from == to {
			return nil, fmt.Errorf("%s has no function %s", file, m.Kernel)
		}
	}
	out := &Mutated{File: file, Kernel: m.Kernel, Survivors: []Survivor{}}
	choice := rand.New(rand.NewPCG(m.Seed, 1))
	for i, was := range p.Instructions() {
		if i < from || i >= to {
			continue
		}
		for _, fault := range was.Faults() {
			if m.Every > 1 && choice.IntN(m.Every) != 0 {
				continue
			}
			changed, err := p.With(i, fault.Mnemonic, fault.Operands...)
			if err != nil {
				out.Refused++
				continue
			}
			out.Tried++
			caught, executed, err := t.try(ctx, i, changed)
			if err != nil {
				return nil, err
			}
			if caught {
				out.Caught++
				continue
			}
			out.Survivors = append(out.Survivors, Survivor{was.File, was.Line, was.String(), fault.String(),
				reasons.find(file, was.String(), fault.String()), !executed})
		}
	}
	return out, nil
}

// prepare makes the cases of a kernel: every kind of values on small shapes, then random ones.
func (t *mutator) prepare(ctx context.Context, i int, k pie.Kernel, twin Twin, m Mutation) error {
	c := &Checker{cycles.With(k, t.program), twin}
	t.runners = append(t.runners, cycles.With(k, t.program))
	r := rand.New(rand.NewPCG(m.Seed, uint64(i)))
	kinds := append([]pie.Values{pie.Random}, pie.EdgeValues()...)
	for n := range m.Cases + 4*len(kinds) {
		s, v, seed := k.Any(r), pie.Random, r.Uint64()
		if n >= m.Cases {
			v = kinds[n%len(kinds)]
		}
		a := attempt{kernel: i, args: cycles.Make(k, s, v, seed), executed: make([]bool, len(t.program.Instructions()))}
		var err error
		if a.want, err = c.expect(s, v, seed); err != nil {
			return err
		}
		c.runner.Machine.Trace = func(s sim.Step) { a.executed[s.Index] = true }
		res, err := c.Run(ctx, s, v, seed)
		if err != nil {
			return fmt.Errorf("without a fault: %w", err)
		}
		a.budget = 4*res.Instructions + 1000
		t.cases = append(t.cases, a)
	}
	return nil
}

// try runs the cases that reach instruction i until one shows the fault.
func (t *mutator) try(ctx context.Context, i int, changed *sim.Program) (caught, executed bool, err error) {
	for _, a := range t.cases {
		if !a.executed[i] {
			continue
		}
		executed = true
		r := t.runners[a.kernel]
		r.Program, r.Machine.Budget = changed, a.budget
		args := make([]pie.Argument, len(a.args))
		for k, arg := range a.args {
			args[k] = arg
			if arg.Buffer == nil {
				continue
			}
			args[k].Buffer = slices.Clone(arg.Buffer)
			for j := range k {
				if cycles.Same(a.args[j].Buffer, arg.Buffer) {
					args[k].Buffer = args[j].Buffer
				}
			}
		}
		res, err := r.Run(ctx, args)
		if trap := (*sim.Trap)(nil); errors.As(err, &trap) {
			return true, true, nil
		} else if err != nil {
			return false, true, err
		}
		if a.want.differs(args, res.Return, t.kernels[a.kernel].Returns) != nil {
			return true, true, nil
		}
	}
	return false, executed, nil
}
