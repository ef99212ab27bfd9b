package train

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// muonConfig is tinyConfig with per-layer embeddings and the given optimiser.
func muonConfig(rows bool) *configs.Config {
	c := tinyConfig()
	c.PLEDim, c.Train.Optimizer = 4, OptimizerMuon
	c.Train.Muon = configs.Muon{LR: 0.02, Momentum: 0.95, Steps: 5, WeightDecay: 0.05, NormaliseRows: rows}
	return c
}

// cloneState copies the optimiser's state, as a checkpoint does.
func cloneState(o *Optimizer) map[string][]float32 {
	state := map[string][]float32{}
	for _, m := range o.moments() {
		state[m.name] = slices.Clone(m.data)
	}
	return state
}

// N steps are N/2 steps, a restore and N/2 steps, whatever the optimiser and the number of workers.
func TestEveryOptimizerResumes(t *testing.T) {
	for name, cfg := range map[string]*configs.Config{"adamw": tinyConfig(), "muon": muonConfig(false), "rows": muonConfig(true)} {
		steps := func(tr *Trainer, n int) {
			t.Helper()
			for range n {
				if _, err := tr.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		whole, want := newFakeTrainer(t, cfg, 1)
		start := cloneAll(want.weights)
		steps(whole, 6)
		first, half := newFakeTrainer(t, cfg, 1)
		steps(first, 3)
		second, rest := newFakeTrainer(t, cfg, 3)
		for i := range half.weights {
			copy(rest.weights[i], half.weights[i])
		}
		if err := second.Restore(cloneState(first.solver), 3, first.Sequences()); err != nil {
			t.Fatal(err)
		}
		steps(second, 3)
		if !equalAll(rest.weights, want.weights) {
			t.Errorf("%s: three steps, a restore and three steps differ from six steps", name)
		}
		for i, tensor := range cfg.Tensors() {
			if slices.Equal(start[i], want.weights[i]) {
				t.Errorf("%s: %s has not moved", name, tensor.Name)
			}
		}
	}
}

// Each tensor belongs to one solver, and has its state and no other.
func TestOptimizerState(t *testing.T) {
	tr, _ := newFakeTrainer(t, muonConfig(true), 1)
	state := cloneState(tr.solver)
	for _, tensor := range tr.cfg.Tensors() {
		kinds := ""
		for _, kind := range []string{"m", "v", "r"} {
			if data, ok := state[kind+"."+tensor.Name]; ok {
				kinds += kind
				if want := map[string]int{"m": tensor.Len(), "v": tensor.Len(), "r": tensor.Rows()}[kind]; len(data) != want {
					t.Errorf("%s.%s has %d values, want %d", kind, tensor.Name, len(data), want)
				}
			}
		}
		want := "mv"
		if tensor.Class == configs.ClassTrunk {
			want = "mr"
		}
		if kinds != want {
			t.Errorf("%s has the state %q, want %q", tensor.Name, kinds, want)
		}
	}
	for name, spoil := range map[string]func(map[string][]float32){
		"a part missing":    func(s map[string][]float32) { delete(s, "r.layers.0.qkv") },
		"another size":      func(s map[string][]float32) { s["m.token_embedding"] = []float32{1} },
		"another optimiser": func(s map[string][]float32) { s["v.layers.0.qkv"] = s["m.layers.0.qkv"]; delete(s, "r.layers.0.qkv") },
	} {
		bad := maps.Clone(state)
		spoil(bad)
		if err := tr.Restore(bad, 1, 1); err == nil || !strings.Contains(err.Error(), "the optimiser's state") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A factor of 0 holds a class still, and the others move as before.
func TestRatesOfClasses(t *testing.T) {
	cfg := muonConfig(false)
	cfg.Train.LRScale.Embedding = 0
	cfg.Train.WeightDecay = 0.5
	tr, m := newFakeTrainer(t, cfg, 1)
	start := cloneAll(m.weights)
	if _, err := tr.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, tensor := range cfg.Tensors() {
		if still := slices.Equal(start[i], m.weights[i]); still != (tensor.Class == configs.ClassEmbedding) {
			t.Errorf("%s: still %v", tensor.Name, still)
		}
	}
}

func TestAnUnknownOptimizerIsRefused(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.Optimizer = "sgd"
	if _, err := newOptimizer(cfg, nil, 1); err == nil || !strings.Contains(err.Error(), `"sgd" is unknown: use adamw or muon`) {
		t.Errorf("got %v", err)
	}
}
