package check

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

func traceCommand() *cobra.Command {
	s := pie.Shape{}
	first := 0
	c := &cobra.Command{
		Use:   "trace KERNEL",
		Short: "Show a kernel's instructions as they run, with cycles and stalls",
		Long: `Run a kernel on one case with random values and print each instruction when it starts: the cycle,
the cycles that it waited, the line of the file, the instruction. Cycles begin with the call of the
kernel, which takes 3, so the first instruction starts at 3. Without flags the case has the
kernel's first shape of the reference model; a flag changes one of the sizes that the kernel has.`,
		Example: `  chiplm pie trace exp --n 4
  chiplm pie trace rows4_c128g64 --rows 2`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKernels,
		RunE: func(cmd *cobra.Command, args []string) error {
			kernels, err := chosen(args[0])
			if err != nil {
				return err
			}
			k := kernels[0]
			shape := pie.Shape{}
			if len(k.Shapes) > 0 {
				shape = k.Shapes[0]
			}
			for _, x := range sizes() {
				if !cmd.Flags().Changed(x.flag) {
					continue
				}
				if err := allowed(k, x, *x.of(&s)); err != nil {
					return err
				}
				*x.of(&shape) = *x.of(&s)
			}
			if err := together(k, shape); err != nil {
				return err
			}
			if first < 0 {
				return usage.Errorf("--first %d: wants 0 or more", first)
			}
			r, err := cycles.New(k, pie.Files)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if _, err := fmt.Fprintln(out, "  cycle wait  file:line\tinstruction"); err != nil {
				return err
			}
			count := 0
			r.Machine.Trace = func(step sim.Step) {
				if count++; first > 0 && count > first {
					return
				}
				stall := ""
				if step.Stall > 0 {
					stall = fmt.Sprintf("+%d", step.Stall)
				}
				fmt.Fprintf(out, "%7d %4s  %s:%d\t%s\n", step.Cycle, stall, step.Instruction.File, step.Instruction.Line, step.Instruction)
			}
			res, err := r.Run(cmd.Context(), cycles.Make(k, shape, pie.Random, cycles.Seed))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%s, %s: %d cycles, %d instructions; %s\n",
				k.Symbol, About(shape), res.Cycles, res.Instructions, waits(res.Stalls))
			return err
		},
	}
	c.Flags().IntVar(&s.Rows, "rows", 0, "rows of the matrix")
	c.Flags().IntVar(&s.Columns, "columns", 0, "columns, or the length of the vector")
	c.Flags().IntVar(&s.Group, "group", 0, "columns that share a scale; 0: the row")
	c.Flags().IntVar(&s.Listed, "listed", 0, "rows or columns that a list names; 0: all")
	c.Flags().IntVar(&s.N, "n", 0, "positions, or vectors")
	c.Flags().IntVar(&first, "first", 0, "stop printing after so many instructions; 0: never")
	return c
}

// waits writes stalls by what was waited for.
func waits(s sim.Stalls) string {
	var parts []string
	for _, x := range []struct {
		what string
		n    uint64
	}{{"vectors", s.Vector}, {"accumulators", s.Accumulator}, {"words", s.Word}, {"floats", s.Float}, {"stores", s.Store},
		{"branches", s.Branch}, {"loops", s.Loop}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", x.what, x.n))
		}
	}
	if len(parts) == 0 {
		return "no stalls"
	}
	return fmt.Sprintf("%d stalls: %s", s.Total(), strings.Join(parts, ", "))
}
