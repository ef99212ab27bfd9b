package eval

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
)

// Scored is what a checkpoint is worth on held-out stories, for those who compare many.
type Scored struct {
	Row
	ByGraph bool // no image can hold the model: its score is that of the training graph, which computes as it was trained

	// Of a model with a ReLU gate, from some of the stories, fed one token at a time.
	WeightsPerToken float64 // bytes of weights and scales that were read, silent neurons left out; 0: not counted
	Live            float64 // share of neurons that were not 0 once quantised
}

// ScoreCheckpoint scores a checkpoint, or the newest of a run, as `chiplm eval bpb` does, and counts what is read on the
// first stories, as many as counted says. The scores do not depend on workers.
func ScoreCheckpoint(ctx context.Context, path string, stories *Stories, workers, counted int) (*Scored, error) {
	ck, err := checkpoints.LoadModel(path)
	if err != nil {
		return nil, err
	}
	if export.Exportable(ck.Config) != nil {
		return scoreByGraph(ctx, ck, stories, workers)
	}
	s, err := openCheckpoint(ctx, ck.Dir, io.Discard, export.Options{})
	if err != nil {
		return nil, err
	}
	silent := func(string) (func(int), func()) { return func(int) {}, func() {} }
	row, err := scoreSubject(ctx, s, stories, workers, false, false, silent)
	out := &Scored{Row: row}
	if err == nil && counted > 0 && s.config.Activation == configs.ReLU {
		err = out.count(ctx, s, stories.first(counted), workers, silent)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, err
	}
	return out, nil
}

// count fills in what is read.
func (o *Scored) count(ctx context.Context, s *subject, some *Stories, workers int,
	show func(string) (func(int), func())) error {

	row, err := scoreSubject(ctx, s, some, workers, false, true, show)
	if err != nil {
		return err
	}
	c := row.Count
	for _, r := range c.Rows {
		if r.Kind != kindRotary && r.Kind != kindCache {
			o.WeightsPerToken += r.PerToken
		}
	}
	for _, l := range c.Layers {
		o.Live += (1 - l.Unused) / float64(len(c.Layers))
	}
	return nil
}

// scoreByGraph scores a model that has no image.
func scoreByGraph(ctx context.Context, ck *checkpoints.Checkpoint, stories *Stories, workers int) (*Scored, error) {
	tok, err := bpe.Parse(ck.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("tokenizer of %s: %w", ck.Dir, err)
	}
	w, err := arch.WeightsOf(ck.Config, ck.Tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Dir, err)
	}
	c := ck.Config
	score, err := scoreStories(ctx, stories, tok, c.ContextLength, workers,
		func() (scorer, error) { return newGraphScorer(c, w, arch.Options{}) }, func(int) {})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Dir, err)
	}
	return &Scored{ByGraph: true, Row: Row{Model: c.Name, Path: ck.Dir, Parameters: c.Parameters(),
		BytesReadPerToken: c.Budget().Total.TokenRead, TextBytesPerToken: float64(stories.Bytes) / float64(score.Tokens),
		Score: score, TokenizerSHA256: tok.Hash(), ConfigSHA256: c.Hash(), ModelSHA256: ck.ModelSHA256}}, nil
}
