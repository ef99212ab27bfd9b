package check

import (
	"fmt"

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
the cycles it waited for a result, the line of the file, the instruction. Without flags the case has
the kernel's first shape of the reference model; a flag changes one of its sizes.`,
		Example: `  chiplm pie trace chiplm_pie_exp --n 4
  chiplm pie trace chiplm_pie_rows4_c128g64 --rows 2`,
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
			for flag, sizes := range map[string][2]*int{"rows": {&shape.Rows, &s.Rows}, "columns": {&shape.Columns, &s.Columns},
				"group": {&shape.Group, &s.Group}, "listed": {&shape.Listed, &s.Listed}, "n": {&shape.N, &s.N}} {
				if cmd.Flags().Changed(flag) {
					if *sizes[1] < 0 {
						return usage.Errorf("--%s %d: wants a size, 0 or more", flag, *sizes[1])
					}
					*sizes[0] = *sizes[1]
				}
			}
			r, err := cycles.New(k, pie.Files)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
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
			_, err = fmt.Fprintf(out, "%s, %s: %d cycles, %d instructions; stalls: %+v\n", k.Symbol, About(shape), res.Cycles, res.Instructions, res.Stalls)
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
