package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
)

// Validator scores held-out stories. Each story is cut into windows of the context length without overlap, each
// starting from end-of-text; every token is scored once. The closing end-of-text is not charged.
//
// Windows are as long as what they score. They stand one after another in micro-batches, with hardly a gap: the nats of
// a token do not depend on where its window stands ([arch.Graph.RunSequences]).
type Validator struct {
	batch, context int
	windows        []window
	batches        []packed
	Stories        int
	Tokens         int64 // scored
	Bytes          int64 // of the stories, before tokenising
	All            bool  // these are all the stories that there are

	graphs []Graph
	float  bool
}

// window is a stretch of a story.
type window struct {
	ids, targets []int32
	nats         float64 // of the targets, in the last run
}

// packed is a micro-batch of windows: what a graph runs at a time.
type packed struct {
	ids, targets []int32 // Batch*Seq; behind the windows it is filled up with what is not scored
	lengths      []int   // of the windows, then of the filling
	windows      []*window
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
	v.batches = pack(v.windows, batch*context)
	for i := range v.batches {
		v.batches[i].fill(batch*context, context, enc.EOT())
	}
	return v, nil
}

// add takes the windows of a story, without its closing end-of-text.
func (v *Validator) add(story []int32, eot int32) error {
	left := len(story)
	return windows.Cut(story, eot, v.context, func(inputs, targets []int32) error {
		n := min(len(targets), left)
		if n == 0 {
			return nil // nothing but the closing end-of-text
		}
		left -= n
		v.windows = append(v.windows, window{ids: slices.Clone(inputs[:n]), targets: slices.Clone(targets[:n])})
		return nil
	})
}

// pack puts windows into few micro-batches of at most size tokens.
func pack(all []window, size int) []packed {
	lengths := make([]int, len(all))
	for i, w := range all {
		lengths[i] = len(w.ids)
	}
	var batches []packed
	for _, group := range windows.Pack(lengths, size) {
		var b packed
		for _, i := range group {
			b.add(&all[i])
		}
		batches = append(batches, b)
	}
	return batches
}

func (b *packed) add(w *window) {
	b.ids, b.targets = append(b.ids, w.ids...), append(b.targets, w.targets...)
	b.lengths = append(b.lengths, len(w.ids))
	b.windows = append(b.windows, w)
}

// fill brings the micro-batch to its size with sequences of end-of-text.
func (b *packed) fill(size, context int, eot int32) {
	for len(b.ids) < size {
		n := min(context, size-len(b.ids))
		b.lengths = append(b.lengths, n)
		for range n {
			b.ids, b.targets = append(b.ids, eot), append(b.targets, -1)
		}
	}
}

// Score is the outcome of a validation.
type Score struct {
	Loss float64 // nats per token
	BPB  float64 // bits per byte
}

// Run scores the stories with the weights of now, on the given number of workers. Sums run in the order of the
// windows, so that the number of workers does not change them.
func (v *Validator) Run(ctx context.Context, build Builder, workers int, float bool) (Score, error) {
	if float != v.float {
		v.Close()
		v.float = float
	}
	workers = min(workers, len(v.batches))
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
			v.graphs[w].HoldWeights(false)
			for errs[w] == nil {
				b := int(next.Add(1) - 1)
				if b >= len(v.batches) {
					return
				}
				if errs[w] = ctx.Err(); errs[w] == nil {
					errs[w] = v.batches[b].score(v.graphs[w])
				}
				v.graphs[w].HoldWeights(true)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return Score{}, err
	}
	sum := 0.0
	for i := range v.windows {
		sum += v.windows[i].nats
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return Score{}, fmt.Errorf("the loss of the held-out stories is %v; the first tensor that is %w: %s",
			sum, errNotFinite, v.graphs[0].FirstNonFinite())
	}
	return Score{Loss: sum / float64(v.Tokens), BPB: sum / math.Ln2 / float64(v.Bytes)}, nil
}

// score runs the micro-batch and leaves the nats in its windows.
func (b *packed) score(g Graph) error {
	if _, err := g.RunSequences(b.ids, b.targets, b.lengths); err != nil {
		return err
	}
	nll := g.NLL()
	for _, w := range b.windows {
		w.nats = 0
		for _, n := range nll[:len(w.ids)] {
			w.nats += float64(n)
		}
		nll = nll[len(w.ids):]
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
