package cost

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/targets"
)

// flags of the command.
type flags struct {
	target, profile, positions, root, calibrate, out string
	sets                                             []string
	neurons, rows                                    float64
	fullHead, dense, published, asJSON               bool
}

// Command is `chiplm cost`.
func Command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "cost [CHECKPOINT | IMAGE | CONFIG.yaml]",
		Short: "Estimate what a token costs on a chip, part by part, and what would help most",
		Long: `Estimate what a token of a model costs on a chip: milliseconds at the start, in the middle and at
the end of the context, the share of each memory and of each operation, and what would help.

The model is a model file (CONFIG.yaml; nothing need be trained), an image or the folder of an
export, a checkpoint, or the name of a run or of a released model (chiplm models); without it, the
newest of all runs. What a token reads of the output layer and of the feed-forward is measured on
text that the model writes: now, for a checkpoint or a released model; of an image, at the export,
as the file placement.json beside the image says. For a model file, an image without that file,
and with --set it is assumed from the target file, or from --neurons and --head-rows. The output
says which, so one image may give two figures.

--positions gives the mean over a range, as published speeds are. --profile chooses the engine:
"ours", or "study", the published one. --published holds the model against published speeds of
others. --calibrate reads what the benchmark of a board prints, and writes a target with it;
with a model, it also prints what the board took for a token beside the new estimate.
docs/cost.md says what the model is and what each figure rests on.`,
		Example: `  chiplm cost combo.yaml
  chiplm cost combo.yaml --set d_ff=256 --set ple_dim=128 --positions 0-127
  chiplm cost exports/combo-esp32s3 --json
  chiplm cost --published
  chiplm cost --calibrate board.json --out my-board.yaml`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(released.Completions(cmd.Context(), f.root), configs.Builtin()...), cobra.ShellCompDirectiveDefault // or a path
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	c.Flags().StringVar(&f.target, "target", "esp32s3", "chip: "+strings.Join(targets.Builtin(), ", ")+", or a YAML file")
	usage.AddModel(c.Flags(), "CHECKPOINT")
	c.Flags().StringVar(&f.profile, "profile", "", "kernels: a `NAME` of the target's profiles (default its first: ours)")
	c.Flags().StringVar(&f.positions, "positions", "", "mean over the positions `A-B`, both included (default the whole context)")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "override a key of the configuration: `KEY=VALUE`")
	c.Flags().Float64Var(&f.neurons, "neurons", 0, "`SHARE` of the neurons behind a ReLU gate that is taken to speak, 0 to 1 (default the target's)")
	c.Flags().Float64Var(&f.rows, "head-rows", 0, "`SHARE` of the output layer's rows that a search is taken to read, 0 to 1 (default the target's)")
	c.Flags().BoolVar(&f.fullHead, "full-head", false, "the whole output layer is read, as without clusters")
	c.Flags().BoolVar(&f.dense, "dense", false, "every neuron is read")
	c.Flags().BoolVar(&f.published, "published", false, "predict published speeds of others instead")
	c.Flags().StringVar(&f.calibrate, "calibrate", "", "put what a board measured (JSON `FILE`) into a copy of the target")
	c.Flags().StringVar(&f.out, "out", "", "where --calibrate writes the target, a `FILE` that must not exist (default standard output)")
	c.Flags().StringVar(&f.root, "runs", checkpoints.DefaultRoot, "folder of the runs")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	if err := c.RegisterFlagCompletionFunc("target", cobra.FixedCompletions(targets.Builtin(), cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
	return c
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	named := len(args) > 0 || cmd.Flags().Changed("model")
	if err := f.refuse(cmd, named); err != nil {
		return err
	}
	chip, err := targets.Load(f.target)
	if err != nil {
		return err
	}
	name, err := usage.Model(cmd.Flags(), args, "CHECKPOINT")
	if err != nil {
		return err
	}
	switch {
	case f.published:
		list, err := Predict(chip)
		if err != nil {
			return err
		}
		if f.asJSON {
			return jsonout.Write(cmd.OutOrStdout(), map[string]any{"target": chip.Name, "profile": PublishedProfile, "parameters": parameters, "figures": list})
		}
		return printPublished(cmd.OutOrStdout(), chip.Title, list)
	case f.calibrate != "":
		return f.runCalibrate(cmd, chip, name, named)
	}
	s, from, to, err := f.subject(cmd, name, chip)
	if err != nil {
		return err
	}
	r, err := s.Report(from, to)
	if err != nil {
		return err
	}
	if f.asJSON {
		return jsonout.Write(cmd.OutOrStdout(), r)
	}
	return r.print(cmd.OutOrStdout())
}

// refuse refuses flags that contradict each other, and those that would do nothing.
func (f *flags) refuse(cmd *cobra.Command, named bool) error {
	for flag, value := range map[string]string{"calibrate": f.calibrate, "out": f.out, "target": f.target} {
		if value == "" && cmd.Flags().Changed(flag) {
			return usage.Errorf("--%s is empty: give its value, or leave it out", flag)
		}
	}
	if f.published && (named || f.calibrate != "") {
		return usage.Errorf("--published takes neither a model nor --calibrate")
	}
	if f.out != "" && f.calibrate == "" {
		return usage.Errorf("--out is for --calibrate")
	}
	for _, pair := range [][2]string{{"dense", "neurons"}, {"full-head", "head-rows"}} {
		if cmd.Flags().Changed(pair[0]) && cmd.Flags().Changed(pair[1]) {
			return usage.Errorf("--%s and --%s contradict each other: give one of them", pair[0], pair[1])
		}
	}
	if f.published || f.calibrate != "" && !named {
		for _, flag := range []string{"set", "profile", "positions", "neurons", "head-rows", "full-head", "dense"} {
			if cmd.Flags().Changed(flag) {
				return usage.Errorf("--%s is for the estimate of a model: with --published, or --calibrate without a model, it does nothing", flag)
			}
		}
	}
	return nil
}

// share is the value of a flag that was given; nil: it was not.
func share(cmd *cobra.Command, flag string, value *float64) *float64 {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return value
}

// subject finds the model, and the positions that are asked for.
func (f *flags) subject(cmd *cobra.Command, name string, chip *targets.Target) (s *Subject, from, to int, err error) {
	p := chip.Profile(f.profile)
	if p == nil {
		return nil, 0, 0, usage.Errorf("--profile %q: target %s has %s", f.profile, chip.Name, strings.Join(chip.ProfileNames(), ", "))
	}
	if s, err = Find(cmd.Context(), f.root, name, f.sets, chip, p); err != nil {
		return nil, 0, 0, err
	}
	fmt.Fprint(cmd.ErrOrStderr(), s.Taken)
	if err := s.Assume(share(cmd, "neurons", &f.neurons), share(cmd, "head-rows", &f.rows)); err != nil {
		return nil, 0, 0, err
	}
	s.FullHead = s.FullHead || f.fullHead
	s.Dense = s.Dense || f.dense
	if from, to, err = positionsOf(f.positions, s.Config); err != nil {
		return nil, 0, 0, usage.Errorf("--%w", err)
	}
	return s, from, to, nil
}

func (f *flags) runCalibrate(cmd *cobra.Command, chip *targets.Target, name string, named bool) error {
	b, err := ReadBenchmark(f.calibrate)
	if err != nil {
		return err
	}
	made, notes, err := b.Calibrate(chip)
	if err != nil {
		return fmt.Errorf("%s: %w", f.calibrate, err)
	}
	for _, n := range notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
	}
	var text bytes.Buffer
	if err := writeTarget(&text, "calibrated target", made, b.Firmware); err != nil {
		return err
	}
	if f.out != "" {
		if err := writeNew(f.out, text.Bytes()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: use it with --target %s\n", f.out, f.out)
	}
	switch {
	case named:
		s, _, _, err := f.subject(cmd, name, made)
		if err != nil {
			return err
		}
		list, err := s.against(b)
		if err != nil {
			return err
		}
		if f.asJSON {
			return jsonout.Write(cmd.OutOrStdout(), map[string]any{"target": made, "tokens": list})
		}
		return printTokens(cmd.OutOrStdout(), list)
	case f.asJSON:
		return jsonout.Write(cmd.OutOrStdout(), map[string]any{"target": made})
	case f.out == "":
		_, err := cmd.OutOrStdout().Write(text.Bytes())
		return err
	}
	return nil
}

// writeNew writes a file whole or not at all, and replaces none.
func writeNew(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write target: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write target: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil { // fails where the name is taken
		return fmt.Errorf("write target: %w: remove that file, or choose another name with --out", err)
	}
	return nil
}

// token is what a board took for a token, beside the estimate.
type token struct {
	Position int     `json:"position"`
	Measured float64 `json:"measured_ms"`
	Model    float64 `json:"model_ms"`
}

// against estimates the tokens that a board measured.
func (s *Subject) against(b *Benchmark) ([]token, error) {
	var out []token
	for _, t := range b.Token {
		if t.Position >= s.Config.ContextLength {
			return nil, fmt.Errorf("%w: token at position %d, but the context of %s has %d: the board ran another model", ErrBenchmark, t.Position, s.Config.Name, s.Config.ContextLength)
		}
		l, err := s.plan(t.Position, t.Position)
		if err != nil {
			return nil, err
		}
		out = append(out, token{t.Position, t.Us / 1e3, l.Cost.MeanMs})
	}
	return out, nil
}

func printTokens(w io.Writer, list []token) error {
	var b strings.Builder
	fmt.Fprintln(&b, "position  measured ms  model ms  difference")
	for _, t := range list {
		fmt.Fprintf(&b, "%8d  %11.3f  %8.3f  %+8.1f %%\n", t.Position, t.Measured, t.Model, 100*(t.Model/t.Measured-1))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
