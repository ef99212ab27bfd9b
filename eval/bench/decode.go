package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/eval"
)

// Batches are the numbers of known tokens that are fed together.
var Batches = []int{1, 2, 4, 8, 16, 32}

// Options is what a person asks of `chiplm bench decode`.
type Options struct {
	Threads []int         // numbers of threads, each measured
	Tokens  int           // of text, about: a round feeds all of it
	Time    time.Duration // of each figure, at least; and at least a round
}

// rounds of measurement, in which all figures take turns.
const rounds = 3

// task is something that is measured.
type task struct {
	row     *Row
	threads int
	engine  *engine.Engine
	logits  []float32
	rng     engine.RNG
	search  engine.Search
}

// Decode measures. tell is called after each figure of each round.
func Decode(ctx context.Context, s *eval.Script, o Options, tell func(done, all int64)) (*Report, error) {
	r := newReport(s, o)
	var tasks []*task
	defer func() {
		for _, t := range tasks {
			t.engine.Close()
		}
	}()
	for i := range r.Rows {
		for _, threads := range o.Threads {
			e, err := engine.New(s.Image, engine.Options{Batch: r.Rows[i].Batch, Threads: threads, Dense: r.Rows[i].Dense})
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, &task{row: &r.Rows[i], threads: threads, engine: e, logits: make([]float32, s.Image.Model().VocabSize),
				search: s.Image.Certified()})
		}
	}
	done := int64(0)
	for round := range rounds {
		for _, t := range tasks {
			if round == 0 { // not measured: memory and caches warm up, and the bytes are counted
				if err := t.count(s, r); err != nil {
					return nil, err
				}
			}
			if err := t.measure(ctx, s, o.Time/rounds); err != nil {
				return nil, err
			}
			done++
			tell(done, rounds*int64(len(tasks)))
		}
	}
	return r, nil
}

// count reads the whole text once and keeps the engine's count.
func (t *task) count(s *eval.Script, r *Report) error {
	for _, w := range s.Windows {
		if err := t.window(w); err != nil {
			return err
		}
	}
	reads, err := t.engine.Reads()
	if err != nil {
		return err
	}
	t.row.setReads(reads, s.Image.Model())
	r.setSilent(reads, s.Image.Model())
	return nil
}

// measure reads the whole text again and again for a time, and keeps the speed.
func (t *task) measure(ctx context.Context, s *eval.Script, most time.Duration) error {
	tokens, start := 0, time.Now()
	for tokens == 0 || time.Since(start) < most {
		for _, w := range s.Windows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := t.window(w); err != nil {
				return err
			}
			tokens += len(w)
		}
	}
	i := slices.IndexFunc(t.row.Speeds, func(s Speed) bool { return s.Threads == t.threads })
	t.row.Speeds[i].add(float64(tokens) / time.Since(start).Seconds())
	return nil
}

// window feeds a window as the row says: decoding token by token with a choice after each, or as a prompt.
func (t *task) window(ids []int32) error {
	t.engine.Reset()
	if t.row.Name == Prompt {
		return t.engine.ForwardLast(ids, t.logits)
	}
	for i := range ids {
		if t.search.Full {
			if err := t.engine.ForwardLast(ids[i:i+1], t.logits); err != nil {
				return err
			}
			if _, err := engine.Sample(t.logits, temperature, topK, &t.rng); err != nil {
				return err
			}
			continue
		}
		best, err := t.engine.ForwardBest(ids[i:i+1], t.search, topK)
		if err != nil {
			return err
		}
		if _, err := engine.Draw(best, temperature, &t.rng); err != nil {
			return err
		}
	}
	return nil
}

// How a token is chosen: the defaults of chiplm sample.
const (
	temperature = 0.7
	topK        = 40
)

// check refuses options that make no sense.
func (o *Options) check() error {
	for i, n := range o.Threads {
		if n < 1 || n > engine.MaxThreads || slices.Contains(o.Threads[:i], n) {
			return fmt.Errorf("--threads %d: give different numbers from 1 to %d", n, engine.MaxThreads)
		}
	}
	if len(o.Threads) == 0 || o.Tokens < 1 || o.Time <= 0 {
		return fmt.Errorf("--threads needs a number, --tokens one of 1 or more, --time one above 0")
	}
	return nil
}
