package eval

import (
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
)

// Command is `chiplm eval`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Score models on held-out stories",
	}
	cmd.AddCommand(bpbCommand(), headCommand())
	return cmd
}

func bpbCommand() *cobra.Command {
	var (
		storiesPath, runs, reference string
		models                       []string
		n, workers                   int
		count, asJSON                bool
	)
	cmd := &cobra.Command{
		Use:   "bpb [MODEL...]",
		Short: "Bits per byte of models on held-out stories, as the chip will compute it",
		Long: `Scores each MODEL on the same held-out stories: the C engine runs the model's own 4-bit weights
with its own tokenizer, which is what the chip computes, bit for bit. Bits per byte count the raw
bytes of the stories, so models with different tokenizers compare.

MODEL is a run (its newest checkpoint), a checkpoint, an image, or a folder that export wrote, by
path, or a run or a released model by its name; without one, the newest checkpoint of all runs is
scored. The stories are the held-out text recorded when the model was trained, or those of
--stories, which images and released models need.

The columns: read/token is what the chip reads of the weights for one token, scales included, when
it reads every neuron; text B/token how many bytes of text a token stands for; bits/byte charges the
stories' tokens, "with end" also the end-of-text that closes a story. --reference trainer asks the
training graph: in float (nothing quantised), and fake-quantised in its exact mode, which computes
what the engine does.

--count feeds the stories one token at a time, as a model decodes, which takes several times as long
and gives the same scores, and tells what was really read: without silent neurons, and with the keys
and values. See chiplm sample --help.`,
		Example: `  chiplm eval bpb
  chiplm eval bpb combo --stories tinystories-valid.txt --n 1000
  chiplm eval bpb combo --reference trainer --json
  chiplm eval bpb combo --count --n 100`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if reference != "" && reference != "trainer" {
				return usage.Errorf("--reference %q is unknown; the one reference is trainer", reference)
			}
			if n < 0 || workers < 1 {
				return usage.Errorf("--n must be 0 (all) or more and --workers 1 or more, not %d and %d", n, workers)
			}
			if slices.Contains(args, "") || slices.Contains(models, "") {
				return usage.Errorf("MODEL is empty: name it, or leave the argument out for the newest")
			}
			args = append(args, models...)
			if len(args) == 0 {
				args = []string{""}
			}
			var subjects []*subject
			defer func() {
				for _, s := range subjects {
					if e := s.close(); err == nil {
						err = e
					}
				}
			}()
			for _, path := range args {
				s, err := openSubject(cmd.Context(), path, runs, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				subjects = append(subjects, s)
			}
			corpus, err := heldOut(storiesPath, subjects)
			if err != nil {
				return err
			}
			stories, err := ReadStories(cmd.Context(), corpus, n)
			if err != nil {
				return err
			}
			report := Report{Stories: stories}
			show := func(stage string) (func(int), func()) {
				bar := progress.NewBytes(cmd.ErrOrStderr(), stage)
				var done int64
				return func(bytes int) {
					done += int64(bytes)
					bar.Update(done, stories.Bytes)
				}, bar.Done
			}
			for _, s := range subjects {
				row, err := scoreSubject(cmd.Context(), s, stories, workers, reference == "trainer", count, show)
				if err != nil {
					return err
				}
				report.Models = append(report.Models, row)
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), report)
			}
			return report.write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&models, "model", nil, "another `MODEL`")
	f.StringVar(&storiesPath, "stories", "", "held-out stories (default: those recorded in the checkpoint)")
	f.IntVar(&n, "n", 5000, "score the first `N` stories; 0 scores all")
	f.StringVar(&reference, "reference", "", "also score with the training graph in float and in exact mode: trainer")
	f.IntVar(&workers, "workers", runtime.NumCPU(), "stories scored at the same time; the result is the same for any number")
	f.BoolVar(&count, "count", false, "feed one token at a time, and tell what was read")
	f.StringVar(&runs, "runs", "checkpoints/runs", "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
