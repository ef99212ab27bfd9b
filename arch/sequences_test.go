package arch

import (
	"math"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/qat/simd"
)

// TestSequencesPutTogetherScoreAsAlone: nats and logits of a position are the same bits in whatever batch its sequence
// stands, and at whatever place.
func TestSequencesPutTogetherScoreAsAlone(t *testing.T) {
	if simd.Current() == simd.Library {
		t.Skip("the library's order of summation depends on the sizes of the matrices")
	}
	batches := [][]int{{16, 16, 16}, {1, 16, 3, 16, 12}, {13, 2, 1, 7, 1, 16, 8}, {5, 5, 5, 5, 5, 5, 5, 5, 8}}
	for name, cfg := range variants() {
		for _, float := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := randomWeights(cfg, 3)
				g := mustBuild(t, cfg, w, Options{Batch: 3, Seq: 16, Float: float, Logits: true})
				for i, lengths := range batches {
					ids, targets := randomBatch(cfg, 48, uint64(i))
					if _, err := g.RunSequences(ids, targets, lengths); err != nil {
						t.Fatal(err)
					}
					at := 0
					for _, n := range lengths {
						alone := mustBuild(t, cfg, w, Options{Batch: 1, Seq: n, Float: float, Logits: true})
						mustRun(t, alone, ids[at:at+n], targets[at:at+n])
						compareBits(t, "nats", g.NLL()[at:at+n], alone.NLL())
						compareBits(t, "logits", g.Logits()[at*cfg.VocabSize:(at+n)*cfg.VocabSize], alone.Logits())
						at += n
					}
				}
			})
		}
	}
}

// TestNothingBehindAPositionCounts: what follows a position in its sequence changes nothing of its nats. Many blocks of
// attention, more keys than a float's sum of products is exact for, and blocks of the output layer are crossed.
func TestNothingBehindAPositionCounts(t *testing.T) {
	if simd.Current() == simd.Library {
		t.Skip("the library's order of summation depends on the sizes of the matrices")
	}
	cfg := testConfig(nil)
	cfg.ContextLength = 1100
	w := randomWeights(cfg, 3)
	ids, targets := randomBatch(cfg, 1100, 5)
	whole := mustBuild(t, cfg, w, Options{Batch: 1, Seq: 1100})
	mustRun(t, whole, ids, targets)
	for _, n := range []int{1, 63, 64, 65, 200, 1024, 1025, 1099} {
		start := mustBuild(t, cfg, w, Options{Batch: 1, Seq: n})
		mustRun(t, start, ids[:n], targets[:n])
		compareBits(t, "nats", start.NLL(), whole.NLL()[:n])
	}
}

func TestRunSequencesRefuses(t *testing.T) {
	cfg := testConfig(nil)
	w := randomWeights(cfg, 1)
	ids, targets := randomBatch(cfg, 8, 1)
	g := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 4})
	for want, lengths := range map[string][]int{
		"of 7 positions": {3, 4}, "of 9": {4, 4, 1}, "sequence 0 has 5": {5, 3}, "sequence 1 has 0": {4, 0, 4}, "sequence 0 has -1": {-1},
	} {
		if _, err := g.RunSequences(ids, targets, lengths); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", lengths, err)
		}
	}
	loss := mustRun(t, g, ids, targets)
	if other, err := g.RunSequences(ids, targets, []int{4, 4}); err != nil || math.Float64bits(other) != math.Float64bits(loss) {
		t.Errorf("%v and %v, %v", loss, other, err)
	}
}

// The gradient of sequences put together is the sum of theirs alone, each weighted with its share of the targets.
func TestGradientOfSequencesPutTogether(t *testing.T) {
	lengths := []int{13, 2, 1, 16, 7, 1, 8}
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			cfg.Train.RouterAux = 0 // the balance of experts is that of a whole batch
			w := randomWeights(cfg, 3)
			ids, targets := randomBatch(cfg, 48, 9)
			together := mustBuild(t, cfg, w, Options{Batch: 3, Seq: 16, Train: true, Float: true})
			loss, err := together.RunSequences(ids, targets, lengths)
			if err != nil {
				t.Fatal(err)
			}
			count := func(targets []int32) (n float64) {
				for _, id := range targets {
					if id >= 0 {
						n++
					}
				}
				return n
			}
			sum, at := 0.0, 0
			want := make([][]float64, len(w.Data))
			for _, n := range lengths {
				alone := mustBuild(t, cfg, w, Options{Batch: 1, Seq: n, Train: true, Float: true})
				if count(targets[at:at+n]) > 0 {
					share := count(targets[at:at+n]) / count(targets)
					sum += share * mustRun(t, alone, ids[at:at+n], targets[at:at+n])
					for i, g := range alone.Gradients() {
						if want[i] == nil {
							want[i] = make([]float64, len(g))
						}
						for j, x := range g {
							want[i][j] += share * float64(x)
						}
					}
				}
				at += n
			}
			if math.Abs(loss-sum) > 1e-5*sum {
				t.Errorf("loss %v, alone %v", loss, sum)
			}
			for i, g := range together.Gradients() {
				size := 0.0
				for _, x := range want[i] {
					size = max(size, math.Abs(x))
				}
				for j, x := range g {
					if math.Abs(float64(x)-want[i][j]) > 1e-4*size+1e-7 {
						t.Fatalf("gradient of %s[%d]: %v, alone %v", w.Tensors[i].Name, j, x, want[i][j])
					}
				}
			}
		})
	}
}
