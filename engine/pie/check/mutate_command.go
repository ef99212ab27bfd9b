package check

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
)

func mutateCommand() *cobra.Command {
	var kernel string
	var asJSON bool
	m := Mutation{}
	c := &cobra.Command{
		Use:   "mutate",
		Short: "Put faults into the kernels, one at a time, and ask that a case finds each",
		Long: `Put faults into the kernels, one at a time: another instruction with the same operands, another
register, an immediate one step away. Each is run on edge cases and random ones until a case shows
it: other bytes than the twin's, a trap, or no end. Those that no case shows are listed; a reason
beside one says why it changes nothing, from engine/pie/check/survivors.txt. The exit status is 1 if
one has no reason. All faults of all kernels take minutes. With --kernel, faults are put into the
instructions of that kernel alone, which are those from its label to the next kernel of the file.`,
		Example: `  chiplm pie mutate --kernel exp
  chiplm pie mutate --every 20 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.Cases < 0 || m.Every < 1 {
				return usage.Errorf("--cases wants 0 or more, --every 1 or more")
			}
			kernels, err := chosen(kernel)
			if err != nil {
				return err
			}
			reasons, err := KnownReasons()
			if err != nil {
				return err
			}
			if kernel != "" {
				m.Kernel = kernels[0].Symbol
			}
			all := []*Mutated{}
			for _, file := range Files(kernels) {
				r, err := Mutate(cmd.Context(), file, m, reasons)
				if err != nil {
					return err
				}
				all = append(all, r)
				if !asJSON {
					if err := printMutated(cmd.OutOrStdout(), r); err != nil {
						return err
					}
				}
			}
			if asJSON {
				if err := jsonout.Write(cmd.OutOrStdout(), all); err != nil {
					return err
				}
			}
			tried, caught, open := 0, 0, 0
			for _, r := range all {
				tried, caught = tried+r.Tried, caught+r.Caught
				for _, s := range r.Survivors {
					if s.Reason == "" {
						open++
					}
				}
			}
			if !asJSON && tried > 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d faults, %d found (%.2f %%), %d explained, %d not\n", tried, caught,
					100*float64(caught)/float64(tried), tried-caught-open, open)
				if err != nil {
					return err
				}
			}
			if open > 0 {
				return fmt.Errorf("%d faults were not found and nobody says why; add a case that shows them, or a reason to "+
					"engine/pie/check/survivors.txt", open)
			}
			return nil
		},
	}
	kernelFlag(c, &kernel)
	c.Flags().IntVar(&m.Cases, "cases", 1500, "random cases of each kernel")
	c.Flags().IntVar(&m.Every, "every", 1, "try one in so many faults")
	c.Flags().Uint64Var(&m.Seed, "seed", 1, "of the cases, and of the choice of faults")
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects")
	return c
}

func printMutated(w io.Writer, r *Mutated) error {
	where := r.File
	if r.Kernel != "" {
		where += ", " + short(r.Kernel)
	}
	if _, err := fmt.Fprintf(w, "%s: %d of %d faults found\n", where, r.Caught, r.Tried); err != nil {
		return err
	}
	for _, s := range r.Survivors {
		why := s.Reason
		if why == "" {
			why = "NO REASON GIVEN"
		}
		if s.Unreach {
			why += " (no case gets there)"
		}
		if _, err := fmt.Fprintf(w, "  %s:%d: %s -> %s: %s\n", s.File, s.Line, s.Was, s.Now, why); err != nil {
			return err
		}
	}
	return nil
}
