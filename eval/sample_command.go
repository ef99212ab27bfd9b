package eval

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine"
)

// SampleCommand is `chiplm sample`.
func SampleCommand() *cobra.Command {
	var (
		opt            SampleOptions
		template, runs string
		asJSON         bool
	)
	cmd := &cobra.Command{
		Use:   "sample [MODEL]",
		Short: "Let a model write a story, or fill in a form",
		Long: `Lets the C engine write with a model's quantised weights, word for word as the chip will with the
same seed. MODEL is a run, a checkpoint, an image, a folder that export wrote, or a released model
(chiplm models); without one, the newest checkpoint of all runs writes, and where nothing was
trained yet, a released model. The story ends with end-of-text or with the context.

--template gives a text with holes, {{name}} or {{}}, which the model fills; with @ before it, the
name of a file that holds the text (but for a newline at its end). In a shell, single quotes keep it
whole. A hole ends before the first character of the text behind it, with end-of-text, or after
--hole tokens; a space before it is left to the hole's first token, as words start with theirs. The
text between holes is not drawn token by token: what is known is fed in one block, together with the
last token drawn, and reads the weights once for all of it. Text behind the last hole is not fed at
all.

--count tells what was read, kind of tensor by kind and tier by tier, as the engine counted it
while it ran, beside what the planner of chiplm export predicts for the same passes and the neurons
that spoke in them, which are found from the values of the run and not from the count. Tiers are
those of the image; a checkpoint has everything in the one memory of a host until it is exported.`,
		Example: `  chiplm sample --prompt "Once upon a time, there was a frog"
  chiplm sample --model combo --prompt "Lily and her dog"
  chiplm sample combo --temperature 0 --count
  chiplm sample combo --template 'One day, a {{animal}} named {{name}} saw a big {{thing}}.'
  chiplm sample combo --template '{"name": "{{name}}", "pet": "{{pet}}"}' --json
  chiplm sample esp32s3/model.clm --seed 7 --template @form.txt --hole 8`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opt.Temperature, err = usage.Temperature(opt.Temperature); err != nil {
				return err
			}
			if err := usage.TopK(opt.TopK); err != nil {
				return err
			}
			if opt.Tokens < 0 || opt.Hole < 1 {
				return usage.Errorf("--hole must be 1 or more, and --tokens 0 (no limit) or more")
			}
			if opt.Batch < 1 || opt.Batch > engine.MaxBatch {
				return usage.Errorf("--batch %d is not between 1 and %d", opt.Batch, engine.MaxBatch)
			}
			if cmd.Flags().Changed("template") {
				if opt.Tokens > 0 {
					return usage.Errorf("--tokens limits a story; a template is limited by --hole")
				}
				if opt.Template, err = readTemplate(template); err != nil {
					return err
				}
			} else if cmd.Flags().Changed("hole") {
				return usage.Errorf("--hole is the length of a template's holes; give one with --template")
			}
			name, err := usage.Model(cmd.Flags(), args, "MODEL")
			if err != nil {
				return err
			}
			s, err := openSubject(cmd.Context(), name, runs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			if name == "" && !asJSON && s.checkpoint != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: by the newest checkpoint, %s\n", s.path)
			}
			out := cmd.OutOrStdout()
			if asJSON {
				text, err := sample(cmd.Context(), s, opt, io.Discard)
				if err != nil {
					return err
				}
				return jsonout.Write(out, text)
			}
			text, err := sample(cmd.Context(), s, opt, out)
			if err == nil || text.Started {
				if _, e := io.WriteString(out, "\n"); err == nil {
					err = e
				}
			}
			if err != nil || !opt.Count {
				return err
			}
			return text.writeCount(out)
		},
	}
	f := cmd.Flags()
	usage.AddModel(f, "MODEL")
	f.StringVar(&opt.Prompt, "prompt", "", "the start of the story")
	f.StringVar(&template, "template", "", "fill the holes of this `TEXT` after the prompt; @FILE reads it from a file")
	f.IntVar(&opt.Hole, "hole", 16, "a hole of the template takes at most `N` tokens")
	f.IntVar(&opt.Tokens, "tokens", 0, "write at most `N` tokens; 0: to the end of the story or of the context")
	f.Float64Var(&opt.Temperature, "temperature", 0.7, "0 takes the likeliest token; higher is livelier; steps of 0.001")
	usage.AddTopK(f, &opt.TopK, 40)
	f.Uint64Var(&opt.Seed, "seed", 1, "the same seed writes the same story")
	f.IntVar(&opt.Batch, "batch", engine.DefaultBatch, "feed up to `N` known tokens together; the text is the same for any")
	f.BoolVar(&opt.Count, "count", false, "tell what was read, and what the planner predicts")
	f.StringVar(&runs, "runs", "checkpoints/runs", "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// mostTemplate is the largest file of a template, in bytes: far more than a context holds.
const mostTemplate = 1 << 20

// readTemplate reads the template of a flag: itself, or with @ before it a file.
func readTemplate(flag string) (*Template, error) {
	path, isFile := strings.CutPrefix(flag, "@")
	if !isFile {
		t, err := parseFilled(flag)
		if err != nil {
			return nil, usage.Errorf("--template: %w", err)
		}
		return t, nil
	}
	text, err := regular.ReadFile(path, mostTemplate)
	if err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	t, err := parseFilled(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// parseFilled reads a template that leaves something to the model.
func parseFilled(text string) (*Template, error) {
	t, err := ParseTemplate(text)
	if err == nil && len(t.holes) == 0 {
		return nil, errors.New("there is no hole for the model to fill: write {{name}} in its place, with two braces")
	}
	return t, err
}

// writeCount prints how the text came about, and the bytes it took.
func (t *Text) writeCount(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n%s tokens drawn and %s given; %s bytes read for each of the %s fed\n\n", digits.Comma(t.Tokens), digits.Comma(t.Given),
		perToken(float64(t.Bytes)/float64(max(t.Fed, 1))), digits.Comma(t.Fed)); err != nil {
		return err
	}
	return t.Count.write(w)
}
