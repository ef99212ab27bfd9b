package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/engine/pie/sim"
)

// Command is `chiplm pie`.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "pie",
		Short: "Run the kernels of the chip's vector unit without a board, and prove them",
		Long: `Run the kernels of the ESP32-S3's vector unit (PIE) without a board.

The kernels are assembly, engine/pie/*.S, which the firmware builds. An interpreter executes those
very files, traps what no kernel may do, and counts cycles by a model of the processor. A twin of
each kernel in plain C must give the same bytes.`,
		Example: `  chiplm pie run
  chiplm pie trace exp --n 4
  chiplm pie mutate --kernel exp`,
	}
	c.AddCommand(runCommand(), listCommand(), traceCommand(), mutateCommand())
	return c
}

// Row is one kernel on one shape, as `chiplm pie run` shows it.
type Row struct {
	Kernel         string     `json:"kernel"`
	Shape          pie.Shape  `json:"shape"`
	Group          int        `json:"group"`
	Work           int        `json:"work"` // weights or values
	Cycles         uint64     `json:"cycles"`
	CyclesPerValue float64    `json:"cycles_per_weight"`
	Instructions   uint64     `json:"instructions"`
	StallCycles    uint64     `json:"stall_cycles"`
	Stalls         sim.Stalls `json:"stalls"`
	Equal          bool       `json:"equal"`
	Error          string     `json:"error,omitempty"`
}

// Rows runs kernels on their shapes, with random values and the seed of package cycles, beside their twins.
func Rows(ctx context.Context, kernels []pie.Kernel) ([]Row, error) {
	rows := []Row{}
	for _, k := range kernels {
		c, err := New(k)
		if err != nil {
			return nil, err
		}
		for _, s := range k.Shapes {
			r, err := c.Run(ctx, s, pie.Random, cycles.Seed)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			row := Row{Kernel: k.Symbol, Shape: s, Group: s.Group, Work: k.Work(s), Cycles: r.Cycles, Instructions: r.Instructions,
				StallCycles: r.Stalls.Total(), Stalls: r.Stalls, Equal: err == nil}
			if err != nil {
				row.Error = err.Error()
			}
			if row.Work > 0 {
				row.CyclesPerValue = float64(r.Cycles) / float64(row.Work)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// prefix is what the symbols of all kernels begin with. Tables leave it out, and so may users.
const prefix = "chiplm_pie_"

// chosen are the kernels that a flag names, or all.
func chosen(name string) ([]pie.Kernel, error) {
	if name == "" {
		return pie.Kernels(), nil
	}
	k, err := cycles.Find(prefix + short(name))
	if err != nil {
		k, err = cycles.Find(name) // so that the error has the name as it was given
	}
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	return []pie.Kernel{k}, nil
}

// kernelFlag adds --kernel.
func kernelFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "kernel", "", "one kernel, by its `NAME`, with or without "+prefix)
	if err := c.RegisterFlagCompletionFunc("kernel", completeKernels); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

func completeKernels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range pie.Kernels() {
		names = append(names, k.Symbol, short(k.Symbol))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func runCommand() *cobra.Command {
	var kernel string
	var asJSON bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Run each kernel on the reference model's shapes, count cycles, compare with its twin",
		Long: `Run each kernel in the interpreter on the shapes of the reference model, run its twin in C on the
same case, and compare every byte. Cycles are those of the interpreter's model for data in internal
memory; "each" divides them by the weights, or values, that the case has. Stalls are cycles in
which no instruction starts. docs/pie.md has the whole table. The exit status is 1 if a kernel and
its twin differ.`,
		Example: `  chiplm pie run
  chiplm pie run --kernel rows4_c128g64 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kernels, err := chosen(kernel)
			if err != nil {
				return err
			}
			rows, err := Rows(cmd.Context(), kernels)
			if err != nil {
				return err
			}
			if asJSON {
				err = jsonout.Write(cmd.OutOrStdout(), rows)
			} else {
				err = printRows(cmd.OutOrStdout(), rows)
			}
			if err != nil {
				return err
			}
			differ := 0
			for _, r := range rows {
				if !r.Equal {
					differ++
				}
			}
			if differ > 0 {
				return fmt.Errorf("%d of %d cases differ from the twin; the first: %s", differ, len(rows), firstError(rows))
			}
			return nil
		},
	}
	kernelFlag(c, &kernel)
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects")
	return c
}

func firstError(rows []Row) string {
	for _, r := range rows {
		if !r.Equal {
			return r.Error
		}
	}
	return ""
}

func printRows(out io.Writer, rows []Row) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The first columns are names: on the left, so padded by hand.
	name, shape := len("kernel"), len("shape")
	for _, r := range rows {
		name, shape = max(name, len(short(r.Kernel))), max(shape, len(About(r.Shape)))
	}
	fmt.Fprintf(w, "%-*s  %-*s\tgroup\teach\tcycles\tinstructions\tstalls\tresult\t\n", name, "kernel", shape, "shape")
	for _, r := range rows {
		result := "equal"
		if !r.Equal {
			result = "DIFFERS"
		}
		group := fmt.Sprint(r.Group)
		if r.Group == 0 {
			group = "row"
			if r.Shape.Bits == 0 {
				group = "-"
			}
		}
		fmt.Fprintf(w, "%-*s  %-*s\t%s\t%.3f\t%d\t%d\t%d\t%s\t\n", name, short(r.Kernel), shape, About(r.Shape), group, r.CyclesPerValue,
			r.Cycles, r.Instructions, r.StallCycles, result)
	}
	w.Flush() // into memory, which takes everything
	for line := range bytes.Lines(b.Bytes()) {
		if _, err := out.Write(bytes.TrimPrefix(line, []byte("  "))); err != nil { // the space before the first column
			return err
		}
	}
	return nil
}

// short leaves out what all kernels' names begin with.
func short(symbol string) string { return strings.TrimPrefix(symbol, prefix) }

// About writes a shape for tables, such as "128 x 128, 4 bits".
func About(s pie.Shape) string {
	var parts []string
	switch {
	case s.Rows > 0 && s.Columns > 0:
		parts = append(parts, fmt.Sprintf("%d x %d", s.Rows, s.Columns))
	case s.N > 0 && s.Columns > 0:
		parts = append(parts, fmt.Sprintf("%d positions of %d", s.N, s.Columns))
	default: // a vector
		parts = append(parts, fmt.Sprintf("%d values", max(s.Rows, s.Columns, s.N)))
	}
	if s.Bits > 0 {
		parts = append(parts, fmt.Sprintf("%d bits", s.Bits))
	}
	if s.Half {
		parts = append(parts, "f16")
	}
	if s.Listed > 0 {
		parts = append(parts, fmt.Sprintf("%d listed", s.Listed))
	}
	return strings.Join(parts, ", ")
}

func listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the kernels",
		Long: `List the kernels: the C name of each, the file it is in, and what it does. The C prototypes and the
contracts of the arguments are in engine/pie/pie.h.`,
		Example: "  chiplm pie list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			type entry struct {
				Kernel string      `json:"kernel"`
				File   string      `json:"file"`
				About  string      `json:"about"`
				Shapes []pie.Shape `json:"shapes"`
			}
			list := []entry{}
			for _, k := range pie.Kernels() {
				list = append(list, entry{k.Symbol, k.File, k.About, k.Shapes})
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), list)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "kernel\tfile\twhat it does")
			for _, e := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", e.Kernel, e.File, e.About)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects")
	return c
}
