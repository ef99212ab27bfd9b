package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
)

// decoder is chiplm's engine with one model.
type decoder struct {
	config *configs.Config
	engine *engine.Engine
	first  int32 // the token it starts from
	logits []float32
	id     []int32 // the token to feed: one
}

// newDecoder makes an engine for single tokens. It takes the image over.
func newDecoder(c *configs.Config, im *engine.Image, first int32) (*decoder, error) {
	defer im.Close() // the engine keeps it in memory
	e, err := engine.New(im, engine.Options{Batch: 1})
	if err != nil {
		return nil, err
	}
	return &decoder{config: c, engine: e, first: first, logits: make([]float32, c.VocabSize), id: make([]int32, 1)}, nil
}

func (d *decoder) close() { d.engine.Close() }

// next feeds one token and gives the likeliest one after it.
func (d *decoder) next(id int32) (int32, error) {
	d.id[0] = id
	if err := d.engine.ForwardLast(d.id, d.logits); err != nil {
		return 0, err
	}
	return engine.ArgMax(d.logits)
}

// run writes the likeliest token at every position and gives the seconds for those after the first.
func (d *decoder) run() (seconds float64, err error) {
	d.engine.Reset()
	id, err := d.next(d.first)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	for range d.config.ContextLength - 1 {
		if id, err = d.next(id); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds(), nil
}

// agreement feeds the start token and then ids, and counts at how many positions the likeliest next token is the one of
// ids.
func (d *decoder) agreement(ids []int32) (int, error) {
	d.engine.Reset()
	same, fed := 0, d.first
	for _, want := range ids {
		got, err := d.next(fed)
		if err != nil {
			return 0, err
		}
		if got == want {
			same++
		}
		fed = want
	}
	return same, nil
}

// randomDecoder is the engine with weights packed for the given model file.
func randomDecoder(ctx context.Context, c *configs.Config, weights map[string][]float32) (*decoder, error) {
	tok, err := bpe.Train(ctx, func(func([]byte) error) error { return nil }, bpe.MinSize)
	if err != nil {
		return nil, err
	}
	im, err := pack(ctx, &checkpoints.Checkpoint{Config: c, Tokenizer: tok.JSON(), Tensors: weights})
	if err != nil {
		return nil, fmt.Errorf("shape %s: %w", c.Name, err)
	}
	return newDecoder(c, im, startID)
}

// pack makes the image of a checkpoint.
func pack(ctx context.Context, ck *checkpoints.Checkpoint) (*engine.Image, error) {
	built, err := export.BuildImage(ctx, ck, export.Options{})
	if err != nil {
		return nil, err
	}
	return engine.NewImage(built.Bytes)
}

// openModel is the engine with a user's model: an image, a folder that export wrote, a checkpoint or a run. What a person
// should know about it goes to notes.
func openModel(ctx context.Context, name string, notes io.Writer) (*decoder, error) {
	path, err := checkpoints.Resolve(checkpoints.DefaultRoot, name)
	if err != nil {
		return nil, err
	}
	if image := filepath.Join(path, export.ImageFile); isFile(image) {
		path = image
	}
	var im *engine.Image
	if isFile(path) {
		im, err = engine.OpenImage(path)
	} else {
		var ck *checkpoints.Checkpoint
		if ck, err = checkpoints.LoadModel(path); err != nil {
			return nil, err
		}
		for _, note := range ck.Notes {
			fmt.Fprintf(notes, "note: %s\n", note)
		}
		im, err = pack(ctx, ck)
	}
	if err != nil {
		return nil, err
	}
	c, err := configs.Parse(path, im.Config())
	if err != nil {
		im.Close()
		return nil, err
	}
	return newDecoder(c, im, im.Golden().IDs[0]) // the golden starts as every sequence does
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
