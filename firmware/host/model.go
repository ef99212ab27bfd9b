package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/scratch"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// ErrOtherModel is wrapped when an image is not the one on the board.
var ErrOtherModel = errors.New("the board has another model")

// modelHelp is what a flag may name that takes a model, see [openModel].
const modelHelp = "an image, an export folder, a run, a checkpoint or a released model"

// addRuns adds the flag --runs.
func addRuns(c *cobra.Command, into *string) {
	c.Flags().StringVar(into, "runs", checkpoints.DefaultRoot, "folder of the runs")
}

// openModel opens what a user names: an image, that of an export folder, or of a model of which one can be made.
func openModel(ctx context.Context, runs, name string, notes io.Writer) (*engine.Image, error) {
	if path, ok := imageFile(name); ok {
		return engine.OpenImage(path)
	}
	from, err := export.OpenSource(ctx, runs, name, notes)
	if err != nil {
		return nil, err
	}
	from.TellCheckpoint(name, notes)
	if from.Released != nil {
		return engine.NewImage(from.Released.Image)
	}
	b, err := from.Build(ctx, export.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return engine.NewImage(b.Bytes)
}

// chipImage is the path of an image for the chip, of what a user names as for [openModel]. What is made is in a folder of its own
// until remove is called.
func chipImage(ctx context.Context, runs, name string, notes io.Writer) (path string, remove func() error, err error) {
	if path, ok := imageFile(name); ok {
		im, err := engine.OpenImage(path)
		if err != nil {
			return "", nil, err
		}
		return path, func() error { return nil }, im.Close()
	}
	from, err := export.OpenSource(ctx, runs, name, notes)
	if err != nil {
		return "", nil, err
	}
	from.TellCheckpoint(name, notes)
	target, err := targets.Load(virtualTarget)
	if err != nil {
		return "", nil, err
	}
	made := Patience(notes, fmt.Sprintf("making the image of %s for the chip, as chiplm export does", from.Name))
	b, err := from.Build(ctx, cost.Options(target))
	made()
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, n := range b.Notes {
		fmt.Fprintf(notes, "note: %s: %s\n", from.Name, n)
	}
	dir, remove, err := scratch.Folder("board")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, export.ImageFile)
	if err := regular.WriteFile(path, b.Bytes); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return path, remove, nil
}

// virtualTarget is the chip that a virtual board stands for.
const virtualTarget = "esp32s3"

// imageFile is the image itself where a name is that of one, or of an export's folder; false where it is of a model, or of nothing.
func imageFile(name string) (string, bool) {
	if released.IsFolder(name) {
		return "", false
	}
	path := export.ImageAt(name)
	info, err := os.Stat(path)
	return path, err == nil && !info.IsDir() && checkpoints.Kind(path) == ""
}

// boardModel is what a board says of its model.
type boardModel struct {
	Model     string `json:"model_sha256"`
	Tokenizer string `json:"tokenizer_sha256"`
	Context   int    `json:"context_length"`
}

// modelOf asks a board for its model. It is nil where the board has none, which its next answer says.
func modelOf(ctx context.Context, c *line.Client) (*boardModel, error) {
	answer, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	var info struct {
		Model *boardModel `json:"model"`
	}
	if err := json.Unmarshal(answer, &info); err != nil {
		return nil, fmt.Errorf("%w: the answer to I: %w", line.ErrAnswer, err)
	}
	return info.Model, nil
}

// sameModel checks that an image is of the model, and has the tokenizer, that a board has.
func sameModel(ctx context.Context, c *line.Client, im *engine.Image, path string) error {
	m, err := modelOf(ctx, c)
	if err != nil || m == nil {
		return err
	}
	own := im.Model()
	for _, x := range []struct {
		what, there string
		here        [32]byte
	}{{"model", m.Model, own.ModelSHA256}, {"tokenizer", m.Tokenizer, own.TokenizerSHA256}} {
		if here := fmt.Sprintf("%x", x.here); here != x.there {
			return fmt.Errorf("%w than %s: its %s has the hash %s, that of the image %s; name the image that was flashed with --model, or flash this one with chiplm flash",
				ErrOtherModel, path, x.what, x.there, here)
		}
	}
	return nil
}

// withinContext checks that a run of so many tokens has room in a context.
func withinContext(tokens, context int) error {
	if tokens > context {
		return usage.Errorf("--tokens %d: the context of this model has %d", tokens, context)
	}
	return nil
}

// encode gives the ids of a text as a board would find them: end-of-text, then those of the text.
func encode(im *engine.Image, text string) ([]int32, error) {
	tok, err := bpe.FromImage(im.Tokenizer())
	if err != nil {
		return nil, err
	}
	return tok.Encode([]int32{tok.EOT()}, []byte(text)), nil
}

// Digest is the digest of n tokens, the likeliest each after end-of-text, as the request D of the protocol defines it.
func Digest(im *engine.Image, n int) (engine.Digest, error) {
	if err := withinContext(n, im.Model().ContextLength); err != nil {
		return 0, err
	}
	e, err := engine.New(im, engine.Options{Batch: 1})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	d, id := engine.NewDigest(), im.EndOfText()
	logits := make([]float32, im.Model().VocabSize)
	for p := range n {
		if err := e.ForwardLast([]int32{id}, logits); err != nil {
			return 0, err
		}
		d = d.Add(p, id, logits)
		if id, err = engine.ArgMax(logits); err != nil {
			return 0, err
		}
	}
	return d, nil
}
