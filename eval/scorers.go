package eval

import (
	"errors"
	"fmt"
	"sync"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/placement"
)

// scoreBatch is the number of positions fed to the engine at a time: enough that every weight row is unpacked once for
// many tokens, few enough that their logits stay in the cache.
const scoreBatch = 32

// engineScorer scores with the C engine.
type engineScorer struct {
	engine *engine.Engine
	vocab  int
	logits []float32
}

func newEngineScorer(im *engine.Image, vocab int) (scorer, error) {
	e, err := engine.New(im, engine.Options{Batch: scoreBatch})
	if err != nil {
		return nil, err
	}
	return &engineScorer{engine: e, vocab: vocab, logits: make([]float32, scoreBatch*vocab)}, nil
}

func (s *engineScorer) score(inputs, targets []int32, nats []float64) error {
	s.engine.Reset()
	for start := 0; start < len(inputs); start += scoreBatch {
		end := min(start+scoreBatch, len(inputs))
		logits := s.logits[:(end-start)*s.vocab]
		if err := s.engine.Forward(inputs[start:end], logits); err != nil {
			return err
		}
		for i := start; i < end; i++ {
			var err error
			if nats[i], err = engine.NLL(logits[(i-start)*s.vocab:(i-start+1)*s.vocab], targets[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *engineScorer) close() error { return s.engine.Close() }

// countingScorer scores with the C engine one token at a time, as a model decodes, and adds what it read to a sum.
type countingScorer struct {
	*meter
	logits []float32
	sum    *readSum
}

// readSum is what several scorers read.
type readSum struct {
	sync.Mutex
	reads engine.Reads
	run   placement.Conditions
}

func newCountingScorer(s *subject, sum *readSum) (scorer, error) {
	m, err := newMeter(s.image, s.config, engine.Options{Batch: 1})
	if err != nil {
		return nil, err
	}
	return &countingScorer{meter: m, logits: make([]float32, s.config.VocabSize), sum: sum}, nil
}

func (s *countingScorer) score(inputs, targets []int32, nats []float64) error {
	s.Reset()
	for i := range inputs {
		if err := s.ForwardLast(inputs[i:i+1], s.logits); err != nil {
			return err
		}
		var err error
		if nats[i], err = engine.NLL(s.logits, targets[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *countingScorer) close() error {
	reads, err := s.Reads()
	if err == nil {
		s.sum.Lock()
		s.sum.reads.Add(reads)
		s.sum.run.Add(s.conditions())
		s.sum.Unlock()
	}
	return errors.Join(err, s.Close())
}

// graphScorer scores with the training graph, one window of full context length at a time.
type graphScorer struct {
	graph        *arch.Graph
	ids, targets []int32
}

func newGraphScorer(cfg *configs.Config, w *arch.Weights, opt arch.Options) (scorer, error) {
	opt.Batch, opt.Seq = 1, cfg.ContextLength
	g, err := arch.Build(cfg, w, opt)
	if err != nil {
		return nil, err
	}
	return &graphScorer{graph: g, ids: make([]int32, opt.Seq), targets: make([]int32, opt.Seq)}, nil
}

func (s *graphScorer) score(inputs, targets []int32, nats []float64) error {
	n := copy(s.ids, inputs)
	clear(s.ids[n:])
	copy(s.targets, targets)
	for i := n; i < len(s.targets); i++ {
		s.targets[i] = -1 // padding: not scored
	}
	if _, err := s.graph.Run(s.ids, s.targets); err != nil {
		return fmt.Errorf("the training graph: %w", err)
	}
	nll := s.graph.NLL()
	if len(nll) < n {
		return errors.New("the training graph gave fewer scores than positions")
	}
	for i := range n {
		nats[i] = float64(nll[i])
	}
	return nil
}

func (s *graphScorer) close() error { return s.graph.Close() }
