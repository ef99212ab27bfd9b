package eval

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
)

// ReleaseOptions say how a trained run becomes a released model.
type ReleaseOptions struct {
	Name     string // "": the configuration's
	Folder   string // where it is written; "": [released.DefaultRoot]/NAME
	Stories  string // held-out text to score on; "": that of the run
	N        int    // score the first so many stories; 0: all
	Workers  int    // stories scored at the same time
	Licence  string // of the training text
	Source   string // where the training text is from; may be empty
	Prompt   string // of the sample
	Progress func(stage string) (step func(done, total int64), end func())
}

// The recorded sample is drawn as `chiplm sample` draws by default.
const (
	sampleTemperature = 0.7
	sampleTopK        = 40
	sampleSeed        = 1
)

// release scores a checkpoint, lets it write, and writes it as a released model. It gives the folder. The same checkpoint
// and options give the same bytes.
func release(ctx context.Context, ck *checkpoints.Checkpoint, opt ReleaseOptions, notes io.Writer) (*released.Model, string, error) {
	f := released.Facts{Name: opt.Name}
	if f.Name == "" {
		f.Name = ck.Config.Name
	}
	// The model carries its name in its configuration, which does not change what was trained.
	config, named := *ck.Config, *ck
	config.Name = f.Name
	named.Config = &config
	ck = &named
	built, err := export.BuildImage(ctx, ck, export.Options{})
	if err != nil {
		return nil, "", fmt.Errorf("packing %s: %w", ck.Dir, err)
	}
	for _, n := range built.Notes {
		fmt.Fprintf(notes, "note: %s\n", n)
	}
	im, err := engine.NewImage(built.Bytes)
	if err != nil {
		return nil, "", fmt.Errorf("the image of %s: %w", ck.Dir, err)
	}
	if all := ck.Config.Train.Steps(); ck.State.Step < all {
		fmt.Fprintf(notes, "note: %s is at step %s of %s, not trained to its end; the card says so\n", ck.Dir, digits.Comma(int64(ck.State.Step)), digits.Comma(int64(all)))
	}
	s := &subject{name: ck.Config.Name, path: ck.Dir, config: ck.Config, tokenizer: built.Tokenizer, image: im, checkpoint: ck}
	defer s.close()
	if f.Text, err = trainingText(ctx, s, opt); err != nil {
		return nil, "", err
	}
	if f.Score, err = releaseScore(ctx, s, opt); err != nil {
		return nil, "", err
	}
	if f.Sample, err = releaseSample(ctx, s, opt.Prompt); err != nil {
		return nil, "", err
	}
	dir := opt.Folder
	if dir == "" {
		dir = released.DefaultRoot + "/" + f.Name
	}
	m, err := export.Release(ctx, dir, ck, built, f)
	return m, dir, err
}

// trainingText describes the text of a run, which must be there as it was.
func trainingText(ctx context.Context, s *subject, opt ReleaseOptions) (released.Text, error) {
	state := &s.checkpoint.State
	corpus, err := data.OpenContext(ctx, state.Corpus)
	if err != nil {
		return released.Text{}, fmt.Errorf("the training text recorded in %s: %w", s.path, err)
	}
	info := corpus.Info()
	if info.SHA256 != state.CorpusHash {
		return released.Text{}, fmt.Errorf("%s has changed since %s was trained (SHA-256 %.12s, then %.12s): put the text back that it was trained on",
			state.Corpus, s.path, info.SHA256, state.CorpusHash)
	}
	shard, err := shards.Build(ctx, corpus, s.tokenizer, "", nil)
	if err != nil {
		return released.Text{}, err
	}
	defer shard.Close()
	h := shard.Header()
	t := released.Text{Name: info.Name, SHA256: info.SHA256, Stories: h.Stories, Bytes: h.RawBytes, Tokens: h.Tokens,
		Licence: opt.Licence, Source: opt.Source}
	t.Corpus, t.Valid = filepath.Base(state.Corpus), filepath.Base(state.Valid)
	whole, _ := data.Whole(state.Corpus)
	other, parted := data.Whole(state.Valid)
	switch {
	case state.Valid == "":
		t.Valid = ""
	case parted && whole == other:
		t.Corpus, t.Valid = filepath.Base(whole), "" // as training divides a text by itself
	}
	return t, nil
}

// releaseScore scores a model as `chiplm eval bpb` does.
func releaseScore(ctx context.Context, s *subject, opt ReleaseOptions) (released.Score, error) {
	corpus, err := heldOut(opt.Stories, []*subject{s})
	if err != nil {
		return released.Score{}, err
	}
	stories, err := ReadStories(ctx, corpus, opt.N)
	if err != nil {
		return released.Score{}, err
	}
	row, err := scoreSubject(ctx, s, stories, opt.Workers, false, false, func(stage string) (func(int), func()) {
		step, end := opt.Progress(stage)
		var done int64
		return func(bytes int) {
			done += int64(bytes)
			step(done, stories.Bytes)
		}, end
	})
	if err != nil {
		return released.Score{}, err
	}
	return released.Score{Stories: corpus.Info().Name, SHA256: stories.SHA256, Count: stories.Count, Bytes: stories.Bytes, Tokens: row.Tokens,
		TextBytesPerToken: row.TextBytesPerToken, NatsPerToken: row.NatsPerToken, BitsPerByte: row.BitsPerByte,
		BitsPerByteWithEnd: row.BitsPerByteWithEnd}, nil
}

// releaseSample lets a model write the recorded sample.
func releaseSample(ctx context.Context, s *subject, prompt string) (released.Sample, error) {
	text, err := sample(ctx, s, SampleOptions{Prompt: prompt, Temperature: sampleTemperature, TopK: sampleTopK, Seed: sampleSeed,
		Batch: engine.DefaultBatch}, io.Discard)
	// A model may write bytes that are no text, which neither facts nor card can hold.
	return released.Sample{Prompt: prompt, Temperature: sampleTemperature, TopK: sampleTopK, Seed: sampleSeed,
		Text: strings.ToValidUTF8(text.Text, "\ufffd")}, err
}
