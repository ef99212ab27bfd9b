package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
)

// Validator scores held-out stories. Each story is cut into windows of the context length without overlap, each
// starting from end-of-text; every token is scored once. The closing end-of-text is not charged.
type Validator struct {
	batch, context int
	ids, targets   []int32 // whole micro-batches of windows
	Stories        int
	Tokens         int64 // scored
	Bytes          int64 // of the stories, before tokenising
	All            bool  // these are all the stories that there are

	graphs []Graph
	float  bool
	nats   []float64 // of each window
}

// NewValidator takes stories from the start of a corpus until they have the wanted number of tokens.
func NewValidator(ctx context.Context, c data.Corpus, enc Encoder, batch, context int, tokens int64) (*Validator, error) {
	v := &Validator{batch: batch, context: context, All: true}
	var story []int32
	err := c.Stories(ctx, func(text []byte) error {
		if v.Stories > 0 && v.Tokens >= tokens {
			v.All = false
			return data.ErrStop
		}
		var err error
		if story, err = windows.Encode(enc, story[:0], text); err != nil {
			return fmt.Errorf("held-out story %d %w", v.Stories, err)
		}
		if err := v.add(story, enc.EOT()); err != nil {
			return err
		}
		v.Stories++
		v.Tokens += int64(len(story))
		v.Bytes += int64(len(text))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("held-out stories: %w", err)
	}
	if v.Tokens == 0 {
		return nil, errors.New("held-out stories: there is no token to score: give another file with --valid")
	}
	v.nats = make([]float64, len(v.ids)/context)
	for len(v.ids)%(batch*context) != 0 { // the last micro-batch is filled with windows that are not scored
		v.ids = append(v.ids, enc.EOT())
		v.targets = append(v.targets, -1)
	}
	return v, nil
}

// add takes the windows of a story, without its closing end-of-text, and fills each up to the context.
func (v *Validator) add(story []int32, eot int32) error {
	left := len(story)
	return windows.Cut(story, eot, v.context, func(inputs, targets []int32) error {
		n := min(len(targets), left)
		if n == 0 {
			return nil // nothing but the closing end-of-text
		}
		left -= n
		v.ids = append(v.ids, inputs[:n]...)
		v.targets = append(v.targets, targets[:n]...)
		for range v.context - n {
			v.ids = append(v.ids, eot)
			v.targets = append(v.targets, -1)
		}
		return nil
	})
}

// Score is the outcome of a validation.
type Score struct {
	Loss float64 // nats per token
	BPB  float64 // bits per byte
}

// Run scores the stories with the weights of now, on the given number of workers. Sums run in the order of the
// windows, so that the number of workers does not change them.
func (v *Validator) Run(ctx context.Context, build Builder, workers int, float bool) (Score, error) {
	batches := len(v.ids) / (v.batch * v.context)
	if float != v.float {
		v.Close()
		v.float = float
	}
	workers = min(workers, batches)
	for len(v.graphs) < workers {
		g, err := buildGraph(ctx, build, arch.Options{Batch: v.batch, Seq: v.context, Float: float})
		if err != nil {
			return Score{}, fmt.Errorf("build the validation graph: %w", err)
		}
		v.graphs = append(v.graphs, g)
	}
	var next atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				b := int(next.Add(1) - 1)
				if b >= batches {
					return
				}
				if errs[w] = ctx.Err(); errs[w] == nil {
					errs[w] = v.score(v.graphs[w], b)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return Score{}, err
	}
	sum := 0.0
	for _, n := range v.nats {
		sum += n
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return Score{}, fmt.Errorf("the loss of the held-out stories is %v; the first tensor that is %w: %s",
			sum, errNotFinite, v.graphs[0].FirstNonFinite())
	}
	return Score{Loss: sum / float64(v.Tokens), BPB: sum / math.Ln2 / float64(v.Bytes)}, nil
}

// score runs micro-batch b.
func (v *Validator) score(g Graph, b int) error {
	size := v.batch * v.context
	targets := v.targets[b*size : (b+1)*size]
	if _, err := g.Run(v.ids[b*size:(b+1)*size], targets); err != nil {
		return err
	}
	nll := g.NLL()
	for w := range v.batch {
		window := b*v.batch + w
		if window >= len(v.nats) {
			break
		}
		sum := 0.0
		for i := w * v.context; i < (w+1)*v.context; i++ {
			if targets[i] >= 0 {
				sum += float64(nll[i])
			}
		}
		v.nats[window] = sum
	}
	return nil
}

// Close gives the graphs up; the next Run builds new ones.
func (v *Validator) Close() {
	for _, g := range v.graphs {
		_ = g.Close() // it only gives memory back
	}
	v.graphs = nil
}
