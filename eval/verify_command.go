package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export"
)

// VerifyCommand is `chiplm verify`.
func VerifyCommand() *cobra.Command {
	var (
		model, image, storiesPath, runs string
		tokens                          int64
		workers                         int
		asJSON                          bool
	)
	cmd := &cobra.Command{
		Use:   "verify [MODEL]",
		Short: "Hold the C engine to the training graph, position by position",
		Long: `Runs held-out stories through the C engine, on the model's 4-bit image, and through the training
graph in its exact mode, on the checkpoint's weights, and compares them at every position: the
loss, the token that each would choose, and the bits of all logits. On the first windows, and on
the first one whose logits differ, it also compares every step on the way, value by value, and
names the first layer and tensor that differ.

MODEL is a run (its newest checkpoint) or a checkpoint, by path or by name; without one, the
newest checkpoint of all runs. Its image is packed on the spot, or is the one that --image names:
the file or folder that export wrote. MODEL may also be a released model, whose graph runs on
weights that quantise to the codes and scales that were released; --stories is then needed. The
stories are the held-out text recorded when the model was trained, or those of --stories; whole
stories are taken until --tokens are reached.

It ends with status 1 when the losses differ by more than 0.001 nats per token, the chosen tokens
agree at less than 99.5 % of the positions, a value of a linear layer differs in a bit, or a
disagreement is no near-tie. A near-tie: in both, the logits of the two tokens are at most 0.01
nats apart, so that their probabilities differ by 1 %.`,
		Example: `  chiplm verify
  chiplm verify combo --stories tinystories-valid.txt
  chiplm verify --model combo --image exports/combo-esp32s3 --tokens 20000 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if tokens < 1 || workers < 1 {
				return usage.Errorf("--tokens and --workers must be 1 or more, not %d and %d", tokens, workers)
			}
			if len(args) == 1 {
				if model != "" && model != args[0] {
					return usage.Errorf("--model %s and %s name two models; verify one at a time", model, args[0])
				}
				model = args[0]
			}
			s, err := openTwins(cmd.Context(), model, image, runs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer func() {
				if e := s.close(); err == nil {
					err = e
				}
			}()
			corpus, err := heldOut(storiesPath, []*subject{s})
			if err != nil {
				return err
			}
			bar := progress.NewTokens(cmd.ErrOrStderr(), "verify")
			v, err := verify(cmd.Context(), s, corpus, tokens, workers, func(done int64) { bar.Update(min(done, tokens), tokens) })
			bar.Done()
			if err != nil {
				return err
			}
			if v.Tokens < tokens {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: the stories have only %s tokens\n", digits.Comma(v.Tokens))
			}
			if asJSON {
				err = jsonout.Write(cmd.OutOrStdout(), v)
			} else {
				err = v.write(cmd.OutOrStdout())
			}
			return errors.Join(err, v.err())
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "", "the run or checkpoint, as MODEL")
	f.StringVar(&image, "image", "", "image or export folder to run in the engine (default: packed from the checkpoint)")
	f.StringVar(&storiesPath, "stories", "", "held-out stories (default: those recorded in the checkpoint)")
	f.Int64Var(&tokens, "tokens", 200_000, "compare whole stories of at least `N` tokens in all")
	f.IntVar(&workers, "workers", runtime.NumCPU(), "windows compared at the same time; the result is the same for any number")
	f.StringVar(&runs, "runs", "checkpoints/runs", "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// openReleasedTwins opens a released model for the engine, and for the training graph weights that quantise to its codes.
func openReleasedTwins(ctx context.Context, m *released.Model) (*subject, error) {
	ck, err := export.Trainable(m)
	if err != nil {
		return nil, err
	}
	s, err := openReleased(ctx, m, export.Options{})
	if err != nil {
		return nil, err
	}
	s.checkpoint, s.imagePath = ck, m.Source
	return s, nil
}

// openTwins opens a checkpoint for the training graph together with an image for the engine: the one named, which must
// have been made from it, or one packed from it.
func openTwins(ctx context.Context, model, image, root string, notes io.Writer) (*subject, error) {
	if image == "" {
		found, err := released.Find(ctx, root, model, notes)
		if err != nil {
			return nil, err
		}
		if found.Model != nil {
			return openReleasedTwins(ctx, found.Model)
		}
		s, err := openSubject(ctx, found.Path, root, notes)
		if err == nil && s.checkpoint == nil {
			err = errors.Join(fmt.Errorf("%s is an image, which holds no weights for the training graph: name the checkpoint or run that it was exported from, and the image with --image",
				s.path), s.close())
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	found, err := released.Find(ctx, root, model, notes)
	if err != nil {
		return nil, err
	}
	var ck *checkpoints.Checkpoint
	if found.Model != nil {
		ck, err = export.Trainable(found.Model)
	} else {
		ck, err = checkpoints.LoadModel(found.Path)
	}
	if err != nil {
		return nil, err
	}
	s, err := openSubject(ctx, image, root, notes)
	if err != nil {
		return nil, err
	}
	made := fmt.Sprintf("%x", s.image.Model().ModelSHA256)
	switch {
	case s.checkpoint != nil:
		err = fmt.Errorf("--image %s is no image: name the model.clm or the folder that export wrote", image)
	case made != ck.ModelSHA256:
		err = fmt.Errorf("%s was not exported from %s: it was made from the weights with SHA-256 %.12s, these have %.12s; export again, or name its own checkpoint",
			s.path, ck.Dir, made, ck.ModelSHA256)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	file, err := os.ReadFile(s.path)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.imagePath, s.imageSHA256 = s.path, hashOf(file)
	s.path, s.name, s.checkpoint = ck.Dir, ck.Config.Name, ck
	return s, nil
}
