package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/data"
)

// Row is one model of a report.
type Row struct {
	Model             string     `json:"model"`
	Path              string     `json:"path"`
	Parameters        int        `json:"parameters"`
	ImageBytes        int64      `json:"image_bytes"`
	BytesReadPerToken int64      `json:"bytes_read_per_token"` // weights for one token, scales included, if every neuron is read
	TextBytesPerToken float64    `json:"text_bytes_per_token"`
	Score                        // of the engine on the quantised weights
	TokenizerSHA256   string     `json:"tokenizer_sha256"`
	ConfigSHA256      string     `json:"config_sha256"`
	ModelSHA256       string     `json:"model_sha256,omitempty"` // of the checkpoint's weights
	Reference         *Reference `json:"reference,omitempty"`
	Count             *Count     `json:"count,omitempty"` // one token at a time
	Seconds           float64    `json:"seconds"`
}

// Reference is the training graph's opinion of the same weights on the same stories.
type Reference struct {
	Float          Score   `json:"float"`           // weights and activations not quantised
	FakeQuant      Score   `json:"fake_quant"`      // the exact mode of the training graph
	NatsDifference float64 `json:"nats_difference"` // engine minus fake-quant, per token
}

// Report is a table of models on the same stories.
type Report struct {
	Stories *Stories `json:"stories"`
	Models  []Row    `json:"models"`
}

// heldOut opens the stories to score on: the named file, or the held-out text recorded in the checkpoint, which must
// not have changed since.
func heldOut(path string, subjects []*subject) (data.Corpus, error) {
	if path != "" {
		return data.Open(path)
	}
	var recorded, hash, of string
	for _, s := range subjects {
		if s.checkpoint == nil || s.checkpoint.State.Valid == "" {
			continue // an image does not know its stories, and goes by those of the checkpoints beside it
		}
		state := s.checkpoint.State
		if recorded != "" && (state.Valid != recorded || state.ValidHash != hash) {
			return nil, fmt.Errorf("%s and %s were held to different stories (%s and %s), which do not compare; name one file for both with --stories",
				of, s.path, recorded, state.Valid)
		}
		recorded, hash = state.Valid, state.ValidHash
		of = s.path
	}
	if of == "" {
		return nil, fmt.Errorf("an image (%s) does not know its held-out stories; name a file with --stories, or those of the generator: --stories builtin", subjects[0].path)
	}
	corpus, err := data.Open(recorded)
	if err != nil {
		return nil, fmt.Errorf("the held-out stories recorded in %s: %w", of, err)
	}
	if got := corpus.Info().SHA256; got != hash {
		return nil, fmt.Errorf("%s has changed since %s was trained (SHA-256 %.12s, then %.12s); name the stories with --stories",
			recorded, of, got, hash)
	}
	return corpus, nil
}

// scoreSubject scores one model, and asks the training graph too if reference is set.
func scoreSubject(ctx context.Context, s *subject, stories *Stories, workers int, reference, count bool,
	show func(stage string) (step func(bytes int), done func())) (Row, error) {

	start := time.Now()
	run := func(stage string, newScorer func() (scorer, error)) (Score, error) {
		step, done := show(stage)
		defer done()
		return scoreStories(ctx, stories, s.tokenizer, s.config.ContextLength, workers, newScorer, step)
	}
	row := Row{
		Model:             s.name,
		Path:              s.path,
		Parameters:        s.config.Parameters(),
		ImageBytes:        int64(s.image.Size()),
		BytesReadPerToken: s.config.Budget().Total.TokenRead,
		TokenizerSHA256:   s.tokenizer.Hash(),
		ConfigSHA256:      s.config.Hash(),
	}
	var err error
	var sum readSum
	row.Score, err = run("engine", func() (scorer, error) {
		if count {
			return newCountingScorer(s, &sum)
		}
		return newEngineScorer(s.image, s.config.VocabSize)
	})
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", s.path, err)
	}
	if count {
		row.Count = newCount(s.config, s.image.Tensors(), &sum.reads, sum.run)
	}
	row.TextBytesPerToken = float64(stories.Bytes) / float64(row.Tokens)
	if s.checkpoint != nil {
		row.ModelSHA256 = s.checkpoint.ModelSHA256
	}
	if reference {
		if row.Reference, err = referenceScore(s, run); err != nil {
			return Row{}, fmt.Errorf("%s: %w", s.path, err)
		}
		row.Reference.NatsDifference = row.NatsPerToken - row.Reference.FakeQuant.NatsPerToken
	}
	row.Seconds = math.Round(time.Since(start).Seconds()*1000) / 1000
	return row, nil
}

func referenceScore(s *subject, run func(string, func() (scorer, error)) (Score, error)) (*Reference, error) {
	if s.checkpoint == nil {
		return nil, errors.New("an image holds no training weights; --reference trainer needs a checkpoint")
	}
	w, err := arch.WeightsOf(s.config, s.checkpoint.Tensors)
	if err != nil {
		return nil, err
	}
	ref := &Reference{}
	ref.Float, err = run("trainer, float", func() (scorer, error) {
		return newGraphScorer(s.config, w, arch.Options{Float: true})
	})
	if err != nil {
		return nil, err
	}
	ref.FakeQuant, err = run("trainer, exact", func() (scorer, error) {
		return newGraphScorer(s.config, w, arch.Options{Exact: true})
	})
	return ref, err
}
