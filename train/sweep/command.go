package sweep

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/targets"
)

// noTarget asks for no prediction of speed.
const noTarget = "none"

// Command is `chiplm sweep`.
func Command() *cobra.Command {
	var o Options
	var dry, asJSON, quiet bool
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Train and score many models that are to be compared",
		Long: `Train and score the arms of a study, each with several seeds, and write one line a run into a file
of results, which chiplm compare renders. FILE is YAML:

  name: study                      # of the sweep's folder; default: the file's name
  corpus: tinystories-train.txt    # --corpus overrides; paths are relative to this file
  valid: tinystories-valid.txt     # may be left out, as in train
  stories: 5000                    # held-out stories that are scored; 0: all
  seeds: [1, 2]                    # of every arm
  config: combo.yaml               # the model file of arms that name none
  set: {train.tokens: 1000000}     # for all arms: keys of the model file, as train --set takes them
  baseline: combo                  # the arm that the others are compared with; default: the first
  arms:
    combo: {}
    plain: {config: plain.yaml, set: {d_ff: 384}}
    pupil: {teacher: plain, set: {train.distill: 0.5}}     # of each seed: see train --teacher

Everything is kept in the folder NAME of --out: results.jsonl, the runs, as train makes them, and
a tokenizer for each size of vocabulary. A sweep that was stopped, by Ctrl-C, kill -9 or a power
cut, goes on with the same command: runs that are done are not repeated, half-trained ones resumed.
Arms and seeds may be added to FILE later. An arm whose settings have changed under its name is
refused, and so are other held-out stories: their scores would not compare.

As many runs are trained at a time as there are workers, one worker each, or fewer if the memory
does not hold them. The results do not depend on it. A run that diverges is written down with its
reason and does not stop the others; the status is then 1. Of a scored run, the last checkpoint is
kept, without what only training needs. docs/sweep.md tells more.`,
		Example: `  chiplm sweep study.yaml --dry-run
  chiplm sweep study.yaml --corpus tinystories-train.txt
  chiplm sweep study.yaml --retry
  chiplm compare checkpoints/sweeps/study/results.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"corpus", "valid", "out", "target"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return usage.Errorf("--%s is empty: give its value, or leave it out", name)
				}
			}
			if o.Target == noTarget {
				o.Target = ""
			}
			study, err := Load(args[0])
			if err != nil {
				return err
			}
			if dry {
				return dryRun(cmd.Context(), study, o, cmd.OutOrStdout(), asJSON)
			}
			show := display(silent{})
			if !quiet {
				show = newDisplay(cmd.ErrOrStderr())
			}
			out, err := Run(cmd.Context(), study, o, show)
			if out == nil {
				return err
			}
			if asJSON {
				if writeErr := jsonout.Write(cmd.OutOrStdout(), out); err == nil {
					err = writeErr
				}
				return err
			}
			out.print(cmd.OutOrStdout())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Corpus, "corpus", "", "text `file` to train on, or builtin[:seed[:stories]] (default: the file's)")
	f.StringVar(&o.Valid, "valid", "", "text `file` held out (default: the file's, else what belongs to the corpus)")
	f.StringVar(&o.Out, "out", DefaultOut, "`folder` of sweeps")
	f.StringVar(&o.Target, "target", "esp32s3", "chip whose speed is predicted: "+strings.Join(targets.Builtin(), ", ")+", a YAML file, or "+noTarget)
	f.IntVar(&o.Workers, "workers", 0, "workers in all (default: one a processor)")
	f.BoolVar(&o.Retry, "retry", false, "try runs that diverged again")
	f.BoolVar(&dry, "dry-run", false, "only list the runs: what they cost, and what is done")
	f.BoolVar(&asJSON, "json", false, "print one JSON object on standard output")
	f.BoolVar(&quiet, "quiet", false, "no progress")
	return cmd
}

// print tells where the results are.
func (o *Outcome) print(w io.Writer) {
	total := fmt.Sprintf("%d of %d runs are done", o.Done, len(o.Runs))
	if o.Failed > 0 {
		total += fmt.Sprintf(", %d diverged", o.Failed)
	}
	if o.Broken > 0 {
		total += fmt.Sprintf(", %d came to no end, by an error or for want of a teacher", o.Broken)
	}
	fmt.Fprintln(w, total)
	if o.Done > 0 {
		baseline := ""
		if o.Baseline != "" { // the lines, which compare reads, name another
			baseline = " --baseline " + usage.ShellWord(o.Baseline)
		}
		fmt.Fprintf(w, "results: %s\ncompare: chiplm compare %s%s\n", o.Results, usage.ShellWord(o.Results), baseline)
	}
}

// dryRun lists what a sweep would do.
func dryRun(ctx context.Context, study *Study, o Options, w io.Writer, asJSON bool) error {
	s, err := open(ctx, study, o)
	if err != nil {
		return err
	}
	out := &Outcome{Name: study.Name, Folder: s.dir, Results: s.results}
	speeds := map[string]float64{} // by arm
	for _, j := range s.jobs {
		status := j.status()
		if _, known := speeds[status.Arm]; s.chip != nil && !known {
			if speeds[status.Arm], err = predictUntrained(j, s.chip); err != nil {
				return fmt.Errorf("%s: predicting the speed: %w", j.name, err)
			}
		}
		status.TokensPerSec = speeds[status.Arm]
		switch status.State {
		case done:
			out.Done++
		case failed:
			out.Failed++
		case broken:
			out.Broken++
		}
		out.Runs = append(out.Runs, status)
	}
	if asJSON {
		return jsonout.Write(w, out)
	}
	return out.list(w, s)
}

// list prints the runs.
func (o *Outcome) list(w io.Writer, s *sweep) error {
	var b strings.Builder
	held := s.heldOutOf()
	fmt.Fprintf(&b, "sweep    %s: %s, %s; baseline %s\n", o.Name, count(len(s.study.Arms), "arm"), count(len(s.study.Seeds), "seed"), s.study.Baseline)
	fmt.Fprintf(&b, "corpus   %s\n", s.corpus.Info().Path)
	fmt.Fprintf(&b, "scored   on %s stories of %s, %s bytes, sha256 %.12s\n", digits.Comma(held.Stories), held.Name, digits.Comma(held.Bytes), held.SHA256)
	if few := s.fewStories(); few != "" {
		fmt.Fprintf(&b, "note: %s\n", few)
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	speed := "no target"
	if s.chip != nil {
		speed = s.chip.Name + " tok/s"
	}
	fmt.Fprintf(t, "arm\tseed\tparameters\tweights\t%s\ttokens\t   state\n", speed)
	for i, r := range o.Runs {
		speed := "-"
		if r.TokensPerSec > 0 {
			speed = fmt.Sprintf("%.1f", r.TokensPerSec)
		}
		fmt.Fprintf(t, "%.24s\t%d\t%s\t%.1f kB\t%s\t%s\t   %s\n", r.Arm, r.Seed, digits.Comma(r.Parameters), float64(r.BytesPerToken)/1e3, speed,
			digits.Comma(int64(r.Steps)*s.jobs[i].plan.TokensPerStep), state(r))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\nWeights: bytes of weights and scales for a token, with every neuron read.\n")
	if s.chip != nil {
		b.WriteString("Speeds are predicted, where a share of silent neurons is assumed and not read; the results have\nthem as measured. -: none.\n")
	}
	fmt.Fprintf(&b, "%d of %d runs are done; results: %s\n", o.Done, len(o.Runs), o.Results)
	_, err := io.WriteString(w, b.String())
	return err
}

// count tells how many there are of something.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// state is where a run stands, in a few words.
func state(s Status) string {
	switch s.State {
	case done:
		return fmt.Sprintf("done, %.4f", s.BitsPerByte)
	case half:
		return fmt.Sprintf("%d %%", 100*s.Step/max(s.Steps, 1))
	}
	return string(s.State)
}
