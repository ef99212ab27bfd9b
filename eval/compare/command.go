package compare

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval/results"
)

// flags of the command.
type flags struct {
	baseline, order, html string
	arms                  []string
	front                 []float64
	markdown, asJSON      bool
}

// Command is `chiplm compare`.
func Command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "compare RESULTS.jsonl|FOLDER...",
		Short: "Compare trained variants: which is better, is that more than chance, what does it cost",
		Long: `Compare what chiplm sweep wrote: for each arm (a variant, in one run or more that differ in their
seed) the mean and the spread of its score, its difference to the baseline with a 95 % interval,
what it reads and its predicted speed, and a verdict. A folder stands for the results.jsonl in it.

Of arms with three seeds or more in common the interval is that of the paired differences; else all
arms of the table share one standard deviation, since two runs say little about theirs. One run has
no uncertainty that anybody knows, and the verdict says so. docs/compare.md has the formulas.

Tokenizers differ, so compare bits per byte, and bytes of text per second. Runs that were scored on
different stories are refused in one table; other programs, texts or amounts of training are noted.

The baseline is the arm that the sweep names, or --baseline. --arms takes names and patterns with *
and ?; the baseline stays. --front asks for the best arm at each predicted speed, in tokens per
second, or faster; where tokenizers differ, it also names arms that are better at the same speed of
text. --html writes one page that needs no network: the tables, the loss curves, and
bits per byte against bytes of text per second with the Pareto front. It takes the place of an
older page, and of no other file.`,
		Example: `  chiplm compare screen.jsonl
  chiplm compare screen.jsonl more.jsonl --baseline plain --arms 'ple*,combo' --sort speed
  chiplm compare screen.jsonl --front 50,100,150,200 --markdown
  chiplm compare screen.jsonl --html screen.html`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	c.Flags().StringVar(&f.baseline, "baseline", "", "`ARM` that the others are compared with (default the sweep's)")
	c.Flags().StringSliceVar(&f.arms, "arms", nil, "only these arms: `NAMES` or patterns, with commas between")
	c.Flags().StringVar(&f.order, "sort", "bits", "order of the arms: bits, name, parameters, read, speed, or sweep (as in its file)")
	c.Flags().Float64SliceVar(&f.front, "front", nil, "the best arm at these predicted `SPEEDS` or faster, in tokens per second")
	c.Flags().StringVar(&f.html, "html", "", "also write a page with plots to this `FILE`")
	c.Flags().BoolVar(&f.markdown, "markdown", false, "print Markdown")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	if err := c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(Orders(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
	return c
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	if f.markdown && f.asJSON {
		return usage.Errorf("--markdown and --json contradict each other: give one of them")
	}
	paths, err := files(args)
	if err != nil {
		return err
	}
	if f.baseline == "" && cmd.Flags().Changed("baseline") {
		return usage.Errorf("--baseline is empty: name an arm, or leave it out for the sweep's")
	}
	if f.html == "" && cmd.Flags().Changed("html") {
		return usage.Errorf("--html is empty: name a file, or leave it out")
	}
	for _, speed := range f.front {
		if !(speed > 0 && speed <= results.Largest) {
			return usage.Errorf("--front %g: wants tokens per second above 0", speed)
		}
	}
	if f.html != "" {
		if err := mayReplace(f.html, paths); err != nil {
			return err
		}
	}
	set, err := Load(paths)
	if err != nil {
		return err
	}
	baseline := set.Baseline
	if f.baseline != "" {
		if baseline, err = set.find(f.baseline); err != nil {
			return err
		}
	}
	if err := set.Choose(f.arms, baseline); err != nil {
		return err
	}
	report, err := New(set, baseline, f.order, f.front)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := regular.Write(f.html, report.HTML); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: written; open it in a browser\n", f.html)
	}
	switch {
	case f.asJSON:
		return jsonout.Write(cmd.OutOrStdout(), report)
	case f.markdown:
		return report.Markdown(cmd.OutOrStdout())
	}
	return report.Write(cmd.OutOrStdout())
}
