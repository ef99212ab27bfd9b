package arch

import (
	"math"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// TestHoldWeights: a run that holds the weights gives what the one before it gave, and one that does not sees the change.
func TestHoldWeights(t *testing.T) {
	cfg := testConfig(func(*configs.Config) {})
	w := randomWeights(cfg, 1)
	g := mustBuild(t, cfg, w, Options{Batch: 1, Seq: 4, Train: true})
	ids, targets := randomBatch(cfg, 4, 2)
	run := func() float64 {
		loss, err := g.Run(ids, targets)
		if err != nil {
			t.Fatal(err)
		}
		return loss
	}
	g.HoldWeights(true) // the first run has nothing to hold
	first := run()
	if math.IsNaN(first) || run() != first {
		t.Fatalf("a held run gives another loss than %v", first)
	}
	head := w.Get(configs.OutputNorm)
	for i := range head {
		head[i] *= 2 // not quantised: seen at once
	}
	scaled := run()
	qkv := w.Get(configs.LayerTensor(0, configs.QKV))
	for i := range qkv {
		qkv[i] = -3 * qkv[i]
	}
	if got := run(); got != scaled {
		t.Errorf("a held run gives %v after a change of a quantised weight, want %v", got, scaled)
	}
	g.HoldWeights(false)
	if got := run(); got == scaled {
		t.Error("a run that holds nothing has not seen the change")
	}
}
