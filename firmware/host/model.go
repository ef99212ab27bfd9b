package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
)

// openModel opens an image: a file, or that of an export folder.
func openModel(path string) (*engine.Image, error) {
	return engine.OpenImage(imagePath(path))
}

// encode gives the ids of a text as a board would find them: end-of-text, then those of the text.
func encode(im *engine.Image, text string) ([]int32, error) {
	tok, err := bpe.FromImage(im.Tokenizer())
	if err != nil {
		return nil, err
	}
	return tok.Encode([]int32{tok.EOT()}, []byte(text)), nil
}

// hostDigest is the digest of n tokens, the likeliest each after end-of-text, as the request D of the protocol defines it.
func hostDigest(im *engine.Image, n int) (engine.Digest, error) {
	if most := im.Model().ContextLength; n > most {
		return 0, fmt.Errorf("%d tokens, and the context of this model has %d", n, most)
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
