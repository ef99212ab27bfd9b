package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
)

// FixedAgreement is the share of positions at which a search with a fixed number of clusters must find what the full head
// finds, to be compared with the search that always does.
const FixedAgreement = 0.995

// HeadReport says what ways of reading the output layer find and read on held-out stories.
type HeadReport struct {
	Model     string   `json:"model"`
	Path      string   `json:"path"`
	Clusters  int      `json:"clusters"`
	Stories   *Stories `json:"stories"`
	Positions int64    `json:"positions"`
	RowBytes  int64    `json:"row_bytes"`   // of a row of the head, codes and scales
	HeadBytes int64    `json:"head_bytes"`  // that the full head reads for a token
	Token     int64    `json:"token_bytes"` // that a token reads of all weights, with the full head and every neuron
	Ways      []Way    `json:"ways"`
	Costs     []Cost   `json:"costs"` // of certainty
	Seconds   float64  `json:"seconds"`
}

// Way is one way of reading the head.
type Way struct {
	Name      string  `json:"name"`      // full, certified, fixed, or margin
	Best      int     `json:"best"`      // how many tokens are searched for
	Clusters  int     `json:"clusters"`  // looked into at most; 0: no limit
	Margin    float64 `json:"margin"`    // of the bounds
	Agreement float64 `json:"agreement"` // share of positions at which all of them are the full head's, ids and logits to the bit
	Rows      float64 `json:"rows"`      // read in full, per token
	Bytes     float64 `json:"bytes"`     // per token: rows, and what decides on them
}

// Cost is what certainty costs beside a fixed number of clusters that finds the same at FixedAgreement of positions.
type Cost struct {
	Best         int     `json:"best"`
	Bytes        float64 `json:"bytes"`          // per token
	ShareOfToken float64 `json:"share_of_token"` // of the bytes of a token
}

// headMeter runs a subject's engine over windows in different ways.
type headMeter struct {
	s       *subject
	windows [][]int32
	workers int
	full    [][][]engine.TokenLogit // of each window and position, the best tokens of the full head
	report  *HeadReport
	step    func(done int64)
	done    int64
}

// measureHead measures the head of a clustered image on the first whole stories that hold at least that many positions.
func measureHead(ctx context.Context, s *subject, corpus data.Corpus, tokens int64, best, workers int, step func(done int64)) (*HeadReport, error) {
	start := time.Now()
	model := s.image.Model()
	best = min(best, model.VocabSize)
	r := &HeadReport{Model: s.name, Path: s.path, Clusters: model.Clusters, Token: s.config.Budget().Total.TokenRead}
	m := &headMeter{s: s, workers: workers, report: r, step: step}
	if err := m.cut(ctx, corpus, tokens); err != nil {
		return nil, err
	}
	r.RowBytes = m.rowBytes()
	r.HeadBytes = r.RowBytes * int64(model.VocabSize)

	full, err := m.run(ctx, Way{Name: "full", Best: best, Margin: 1}, engine.Search{Full: true})
	if err != nil {
		return nil, err
	}
	r.Ways = append(r.Ways, full)
	for _, k := range slices.Compact([]int{1, best}) {
		certain, err := m.run(ctx, Way{Name: "certified", Best: k, Margin: 1}, s.image.Certified())
		if err != nil {
			return nil, err
		}
		if certain.Agreement < 1 {
			return nil, fmt.Errorf("%s: the certified search misses some of the best %d tokens (agreement %v): the bounds in the image are wrong; export it again",
				s.path, k, certain.Agreement)
		}
		fixed, err := m.fixed(ctx, k)
		if err != nil {
			return nil, err
		}
		r.Ways = append(r.Ways, certain, fixed)
		for _, margin := range []float64{0.8, 0.65, 0.5} {
			w, err := m.run(ctx, Way{Name: "margin", Best: k, Margin: margin}, engine.Search{Margin: float32(margin)})
			if err != nil {
				return nil, err
			}
			r.Ways = append(r.Ways, w)
		}
		more := certain.Bytes - fixed.Bytes
		r.Costs = append(r.Costs, Cost{Best: k, Bytes: more, ShareOfToken: more / float64(r.Token)})
	}
	r.Seconds = math.Round(time.Since(start).Seconds()*1000) / 1000
	return r, nil
}

// cut takes windows from the stories.
func (m *headMeter) cut(ctx context.Context, corpus data.Corpus, tokens int64) error {
	stories := newStories(corpus)
	var ids []int32
	err := corpus.Stories(ctx, func(story []byte) error {
		if m.report.Positions >= tokens {
			return data.ErrStop
		}
		stories.add(story)
		var err error
		if ids, err = windows.Encode(m.s.tokenizer, ids[:0], story); err != nil {
			return fmt.Errorf("story %d of %s %w", stories.Count, stories.Path, err)
		}
		return windows.Cut(ids, m.s.tokenizer.EOT(), m.s.config.ContextLength, func(inputs, _ []int32) error {
			m.windows = append(m.windows, slices.Clone(inputs))
			m.report.Positions += int64(len(inputs))
			return nil
		})
	})
	if err != nil {
		return err
	}
	if m.report.Positions == 0 {
		return fmt.Errorf("%s holds no story", stories.Path)
	}
	stories.done()
	m.report.Stories = stories
	m.full = make([][][]engine.TokenLogit, len(m.windows))
	return nil
}

// rowBytes is the size of a row of the head.
func (m *headMeter) rowBytes() int64 {
	var of engine.Tensor
	for _, t := range m.s.image.Tensors() {
		if t.Name == "head" || t.Name == "token_embedding" && of.Name == "" {
			of = t
		}
	}
	return int64(of.CodesBytes+of.ScaleBytes) / int64(of.Rows)
}

// fixed finds the least number of clusters, all bounds being as they are, with which a search finds what the full head
// finds at FixedAgreement of the positions.
func (m *headMeter) fixed(ctx context.Context, best int) (Way, error) {
	try := func(n int) (Way, error) {
		return m.run(ctx, Way{Name: "fixed", Best: best, Clusters: n, Margin: 1}, engine.Search{Clusters: n, Margin: 1})
	}
	low, high := 1, m.report.Clusters // too few may be low-1; high is enough
	found, err := try(high)
	for err == nil && low < high {
		n := (low + high) / 2
		var w Way
		if w, err = try(n); w.Agreement >= FixedAgreement {
			found, high = w, n
		} else {
			low = n + 1
		}
	}
	return found, err
}

// run goes over all windows in one way. The first run must be full: the others are compared with it.
func (m *headMeter) run(ctx context.Context, way Way, search engine.Search) (Way, error) {
	var agree int64
	var reads engine.Reads
	err := share(ctx, len(m.windows), m.workers, func() (*worker, error) {
		e, err := engine.New(m.s.image, engine.Options{Batch: 1})
		if err != nil {
			return nil, err
		}
		var found int64
		return &worker{
			do: func(i int) error {
				n, err := m.window(e, i, way, search)
				found += n
				return err
			},
			tell: func(i int) {
				agree += found
				found = 0
				m.done += int64(len(m.windows[i]))
				m.step(m.done)
			},
			end: func() error {
				r, err := e.Reads()
				if err == nil {
					reads.Add(r)
				}
				return errors.Join(err, e.Close())
			},
		}, nil
	})
	if err != nil {
		return way, err
	}
	n := float64(m.report.Positions)
	way.Agreement = float64(agree) / n
	way.Rows = float64(reads.SearchedRows) / n
	bytes := reads.SearchedRows * m.report.RowBytes
	for i, t := range m.s.image.Tensors() {
		if image.OfClusters(t.Name) {
			bytes += reads.Tensors[i]
		}
	}
	way.Bytes = float64(bytes) / n
	return way, nil
}

// window runs one window and says at how many of its positions the best tokens are those of the full head.
func (m *headMeter) window(e *engine.Engine, at int, way Way, search engine.Search) (agree int64, err error) {
	e.Reset()
	ids := m.windows[at]
	first := m.full[at] == nil
	if first {
		m.full[at] = make([][]engine.TokenLogit, len(ids))
	}
	for i, id := range ids {
		best, err := e.ForwardBest([]int32{id}, search, way.Best)
		if err != nil {
			return 0, err
		}
		if first {
			m.full[at][i] = best
		}
		if slices.Equal(best, m.full[at][i][:way.Best]) {
			agree++
		}
	}
	return agree, nil
}
