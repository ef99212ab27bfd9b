package eval

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
)

// ReleaseCommand is `chiplm release`.
func ReleaseCommand() *cobra.Command {
	var (
		opt    ReleaseOptions
		runs   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "release [CHECKPOINT]",
		Short: "Make a released model of a trained run: image, tokenizer, model card, hashes",
		Long: `Makes a folder of a trained run that can be kept in the repository and given away: the quantised
image, model file, tokenizer, a model card (README.md), and release.json with all of it for programs
and the SHA-256 of each file. The floats of training and the optimiser's moments stay behind.

CHECKPOINT is a run, its newest checkpoint then, or a checkpoint, by path or by name; without it,
the newest of all runs. The model is scored on its held-out stories as chiplm eval bpb scores, and
writes a sample; both go on the card, with text, tokens, seed and program. The training text must
lie where it lay, since it is counted; its licence must be said. Only a folder that was read back,
and whose image and golden were found to be those of the run, gets its final name. The same
checkpoint gives the same bytes.

A model in the default folder is part of the program once it is built again (make build); see
chiplm models. A released model can be sampled, scored, verified, and exported for any chip.`,
		Example: `  chiplm release combo --text-licence CDLA-Sharing-1.0 \
      --text-source https://huggingface.co/datasets/roneneldan/TinyStories
  chiplm release best-run --name varC --out elsewhere/varC --text-licence CC0-1.0`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return checkpoints.Runs(runs), cobra.ShellCompDirectiveDefault // or a path
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := usage.Name(args, "CHECKPOINT")
			if err != nil {
				return err
			}
			if opt.N < 0 || opt.Workers < 1 {
				return usage.Errorf("--n must be 0 (all) or more and --workers 1 or more, not %d and %d", opt.N, opt.Workers)
			}
			if opt.Licence == "" {
				return usage.Errorf("--text-licence is missing: say under which licence the training text is, such as CDLA-Sharing-1.0; the card names it")
			}
			if opt.Name != "" && !released.ValidName(opt.Name) || opt.Name == "" && cmd.Flags().Changed("name") {
				return usage.Errorf("--name %q: letters, digits, dots, dashes and underlines, at most 64, and a letter or digit first", opt.Name)
			}
			if opt.Folder == "" && cmd.Flags().Changed("out") {
				return usage.Errorf("--out is empty: name a folder, or leave it out")
			}
			path, err := checkpoints.Resolve(runs, name)
			if err != nil {
				return err
			}
			ck, err := checkpoints.LoadModel(path)
			if err != nil {
				return err
			}
			for _, n := range ck.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
			}
			if opt.Name == "" && !released.ValidName(ck.Config.Name) {
				return usage.Errorf("the name of the model, %q, is none of a released model: give another with --name", ck.Config.Name)
			}
			opt.Progress = func(stage string) (func(done, total int64), func()) {
				bar := progress.NewBytes(cmd.ErrOrStderr(), stage)
				return bar.Update, bar.Done
			}
			m, dir, err := release(cmd.Context(), ck, opt, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), struct {
					Out        string         `json:"out"`
					Checkpoint string         `json:"checkpoint"`
					Facts      released.Facts `json:"facts"`
				}{dir, ck.Dir, m.Facts})
			}
			return writeRelease(cmd.OutOrStdout(), dir, ck.Dir, m)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Name, "name", "", "the model's `NAME` (default the one in its model file)")
	f.StringVar(&opt.Folder, "out", "", "output folder (default "+released.DefaultRoot+"/NAME)")
	f.StringVar(&opt.Licence, "text-licence", "", "`LICENCE` of the training text, for the card; must be given")
	f.StringVar(&opt.Source, "text-source", "", "where the training text is from, for the card")
	f.StringVar(&opt.Prompt, "prompt", "Once upon a time", "the start of the sample on the card")
	f.StringVar(&opt.Stories, "stories", "", "held-out stories (default: those recorded in the checkpoint)")
	f.IntVar(&opt.N, "n", 5000, "score the first `N` stories; 0 scores all")
	f.IntVar(&opt.Workers, "workers", runtime.NumCPU(), "stories scored at the same time; the result is the same for any number")
	f.StringVar(&runs, "runs", checkpoints.DefaultRoot, "folder of the runs")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// writeRelease says what was written.
func writeRelease(w io.Writer, dir, from string, m *released.Model) error {
	total := int64(0)
	for _, f := range m.Files {
		total += f.Bytes
	}
	_, err := fmt.Fprintf(w, "%s: the released model %s, of %s\n%s parameters, %.4f bits per byte of %s; %s bytes in %d files\n"+
		"verified: the folder alone gives the image of the run, and its golden in the training graph (digest %s)\n",
		dir, m.Name, from, digits.Comma(m.Parameters), m.Score.BitsPerByte, m.Score.Stories, digits.Comma(total), len(m.Files)+1, m.Digest)
	return err
}
