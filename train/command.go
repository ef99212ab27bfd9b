package train

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
)

// newestRun is what --resume without a name stands for.
const newestRun = "newest"

// Command is `chiplm train`. With trainable, released models may be teachers.
func Command(trainable Trainable) *cobra.Command {
	o := Options{Released: trainable}
	var asJSON, quiet bool
	var resume string
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model on a text, with 4-bit quantisation in the loop",
		Long: `Train a model on a text, as a model file (YAML) says.

--config combo.yaml is the file of that name in this folder, or else the copy built in; --config
builtin:combo.yaml is always the latter. A table of what the model costs comes first, and a model
that needs more memory than there is is refused. Then training writes a run folder: checkpoints
(step-...), metrics.jsonl (a line a step), and at the end loss.png. On a terminal there is a
progress bar, elsewhere lines of key=value.

The held-out text is --valid, else the file beside the corpus (...-valid beside ...-train), else
every fiftieth story, which is then not trained on. The tokenizer is trained on the corpus unless
--tokenizer gives one, or there is a teacher, whose tokenizer it then is.

The result does not depend on --workers, and not on being interrupted: Ctrl-C saves, and --resume
goes on to the same bytes as a run never stopped, also after a crash or a kill. On resume, what is
not given is as the run was started; a changed setting, corpus or tokenizer is refused unless
--force is given. CHIPLM_SIMD names the instruction set of the loops: see bench train --help. The
bytes are the same on all of them, on x86-64 and arm64. (Only products by the BLAS library are
not: with CHIPLM_SIMD=library, and on macOS unless that is set to neon or plain.)

With --set train.distill=0.5 and --teacher NAME, a run learns half from the text and half from what
another model, of any size but with the same tokens, says of it. NAME is a run, a checkpoint, or a
released model (chiplm models). Losses stay those of the text.

Time: combo.yaml on real text takes about 4 to 10 minutes on two cores, demo.yaml less than one.
chiplm bench train measures this machine.

Tokens are kept between runs in the user's cache folder, ~/.cache/chiplm as a rule, or in the folder
that the environment variable CHIPLM_CACHE names: about 2 bytes a token of the corpus. Deleting them
costs nothing but the time to make them again.

The loss that is printed is smoothed: a running mean over about the last ten steps, over fewer among
the first hundred. metrics.jsonl has each step's own, and so has --json that of the last one.

"bpb" of a training step is its loss in bits per byte at the corpus's mean bytes per token,
end-of-text counted; of a validation it is the bits per byte of whole stories, each cut into
windows of context_length, the closing end-of-text not charged.`,
		Example: `  chiplm train --config combo.yaml --corpus tinystories-train.txt
  chiplm train --config demo.yaml --set train.lr=0.003 --name demo-3e-3
  chiplm train --corpus mine.txt --teacher released/combo --set train.distill=0.5
  chiplm train --resume combo
  chiplm train --resume`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.Flags().Changed("resume") && resume == newestRun {
				return nil // --resume NAME: the flag's value is optional, so pflag takes NAME for an argument
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Resume = cmd.Flags().Changed("resume"); o.Resume {
				switch {
				case len(args) == 1:
					o.Run = args[0]
				case resume != newestRun:
					o.Run = resume
				}
			}
			sum, err := Run(cmd.Context(), o, cmd.ErrOrStderr(), quiet)
			if err != nil {
				return err
			}
			if asJSON {
				return unwritten(jsonout.Write(cmd.OutOrStdout(), sum))
			}
			return printSummary(cmd.OutOrStdout(), sum)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Config, "config", "", "model `file`, or the name of a built-in one (default "+DefaultConfig+")")
	f.StringArrayVar(&o.Sets, "set", nil, "override a `key=value` of the model file, such as train.lr=0.003; may be repeated")
	f.StringVar(&o.Corpus, "corpus", "", "text `file` to train on, or builtin[:seed[:stories]] (default "+DefaultCorpus+")")
	f.StringVar(&o.Valid, "valid", "", "text `file` held out for validation")
	f.StringVar(&o.Tokenizer, "tokenizer", "", "tokenizer.json `file` (default: the teacher's, or one that is trained on the corpus)")
	f.StringVar(&o.Teacher, "teacher", "", "run or released `model` to learn from, with train.distill above 0")
	f.StringVar(&o.Out, "out", checkpoints.DefaultRoot, "`folder` of runs")
	f.StringVar(&o.Name, "name", "", "`name` of the run (default: the model's name)")
	f.IntVar(&o.Workers, "workers", 0, "workers that run micro-batches at the same time (default: one a processor)")
	f.StringVar(&resume, "resume", "", "go on with a `run`, by name or folder; without one, with the newest")
	f.Lookup("resume").NoOptDefVal = newestRun
	f.BoolVar(&o.Force, "force", false, "resume though settings, corpus or tokenizer changed")
	f.BoolVar(&asJSON, "json", false, "print one JSON object about the finished run on standard output")
	f.BoolVar(&quiet, "quiet", false, "no notes and no progress")
	complete := cobra.FixedCompletions(configs.Builtin(), cobra.ShellCompDirectiveDefault) // files as well
	if err := cmd.RegisterFlagCompletionFunc("config", complete); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// printSummary tells how a run ended.
func printSummary(w io.Writer, s *Summary) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "run:        %s, %s tokens in %d steps", s.Run, digits.Comma(s.Tokens), s.Step)
	if s.TokensPerSecond > 0 {
		fmt.Fprintf(&b, ", %s tokens/s", digits.Comma(int64(s.TokensPerSecond)))
	}
	fmt.Fprintln(&b)
	if s.ValidBPB != nil {
		fmt.Fprintf(&b, "held out:   %.4f bits per byte, %.4f nats per token, by the training graph\n", *s.ValidBPB, *s.ValidLoss)
		scope := fmt.Sprintf("on the first %s stories (%s tokens) alone; `chiplm eval bpb` scores all",
			digits.Comma(int64(s.ValidStories)), digits.Comma(s.ValidTokens))
		if s.ValidAll {
			scope = fmt.Sprintf("on all %s stories (%s tokens); `chiplm eval bpb` scores them", digits.Comma(int64(s.ValidStories)),
				digits.Comma(s.ValidTokens))
		}
		fmt.Fprintf(&b, "            %s with the engine\n", scope)
	}
	s.Time.print(&b)
	fmt.Fprintf(&b, "checkpoint: %s\nloss curve: %s\n", s.Checkpoint, s.LossCurve)
	_, err := w.Write(b.Bytes())
	return unwritten(err)
}

// unwritten says of a failure to print the result that the run itself is safe.
func unwritten(err error) error {
	if err != nil {
		return fmt.Errorf("the run is done and saved, but the result cannot be written: %w", err)
	}
	return nil
}
