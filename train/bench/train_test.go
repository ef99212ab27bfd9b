package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/train"
)

// tinyModel has three micro-batches a step, so that two workers wait for each other.
const tinyModel = `
vocab_size: 300
d_model: 16
n_layers: 2
n_heads: 2
d_ff: 24
context_length: 16
ple_dim: 8
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {tokens: 1536, batch_tokens: 96, micro_batch: 2, lr: 0.01}
`

func tinyConfig(t *testing.T, sets ...string) *configs.Config {
	t.Helper()
	cfg, err := configs.Parse("tiny.yaml", []byte(tinyModel), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func tellNobody(int64, int64) {}

// variants between them take every operation.
var variants = [][]string{
	nil,
	{"experts=4"},
	{"experts=2", "ple_dim=0", "tie_embeddings=false"},
	{"tie_embeddings=false", "activation=swiglu"},
	{"ple_dim=0", "qk_norm=false"},
	{"quant.weights.bits=32", "quant.activations.bits=32"},
	{"train.micro_batch=6", "context_length=16"},
}

// TestCostsAddUpToTheBudget holds the arithmetic that each operation claims against what the configuration says of the
// whole, to the last operation.
func TestCostsAddUpToTheBudget(t *testing.T) {
	for _, sets := range variants {
		cfg := tinyConfig(t, sets...)
		for _, workers := range []int{1, 2} {
			r, err := steps(t.Context(), cfg, workers, 3, tellNobody)
			if err != nil {
				t.Fatal(err)
			}
			flop := int64(0)
			for _, row := range r.rows {
				flop += row.FLOP
			}
			if want := 3 * r.TokensPerStep * cfg.Budget().TrainFLOP; flop != want {
				t.Errorf("%v, %d workers: the operations of three steps are %d FLOP, the budget says %d", sets, workers, flop, want)
			}
		}
	}
}

// TestRowsAddUpToTheTime: each moment of each worker is in one row.
func TestRowsAddUpToTheTime(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		r, err := steps(t.Context(), tinyConfig(t), workers, 4, tellNobody)
		if err != nil {
			t.Fatal(err)
		}
		sum := time.Duration(0)
		for k, row := range r.rows {
			sum += row.Time
			if row.Time < 0 {
				t.Errorf("%v took %v", profile.Kind(k), row.Time)
			}
		}
		if want := time.Duration(workers) * r.took; sum != want {
			t.Errorf("%d workers: the rows are %v, the steps took %v", workers, sum, want)
		}
	}
}

// TestWhatIsRecorded counts the calls of operations that each worker's graph, the team and the optimiser make.
func TestWhatIsRecorded(t *testing.T) {
	const count, micro, layers = 2, 3, 2
	cfg := tinyConfig(t)
	r, err := steps(t.Context(), cfg, 2, count, tellNobody)
	if err != nil {
		t.Fatal(err)
	}
	matrices := 1 + 1 + layers*7 // head, ple_projection, and those of the layers
	tensors := len(cfg.Tensors())
	for k, want := range map[profile.Kind]int64{
		profile.Attention: layers, profile.AttentionGradient: layers, profile.Residual: 3 * layers,
		profile.Norm: 3*layers + 1, profile.NormGradient: 3*layers + 1,
		profile.HeadProduct: 1, profile.HeadSoftmax: 1, profile.HeadGradient: 1, profile.Embedding: 1,
		profile.GradientSum: 1,
	} {
		if got := r.rows[k].Laps; got != want*count*micro {
			t.Errorf("%v: %d calls, want %d", k, got, want*count*micro)
		}
	}
	// Each worker quantises the weights once a step, if it gets any micro-batch.
	if got := r.rows[profile.QuantiseWeights].Laps; got%int64(matrices) != 0 || got < int64(matrices)*count || got > 2*int64(matrices)*count {
		t.Errorf("weights were quantised %d times, in %d steps of %d matrices", got, count, matrices)
	}
	params, table := int64(cfg.Parameters()), int64(0)
	for _, t := range cfg.Tensors() {
		if t.Name == configs.PLETable {
			table = int64(t.Len())
		}
	}
	dense := params - table // of the table, only the rows that batches read are added up and squared
	for k, want := range map[profile.Kind][2]int64{
		profile.GradientSum: {4 * dense * (2 + 3 + 3), 4 * params * (2 + 3 + 3)},
		profile.Optimiser:   {4 * (7*params + dense), 4 * 8 * params},
		profile.Norm:        {micro * 4 * 2 * 32 * 16 * (3*layers + 1), micro * 4 * 2 * 32 * 16 * (3*layers + 1)},
		profile.Waiting:     {0, 0},
	} {
		if got := r.rows[k].Bytes; got < want[0]*count || got > want[1]*count {
			t.Errorf("%v: %d bytes, want %d to %d", k, got, want[0]*count, want[1]*count)
		}
	}
	if got := r.rows[profile.Optimiser].Laps; got != int64(2*tensors*count) { // the norm, and the update
		t.Errorf("optimiser: %d calls, want %d", got, 2*tensors*count)
	}
	if r.rows[profile.Waiting].Laps == 0 || r.rows[profile.Router].Laps != 0 {
		t.Errorf("waiting %+v, router %+v", r.rows[profile.Waiting], r.rows[profile.Router])
	}
}

// TestProfileChangesNothing takes steps with and without it.
func TestProfileChangesNothing(t *testing.T) {
	for _, sets := range variants {
		cfg := tinyConfig(t, sets...)
		var trained [2][][]float32
		var results [2]train.StepResult
		for i := range trained {
			w := arch.InitWeights(cfg, 1)
			tr, err := train.NewTrainer(cfg, w.Data, train.ArchBuilder(cfg, w), newZipf(cfg.VocabSize, cfg.ContextLength, 1), 2)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			if i == 1 {
				tr.Profile()
			}
			for range 3 {
				if results[i], err = tr.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			trained[i] = w.Data
		}
		if !slices.EqualFunc(trained[0], trained[1], slices.Equal) || results[0].Loss != results[1].Loss {
			t.Errorf("%v: with a profile, three steps give other weights", sets)
		}
		if slices.EqualFunc(trained[0], arch.InitWeights(cfg, 1).Data, slices.Equal) {
			t.Errorf("%v: the weights did not change", sets)
		}
	}
}

func TestStepsStopWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := steps(ctx, tinyConfig(t), 2, 100, func(done, _ int64) {
		if done == 3 {
			cancel()
		}
		if done > 3 {
			t.Error("a step after the end")
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := sgemmPeak(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the peak: %v", err)
	}
}

func TestNumberOfSteps(t *testing.T) {
	for _, c := range []struct {
		count, done int
		took        time.Duration
		more        bool
		about       int64
	}{
		{5, 4, time.Hour, true, 5}, {5, 5, 0, false, 5},
		{0, 1, time.Hour, true, 1}, {0, 2, time.Hour, false, 2}, {0, 50, time.Second, true, 500},
		{0, 50, defaultTime, false, 50},
	} {
		if got := more(c.count, c.done, c.took); got != c.more {
			t.Errorf("%+v: more is %v", c, got)
		}
		if c.took > 0 && about(c.count, c.done, c.took) != c.about {
			t.Errorf("%+v: about %d", c, about(c.count, c.done, c.took))
		}
	}
}

// TestZipf draws many ids: the k-th comes about as often as 1/(k+1) says, and always the same.
func TestZipf(t *testing.T) {
	z := newZipf(8, 1000, 1)
	var counts [8]int
	ids, targets, again := make([]int32, 1000), make([]int32, 1000), make([]int32, 1000)
	for n := range int64(100) {
		z.sequence(n, ids, targets)
		if !slices.Equal(ids[1:], targets[:999]) {
			t.Fatal("the targets are not the ids that follow")
		}
		for _, id := range targets {
			counts[id]++
		}
	}
	for k, n := range counts {
		want := 100000 / float64(k+1) / (761.0 / 280) // the eighth harmonic number
		if d := (float64(n) - want) / want; d < -0.05 || d > 0.05 {
			t.Errorf("id %d was drawn %d times, want about %.0f", k, n, want)
		}
	}
	newZipf(8, 1000, 1).sequence(99, again, make([]int32, 1000))
	if !slices.Equal(ids, again) {
		t.Error("sequence 99 is not the same again")
	}
	newZipf(8, 1000, 2).sequence(99, again, make([]int32, 1000))
	if slices.Equal(ids, again) {
		t.Error("another seed gives the same ids")
	}
}
