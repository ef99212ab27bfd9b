package train

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

// tinyConfig is a model of a few hundred weights, with five micro-batches a step.
func tinyConfig() *configs.Config {
	return &configs.Config{Name: "tiny", VocabSize: 11, DModel: 8, NLayers: 1, NHeads: 2, DFF: 8, ContextLength: 6,
		TieEmbeddings: true, Activation: configs.ReLU, AttentionScale: 1, RopeTheta: 10000, NormEps: 1e-6,
		Quant: configs.Quant{Weights: configs.WeightQuant{Bits: 4, Group: 32, Scale: configs.ScaleF32},
			Activations: configs.ActivationQuant{Bits: 8}},
		Train: configs.Train{Tokens: 600, BatchTokens: 60, MicroBatch: 2, LR: 0.01, Warmup: 0.1, Schedule: "linear",
			Optimizer: "adamw", Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Clip: 1, Seed: 1,
			LRScale: configs.LRScale{Embedding: 1, Head: 1, PLETable: 1, Norm: 1}}}
}

// tinyWeights gives every tensor some values.
func tinyWeights(cfg *configs.Config) [][]float32 {
	var ws [][]float32
	for i, t := range cfg.Tensors() {
		w := make([]float32, t.Len())
		for j := range w {
			w[j] = float32(math.Sin(float64(i*1000 + j)))
		}
		ws = append(ws, w)
	}
	return ws
}

// fakeModel stands in for a model: its loss and gradients depend on the weights and on every id, smoothly.
type fakeModel struct {
	weights [][]float32
	fault   func(ids []int32, g *fakeGraph) // may spoil a run

	mu    sync.Mutex
	built []arch.Options
}

type fakeGraph struct {
	model     *fakeModel
	opt       arch.Options
	loss      float64
	gradients [][]float32
	rows      [][]int32
	nll       []float32
	bad       string
	closed    bool
}

func (m *fakeModel) build(opt arch.Options) (Graph, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.built = append(m.built, opt)
	g := &fakeGraph{model: m, opt: opt, nll: make([]float32, opt.Batch*opt.Seq), rows: make([][]int32, len(m.weights))}
	for _, w := range m.weights {
		g.gradients = append(g.gradients, make([]float32, len(w)))
	}
	return g, nil
}

func (g *fakeGraph) Run(ids, targets []int32) (float64, error) {
	if len(ids) != g.opt.Batch*g.opt.Seq || len(targets) != len(ids) || g.closed {
		return 0, errors.New("misused graph")
	}
	phase := 0.0
	for i, id := range ids {
		phase += float64(id) * math.Sqrt(float64(i+2))
		g.nll[i] = float32(math.Abs(math.Sin(float64(3*id + targets[i]))))
	}
	g.loss = 0
	for i, w := range g.model.weights {
		for j := range w {
			d := float64(w[j]) - math.Sin(phase+float64(j))
			g.loss += d * d
			g.gradients[i][j] = float32(d / 7)
		}
	}
	if g.model.fault != nil {
		g.model.fault(ids, g)
	}
	return g.loss, nil
}

func (g *fakeGraph) RunSequences(ids, targets []int32, lengths []int) (float64, error) {
	sum := 0
	for _, n := range lengths {
		if n < 1 || n > g.opt.Seq {
			return 0, errors.New("a sequence of an impossible length")
		}
		sum += n
	}
	if sum != len(ids) {
		return 0, errors.New("the sequences do not fill the batch")
	}
	return g.Run(ids, targets)
}

func (g *fakeGraph) Teach([]float32) error   { return nil }
func (g *fakeGraph) HoldWeights(bool)        {}
func (g *fakeGraph) AuxLoss() float64        { return 0.5 }
func (g *fakeGraph) Gradients() [][]float32  { return g.gradients }
func (g *fakeGraph) GradientRows() [][]int32 { return g.rows }
func (g *fakeGraph) NLL() []float32          { return g.nll }
func (g *fakeGraph) Logits() []float32       { return nil }
func (g *fakeGraph) FirstNonFinite() string  { return g.bad }
func (g *fakeGraph) Close() error            { g.closed = true; return nil }

// fakeSequences makes the n-th piece out of n. With apart it is three sequences of different lengths.
type fakeSequences struct {
	vocab, context int
	apart          bool
}

// fakeFor are the fake sequences of a configuration.
func fakeFor(cfg *configs.Config) fakeSequences {
	return fakeSequences{cfg.VocabSize, cfg.ContextLength, cfg.Train.StoriesApart}
}

func (f fakeSequences) Batch(n int64, ids, targets []int32, lengths []int) []int {
	for at := 0; at < len(ids); at += f.context {
		for i := range f.context {
			ids[at+i] = int32((n*31+int64(i)*7)%97) % int32(f.vocab)
			targets[at+i] = int32((n*31+int64(i+1)*7)%97) % int32(f.vocab)
		}
		if f.apart {
			lengths = append(lengths, 1, f.context/3, f.context-1-f.context/3)
		} else {
			lengths = append(lengths, f.context)
		}
		n++
	}
	return lengths
}

// newFakeTrainer makes a trainer over a fake model.
func newFakeTrainer(t *testing.T, cfg *configs.Config, workers int) (*Trainer, *fakeModel) {
	t.Helper()
	m := &fakeModel{weights: tinyWeights(cfg)}
	tr, err := NewTrainer(cfg, m.weights, m.build, fakeFor(cfg), workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr, m
}

func cloneAll(ws [][]float32) [][]float32 {
	var out [][]float32
	for _, w := range ws {
		out = append(out, slices.Clone(w))
	}
	return out
}

func equalAll[T comparable](a, b [][]T) bool {
	return slices.EqualFunc(a, b, slices.Equal[[]T])
}
