package arch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// TestStepsEqualReference holds every step of every position equal, bit for bit, to the reference, and in its order.
func TestStepsEqualReference(t *testing.T) {
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			w := randomWeights(cfg, 11)
			lengths := []int{5, 16, 1, 10}
			ids, targets := randomBatch(cfg, 32, 4)
			g := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 16, Exact: true, Logits: true})
			if _, err := g.RunSequences(ids, targets, lengths); err != nil {
				t.Fatal(err)
			}
			ref := newReference(t, cfg, w)
			at := 0
			for _, n := range lengths {
				ref.reset()
				for p := range n {
					ref.step(ids[at], p)
					compareSteps(t, g.Steps(), at, ref.seen)
					compareChoices(t, g, at, ref.seen)
					at++
				}
			}
		})
	}
}

func compareSteps(t *testing.T, steps []Step, position int, want []seen) {
	t.Helper()
	if len(steps) != len(want) {
		t.Fatalf("%d steps, the reference has %d", len(steps), len(want))
	}
	for i, s := range steps {
		if s.Layer != want[i].layer || s.Name != want[i].name || s.Width != len(want[i].values) {
			t.Fatalf("step %d is %s of layer %d with %d values; the reference has %s of layer %d with %d", i, s.Name, s.Layer, s.Width,
				want[i].name, want[i].layer, len(want[i].values))
		}
		compareBits(t, fmt.Sprintf("position %d, layer %d, %s", position, s.Layer, s.Name), s.Values(position), want[i].values)
	}
}

// compareChoices holds the experts to the largest of the reference's router values, the first on a tie.
func compareChoices(t *testing.T, g *Graph, position int, want []seen) {
	t.Helper()
	for _, s := range want {
		if s.name == configs.Router {
			best := slices.Index(s.values, slices.Max(s.values))
			if got := g.Choices(s.layer)[position]; int(got) != best {
				t.Fatalf("position %d, layer %d: expert %d is chosen, the reference chooses %d", position, s.layer, got, best)
			}
		}
	}
}

// TestStepsInTraining: a graph for training has the same steps but for the logits, which become gradients.
func TestStepsInTraining(t *testing.T) {
	for name, cfg := range variants() {
		w := randomWeights(cfg, 11)
		ids, targets := randomBatch(cfg, 14, 4)
		train := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 7, Train: true})
		eval := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 7, Logits: true})
		mustRun(t, train, ids, targets)
		mustRun(t, eval, ids, targets)
		a, b := train.Steps(), eval.Steps()
		if len(a)+1 != len(b) || b[len(b)-1].Name != configs.Head {
			t.Fatalf("%s: %d and %d steps", name, len(a), len(b))
		}
		if (train.Choices(0) == nil) != (cfg.Experts <= 1) || train.Choices(-1) != nil || train.Choices(cfg.NLayers) != nil {
			t.Errorf("%s: choices of experts", name)
		}
		for i := range a {
			for p := range 14 {
				for j, v := range a[i].Values(p) {
					if math.Float32bits(v) != math.Float32bits(b[i].Values(p)[j]) {
						t.Fatalf("%s: position %d, layer %d, %s: value %d is %v in training, %v else", name, p, a[i].Layer, a[i].Name, j,
							v, b[i].Values(p)[j])
					}
				}
			}
		}
	}
}
