package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// ErrOtherModel is wrapped when an image is not the one on the board.
var ErrOtherModel = errors.New("the board has another model")

// openModel opens an image: a file, or that of an export folder.
func openModel(path string) (*engine.Image, error) {
	if err := export.Exported(path); err != nil {
		return nil, err
	}
	return engine.OpenImage(imagePath(path))
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

// imagePath is the path of the image itself.
func imagePath(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, export.ImageFile)
	}
	return path
}
