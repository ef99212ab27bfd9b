package eval

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

// What engine and training graph may differ by.
const (
	// MaxLossDifference is in nats per token.
	MaxLossDifference = 0.001
	// MinAgreement is the share of positions at which both choose the same token.
	MinAgreement = 0.995
	// NearTie is a gap between the logits of two tokens, in nats, at which it is a toss-up which of them is chosen: the
	// larger probability is at most 1 % above the other.
	NearTie = 0.01
)

// tracedWindows is how many windows, from the first on, are compared step by step.
const tracedWindows = 20

// Verification says how far the C engine and the training graph in its exact mode agree on held-out stories. A position
// predicts a token of a story or the end-of-text that closes it; all of them count alike.
type Verification struct {
	Model   string   `json:"model"`
	Path    string   `json:"path"`
	Image   string   `json:"image"` // the file, or empty: packed from the checkpoint
	Stories *Stories `json:"stories"`
	Windows int      `json:"windows"`
	Tokens  int64    `json:"tokens"` // positions

	EngineNats     float64 `json:"engine_nats_per_token"`
	GraphNats      float64 `json:"graph_nats_per_token"`
	LossDifference float64 `json:"loss_difference_nats"` // per token, absolute

	Agreement     float64        `json:"argmax_agreement"` // share of positions with the same likeliest token
	Disagreements []Disagreement `json:"disagreements"`    // all others
	NearTies      int            `json:"near_ties"`        // among them
	NearTieNats   float64        `json:"near_tie_nats"`    // NearTie

	EqualPositions int64   `json:"equal_positions"` // all logits equal to the bit
	EqualShare     float64 `json:"equal_share"`
	LargestLogit   float64 `json:"largest_logit_difference"`
	EngineDigest   string  `json:"engine_digest"` // FNV-1a-64 over the digests of the windows (docs/numerics.md), hex
	GraphDigest    string  `json:"graph_digest"`

	Steps   Steps    `json:"steps"`
	Targets []Target `json:"targets"`
	Passed  bool     `json:"passed"`

	ModelSHA256     string  `json:"model_sha256"` // of the checkpoint's weights
	ImageSHA256     string  `json:"image_sha256"`
	TokenizerSHA256 string  `json:"tokenizer_sha256"`
	ConfigSHA256    string  `json:"config_sha256"`
	FileSHA256      string  `json:"stories_file_sha256"`
	Seconds         float64 `json:"seconds"`
}

// Place is a position in the stories.
type Place struct {
	Story    int `json:"story"`    // from 1
	Token    int `json:"token"`    // the token of the story that is predicted, from 0; the last is the end-of-text
	Position int `json:"position"` // in its window, from 0
}

// Disagreement is a position at which engine and graph hold different tokens for the likeliest. The gaps are how far
// the logit of the own token is above that of the other's.
type Disagreement struct {
	Place
	Engine    TokenText `json:"engine_token"`
	Graph     TokenText `json:"graph_token"`
	EngineGap float64   `json:"engine_gap"`
	GraphGap  float64   `json:"graph_gap"`
	NearTie   bool      `json:"near_tie"` // neither gap is above NearTie
}

// TokenText is a token and the text it stands for.
type TokenText struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

// tokenTexts gives tokens their text.
type tokenTexts struct{ tokenizer *bpe.Tokenizer }

func (t *tokenTexts) of(id int32) TokenText {
	switch {
	case id == t.tokenizer.EOT():
		return TokenText{id, data.Delimiter}
	case int(id) >= t.tokenizer.Size():
		return TokenText{ID: id} // a model may have more rows than its tokenizer has entries
	}
	return TokenText{id, string(t.tokenizer.Bytes(id))}
}

// Target is something that must hold of a model to pass.
type Target struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	Want  string `json:"want"`
	Met   bool   `json:"met"`
}

// verify compares the engine on the subject's image with the training graph on its checkpoint, on whole stories of at
// least that many positions in all. progress is told how many are done.
func verify(ctx context.Context, s *subject, corpus data.Corpus, tokens int64, workers int, progress func(done int64)) (*Verification, error) {
	start := time.Now()
	weights, err := arch.WeightsOf(s.config, s.checkpoint.Tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	v := &Verification{
		Model: s.name, Path: s.path, Image: s.imagePath, NearTieNats: NearTie, Disagreements: []Disagreement{},
		ModelSHA256: s.checkpoint.ModelSHA256, ImageSHA256: s.imageSHA256, TokenizerSHA256: s.tokenizer.Hash(),
		ConfigSHA256: s.config.Hash(), FileSHA256: corpus.Info().SHA256,
	}
	t := &tally{v: v, progress: progress, engineDigest: fnv.New64a(), graphDigest: fnv.New64a()}
	if err := t.compare(ctx, s, weights, corpus, tokens, workers); err != nil {
		return nil, err
	}
	t.finish()
	if v.Steps, err = compareSteps(ctx, s, weights, t.traced); err != nil {
		return nil, err
	}
	v.judge()
	v.Seconds = math.Round(time.Since(start).Seconds()*1000) / 1000
	return v, nil
}

// tally adds up windows in their order, in whatever order they come, so that sums are the same for any number of
// workers.
type tally struct {
	v                         *Verification
	progress                  func(done int64)
	engineNats, graphNats     float64
	engineDigest, graphDigest hash.Hash64
	traced                    []*stretch // to be compared step by step: the first windows, and the first unequal one

	mu      sync.Mutex
	early   map[int]outcome // by index, waiting for one before them
	unequal bool            // a window with unequal logits was added
	done    int64
}

// compare runs the comparison of logits on some workers.
func (t *tally) compare(ctx context.Context, s *subject, weights *arch.Weights, corpus data.Corpus, tokens int64, workers int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.early = map[int]outcome{}
	groups := make(chan []*stretch)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if err := t.work(ctx, s, weights, groups); err != nil {
				cancel(err)
			}
		})
	}
	room := twinBatch(s.config.VocabSize, s.config.ContextLength) * s.config.ContextLength
	source := &stretches{tokenizer: s.tokenizer, context: s.config.ContextLength, room: room, yield: func(group []*stretch) error {
		select {
		case groups <- group:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
	stories, err := source.read(ctx, corpus, tokens)
	if err != nil {
		cancel(err)
	}
	close(groups)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.v.Stories, t.v.Tokens = stories, source.tokens
	return nil
}

// work is one worker, with an engine and a graph of its own.
func (t *tally) work(ctx context.Context, s *subject, weights *arch.Weights, groups <-chan []*stretch) (err error) {
	var w *twin
	defer func() {
		if w != nil {
			if e := w.close(); err == nil {
				err = e
			}
		}
	}()
	for group := range groups {
		if w == nil { // only a worker that has something to do builds a graph
			if w, err = newTwin(s, weights); err != nil {
				return err
			}
		}
		if err := w.run(group); err != nil {
			return err
		}
		row := 0
		for _, window := range group {
			if err := ctx.Err(); err != nil {
				return err
			}
			o, err := w.compare(window, row)
			if err != nil {
				return err
			}
			t.add(o)
			row += len(window.inputs)
		}
	}
	return nil
}

// add takes the outcome of a window.
func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += int64(len(o.window.inputs))
	t.progress(t.done)
	t.early[o.window.index] = o
	for {
		o, ok := t.early[t.v.Windows]
		if !ok {
			return
		}
		delete(t.early, t.v.Windows)
		t.v.Windows++
		t.sum(o)
	}
}

// sum adds the next window.
func (t *tally) sum(o outcome) {
	v := t.v
	t.engineNats += o.engineNats
	t.graphNats += o.graphNats
	v.EqualPositions += int64(o.equal)
	v.LargestLogit = max(v.LargestLogit, o.largest)
	v.Disagreements = append(v.Disagreements, o.disagreements...)
	_ = binary.Write(t.engineDigest, binary.LittleEndian, uint64(o.engineDigest)) // a hash takes everything
	_ = binary.Write(t.graphDigest, binary.LittleEndian, uint64(o.graphDigest))
	first := o.equal < len(o.window.inputs) && !t.unequal
	t.unequal = t.unequal || first
	if first || o.window.index < tracedWindows {
		t.traced = append(t.traced, o.window)
	}
}

// finish works out means and shares.
func (t *tally) finish() {
	v, n := t.v, float64(t.v.Tokens)
	v.EngineNats, v.GraphNats = t.engineNats/n, t.graphNats/n
	v.LossDifference = math.Abs(v.EngineNats - v.GraphNats)
	v.Agreement = 1 - float64(len(v.Disagreements))/n
	v.EqualShare = float64(v.EqualPositions) / n
	v.EngineDigest = fmt.Sprintf("%016x", t.engineDigest.Sum64())
	v.GraphDigest = fmt.Sprintf("%016x", t.graphDigest.Sum64())
	for _, d := range v.Disagreements {
		if d.NearTie {
			v.NearTies++
		}
	}
}

// judge holds the figures to the targets.
func (v *Verification) judge() {
	clear := len(v.Disagreements) - v.NearTies
	v.Targets = []Target{
		{"loss, nats per token", fmt.Sprintf("differs by %.3g", v.LossDifference), fmt.Sprintf("at most %g", MaxLossDifference),
			v.LossDifference <= MaxLossDifference},
		{"chosen token", percent(v.Agreement) + " the same", "at least " + percent(MinAgreement), v.Agreement >= MinAgreement},
		{"other choices", fmt.Sprintf("%d of %d are no near-ties", clear, len(v.Disagreements)), "none", clear == 0},
		{"linear layers", percent(v.Steps.linearShare()) + " equal to the bit", "all", v.Steps.LinearEqual == v.Steps.LinearValues},
	}
	v.Passed = true
	for _, t := range v.Targets {
		v.Passed = v.Passed && t.Met
	}
}

// err is what was missed, or nil.
func (v *Verification) err() error {
	if v.Passed {
		return nil
	}
	var missed []string
	for _, t := range v.Targets {
		if !t.Met {
			missed = append(missed, fmt.Sprintf("%s: %s (target: %s)", t.Name, t.Found, t.Want))
		}
	}
	return fmt.Errorf("%s: engine and training graph differ: %s", v.Path, strings.Join(missed, "; "))
}
