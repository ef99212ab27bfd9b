package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

func TestStepsAreTheSameOnAnyNumberOfWorkers(t *testing.T) {
	var want [][]float32
	for _, workers := range []int{1, 2, 3, 5, 16} {
		tr, m := newFakeTrainer(t, tinyConfig(), workers)
		for range 7 {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = cloneAll(m.weights)
			if equalAll(want, tinyWeights(tinyConfig())) {
				t.Fatal("the weights did not change")
			}
		} else if !equalAll(m.weights, want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
}

func TestStepAveragesTheMicroBatches(t *testing.T) {
	cfg := tinyConfig()
	tr, m := newFakeTrainer(t, cfg, 2)
	// The same micro-batches on a graph of our own, in double.
	own, _ := m.build(arch.Options{Batch: 2, Seq: 6, Train: true})
	mean := make([][]float64, len(m.weights))
	for i, w := range m.weights {
		mean[i] = make([]float64, len(w))
	}
	ids, targets := make([]int32, 12), make([]int32, 12)
	loss := 0.0
	for micro := range 5 {
		for s := range 2 {
			fakeSequences{11, 6, false}.Batch(int64(micro*2+s), ids[s*6:s*6+6], targets[s*6:s*6+6], nil)
		}
		l, err := own.Run(ids, targets)
		if err != nil {
			t.Fatal(err)
		}
		loss += l / 5
		for i, g := range own.Gradients() {
			for j := range g {
				mean[i][j] += float64(g[j]) / 5
			}
		}
	}
	norm := 0.0
	for _, g := range mean {
		for _, x := range g {
			norm += x * x
		}
	}
	norm = math.Sqrt(norm)
	r, err := tr.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Loss-loss) > 1e-12*loss {
		t.Errorf("loss %v, want %v", r.Loss, loss)
	}
	if r.AuxLoss != 0.5 {
		t.Errorf("load-balancing loss %v, want 0.5", r.AuxLoss)
	}
	if math.Abs(r.GradNorm-norm) > 1e-6*norm {
		t.Errorf("norm %v, want %v", r.GradNorm, norm)
	}
	if tr.StepsTaken() != 1 || tr.Sequences() != 10 || tr.Tokens() != 60 {
		t.Errorf("%d steps, %d sequences, %d tokens", tr.StepsTaken(), tr.Sequences(), tr.Tokens())
	}
}

func TestRestoredTrainerGoesOnTheSame(t *testing.T) {
	whole, m := newFakeTrainer(t, tinyConfig(), 2)
	for range 10 {
		if _, err := whole.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, half := newFakeTrainer(t, tinyConfig(), 1)
	for range 5 {
		if _, err := first.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second, rest := newFakeTrainer(t, tinyConfig(), 3)
	for i := range half.weights {
		copy(rest.weights[i], half.weights[i])
	}
	if err := second.Restore(cloneState(first.solver), 5, first.Sequences()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := second.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !equalAll(rest.weights, m.weights) {
		t.Error("five steps, a restore and five steps differ from ten steps")
	}
}

func TestCancelledStepChangesNothing(t *testing.T) {
	for _, workers := range []int{1, 3} {
		tr, m := newFakeTrainer(t, tinyConfig(), workers)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := tr.Step(ctx); err != nil {
			t.Fatal(err)
		}
		before := cloneAll(m.weights)
		m.fault = func([]int32, *fakeGraph) { cancel() } // no worker begins a second micro-batch
		if _, err := tr.Step(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d workers: got %v", workers, err)
		}
		if !equalAll(before, m.weights) || tr.StepsTaken() != 1 {
			t.Errorf("%d workers: a step given up left its mark", workers)
		}
		m.fault = nil
		if _, err := tr.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole, wm := newFakeTrainer(t, tinyConfig(), 1)
		for range 2 {
			if _, err := whole.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !equalAll(wm.weights, m.weights) {
			t.Errorf("%d workers: the step after one given up differs", workers)
		}
	}
}

func TestStepStopsAtWhatIsNotFinite(t *testing.T) {
	cfg := tinyConfig()
	qkv := slices.IndexFunc(cfg.Tensors(), func(x configs.Tensor) bool { return x.Name == "layers.0.qkv" })
	for _, c := range []struct {
		name  string
		fault func(g *fakeGraph)
		want  []string
	}{
		{"loss", func(g *fakeGraph) { g.loss, g.bad = math.NaN(), "layers.0.scores" }, []string{"micro-batch 2", "NaN", "layers.0.scores"}},
		{"loss alone", func(g *fakeGraph) { g.loss = math.Inf(1) }, []string{"+Inf", ": loss"}},
		{"gradient", func(g *fakeGraph) { g.gradients[qkv][5] = float32(math.Inf(-1)) }, []string{"the gradient of layers.0.qkv"}},
	} {
		for _, workers := range []int{1, 4} {
			tr, m := newFakeTrainer(t, cfg, workers)
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := cloneAll(m.weights)
			bad := microBatch(10 + 4) // the third of the second step
			m.fault = func(ids []int32, g *fakeGraph) {
				if slices.Equal(ids, bad) {
					c.fault(g)
				}
			}
			_, err := tr.Step(t.Context())
			if !errors.Is(err, errNotFinite) {
				t.Fatalf("%s, %d workers: got %v", c.name, workers, err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s, %d workers: %q does not say %q", c.name, workers, err, w)
				}
			}
			if !equalAll(before, m.weights) || tr.StepsTaken() != 1 {
				t.Errorf("%s, %d workers: the weights changed", c.name, workers)
			}
		}
	}
}

// microBatch gives the ids of the fake micro-batch that begins at a sequence.
func microBatch(first int64) []int32 {
	ids := make([]int32, 12)
	for s := range 2 {
		fakeSequences{11, 6, false}.Batch(first+int64(s), ids[s*6:s*6+6], make([]int32, 6), nil)
	}
	return ids
}

func TestQuantisationStartsAtItsStep(t *testing.T) {
	t.Run("as a step", func(t *testing.T) { quantisationStarts(t, func(q *configs.Quant) { q.StartStep = 3 }) })
	t.Run("as a share of ten steps", func(t *testing.T) { quantisationStarts(t, func(q *configs.Quant) { q.Start, q.StartStep = 0.39, 2 }) })
}

// quantisationStarts wants quantisation after the third step.
func quantisationStarts(t *testing.T, edit func(*configs.Quant)) {
	cfg := tinyConfig()
	edit(&cfg.Quant)
	tr, m := newFakeTrainer(t, cfg, 2)
	for step := range 5 {
		if _, err := tr.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := m.built[len(m.built)-1]
		if wantBuilt, wantFloat := 2+2*(step/3), step < 3; len(m.built) != wantBuilt || last.Float != wantFloat || !last.Train {
			t.Errorf("step %d: %d graphs were built, the last with %+v", step, len(m.built), last)
		}
	}
}

func TestStepMakesNoGarbageToSpeakOf(t *testing.T) {
	tr, _ := newFakeTrainer(t, tinyConfig(), 1)
	ctx := t.Context()
	step := func() {
		if _, err := tr.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(5, step); n > 4 {
		t.Errorf("a step makes %v allocations", n)
	}
}

func TestNewTrainerRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*configs.Config)
	}{
		{"train.batch_tokens", func(c *configs.Config) { c.Train.BatchTokens = 61 }},
		{"train.batch_tokens", func(c *configs.Config) { c.Train.MicroBatch = 0 }},
		{"train.tokens", func(c *configs.Config) { c.Train.Tokens = 0 }},
		{"train.schedule", func(c *configs.Config) { c.Train.Schedule = "square" }},
		{"train.optimizer", func(c *configs.Config) { c.Train.Optimizer = "sgd" }},
		{"output_norm", func(*configs.Config) {}},
	} {
		cfg := tinyConfig()
		c.change(cfg)
		ws := tinyWeights(cfg)
		if c.want == "output_norm" {
			ws[len(ws)-1] = ws[len(ws)-1][:3]
		}
		if _, err := NewTrainer(cfg, ws, nil, fakeFor(cfg), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s named", err, c.want)
		}
	}
}
