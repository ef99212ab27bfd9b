package bench

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval"
)

// DecodeCommand is `chiplm bench decode`.
func DecodeCommand() *cobra.Command {
	var (
		o             Options
		stories, runs string
		asJSON        bool
	)
	cmd := &cobra.Command{
		Use:   "decode [MODEL]",
		Short: "Measure how fast a model writes and reads, and the bytes of each token",
		Long: `Measures one sequence in the C engine on this machine: writing, a token at a time with a choice
after each, and reading a prompt, 1 to 32 known tokens at a time. A batch reads each row of the
weights once for all its tokens. Behind a relu gate, batches of up to 8 read only those neurons that
one of their tokens needs, of which there are the more the larger the batch; the table has that, and
every neuron read for comparison. Larger batches read every neuron.

The text is what decides how many neurons are silent: stories that the model writes itself, or with
--stories those of a file. Bytes are counted by the engine, and are the same on every machine.
Speeds are the median of three rounds in which all figures take turns.

MODEL is a run, a checkpoint, an image, a folder that export wrote, or a released model; without
one, the newest checkpoint of all runs. The environment variable CHIPLM_SIMD chooses the
instruction set.`,
		Example: `  chiplm bench decode
  chiplm bench decode combo --stories tinystories-valid.txt --tokens 2000
  chiplm bench decode esp32s3/model.clm --threads 1 --time 2s --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return usage.Errorf("%w", err)
			}
			name, err := usage.Model(cmd.Flags(), args, "MODEL")
			if err != nil {
				return err
			}
			s, err := eval.OpenScript(cmd.Context(), name, runs, stories, o.Tokens, slices.Max(Batches), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.Close()
			bar := progress.NewSteps(cmd.ErrOrStderr(), "bench decode")
			r, err := Decode(cmd.Context(), s, o, bar.Update)
			bar.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	usage.AddModel(f, "MODEL")
	f.IntSliceVar(&o.Threads, "threads", []int{1}, "numbers of threads that share a sequence; on a busy machine more than one waits for cores")
	f.IntVar(&o.Tokens, "tokens", 800, "read about `N` tokens of text in each round")
	f.DurationVar(&o.Time, "time", 600*time.Millisecond, "measure each figure for at least so long")
	f.StringVar(&stories, "stories", "", "a `file` of stories to read (default: those that the model writes)")
	f.StringVar(&runs, "runs", checkpoints.DefaultRoot, "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
