package arch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// mixedLoss is the mean cross-entropy of the logits of the last run against (1-share) of the targets plus share of the
// distributions of the teacher's logits, in double precision.
func mixedLoss(logits, teacher []float32, targets []int32, vocab int, share float64) float64 {
	probabilities := func(row []float32) (p []float64, logSum float64) {
		sum := 0.0
		for _, l := range row {
			p = append(p, math.Exp(float64(l)))
			sum += math.Exp(float64(l))
		}
		for i := range p {
			p[i] /= sum
		}
		return p, math.Log(sum)
	}
	total, count := 0.0, 0
	for i, target := range targets {
		if target < 0 {
			continue
		}
		count++
		row := logits[i*vocab : (i+1)*vocab]
		_, logSum := probabilities(row)
		q, _ := probabilities(teacher[i*vocab : (i+1)*vocab])
		total += (1 - share) * (logSum - float64(row[target]))
		for k := range q {
			total += share * q[k] * (logSum - float64(row[k]))
		}
	}
	return total / float64(count)
}

// TestDistilledGradient holds the gradients of a graph with a teacher to central differences of the mixed loss.
func TestDistilledGradient(t *testing.T) {
	cfg := testConfig(nil)
	ids, targets := randomBatch(cfg, 14, 3)
	if !slices.ContainsFunc(targets, func(t int32) bool { return t < 0 }) {
		targets[5] = -1
	}
	w, lengths := randomWeights(cfg, 7), []int{3, 7, 4}
	other := randomWeights(cfg, 8)
	logits := func(g *Graph) []float32 {
		if _, err := g.RunSequences(ids, targets, lengths); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(g.Logits())
	}
	teacher := logits(mustBuild(t, cfg, other, Options{Batch: 2, Seq: 7, Float: true, Logits: true}))
	plain := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 7, Float: true, Logits: true})
	for _, share := range []float64{0.3, 1} {
		g := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 7, Float: true, Train: true, Distill: share})
		if err := g.Teach(slices.Clone(teacher)); err != nil {
			t.Fatal(err)
		}
		loss, err := g.RunSequences(ids, targets, lengths)
		if err != nil {
			t.Fatal(err)
		}
		if want := mixedLoss(logits(plain), teacher, targets, cfg.VocabSize, 0); math.Abs(loss-want) > 1e-5 {
			t.Errorf("the loss is %v, that of the targets alone %v", loss, want)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		for i, tensor := range w.Tensors {
			const h = 2e-3
			data, saved := w.Data[i], slices.Clone(w.Data[i])
			dir, want := make([]float64, len(data)), 0.0
			for j := range dir {
				dir[j] = rng.NormFloat64() / math.Sqrt(float64(min(len(dir), 30)))
				want += float64(g.Gradients()[i][j]) * dir[j] * h
			}
			at := func(sign float64) float64 {
				for j := range data {
					data[j] = saved[j] + float32(sign*h*dir[j])
				}
				return mixedLoss(logits(plain), teacher, targets, cfg.VocabSize, share)
			}
			got := (at(1) - at(-1)) / 2
			copy(data, saved)
			if math.Abs(got-want) > 5e-6+0.02*math.Abs(want) {
				t.Errorf("share %v, %s: the loss moves by %.4g, the gradient says %.4g", share, tensor.Name, got, want)
			}
		}
	}
}

// TestTeachRefuses: a graph with a teacher runs with one batch of its logits for every run, and no other graph takes any.
func TestTeachRefuses(t *testing.T) {
	cfg := testConfig(nil)
	w := randomWeights(cfg, 1)
	ids, targets := randomBatch(cfg, 4, 3)
	g := mustBuild(t, cfg, w, Options{Batch: 1, Seq: 4, Train: true, Distill: 0.5})
	if _, err := g.Run(ids, targets); err == nil {
		t.Error("it runs without a teacher")
	}
	if g.Teach(make([]float32, 4*cfg.VocabSize-1)) == nil {
		t.Error("it takes too few logits")
	}
	for range 2 {
		if err := g.Teach(make([]float32, 4*cfg.VocabSize)); err != nil {
			t.Fatal(err)
		}
		mustRun(t, g, ids, targets)
	}
	if _, err := g.Run(ids, targets); err == nil {
		t.Error("it runs twice with the logits of one batch")
	}
	if mustBuild(t, cfg, w, Options{Batch: 1, Seq: 4, Train: true}).Teach(make([]float32, 4*cfg.VocabSize)) == nil {
		t.Error("a graph without a teacher takes logits")
	}
	for _, opt := range []Options{{Batch: 1, Seq: 4, Train: true, Distill: 1.5}, {Batch: 1, Seq: 4, Train: true, Distill: math.NaN()}, {Batch: 1, Seq: 4, Distill: 0.5}} {
		if _, err := Build(cfg, w, opt); err == nil {
			t.Errorf("built with %+v", opt)
		}
	}
}
