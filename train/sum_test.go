package train

import (
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// TestRowsThatAreNotZeroSuffice: a graph that says which rows of a table's gradient may not be zero trains as one that
// does not, on any number of workers.
func TestRowsThatAreNotZeroSuffice(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.Clip = 0 // the norm's sum has another order without the rows
	table := slices.IndexFunc(cfg.Tensors(), func(x configs.Tensor) bool { return x.Name == "token_embedding" })
	cols := cfg.Tensors()[table].Cols()
	train := func(workers int, tell bool) ([][]float32, []float64) {
		tr, m := newFakeTrainer(t, cfg, workers)
		m.fault = func(ids []int32, g *fakeGraph) {
			var rows []int32
			for r := range int32(cfg.VocabSize) { // few of the rows, and not the same ones in every step
				if (ids[0]+r)%4 == 0 {
					rows = append(rows, r)
				} else {
					clear(g.gradients[table][int(r)*cols : int(r+1)*cols])
				}
			}
			if tell {
				g.rows[table] = rows
			}
		}
		var norms []float64
		for range 8 {
			r, err := tr.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			norms = append(norms, r.GradNorm)
		}
		return m.weights, norms
	}
	want, wantNorms := train(1, false)
	if equalAll(want, tinyWeights(cfg)) {
		t.Fatal("the weights did not change")
	}
	_, rowNorms := train(1, true)
	for _, workers := range []int{1, 2, 3, 5} {
		got, norms := train(workers, true)
		if !equalAll(got, want) {
			t.Errorf("%d workers: other weights than with the whole table", workers)
		}
		for i := range norms {
			if math.Abs(norms[i]/wantNorms[i]-1) > 1e-12 || norms[i] != rowNorms[i] {
				t.Errorf("%d workers, step %d: norm %v, %v with one worker, %v with the whole table", workers, i, norms[i], rowNorms[i], wantNorms[i])
			}
		}
	}
}

// TestStagesHoldEveryRowOnce: nothing is added twice or left out.
func TestStagesHoldEveryRowOnce(t *testing.T) {
	shapes := [][]int{{5000, 128}, {3}, {1, pieceSize + 1}, {70, 3, 40}, {1000, 1000}, {7}}
	var params []*Parameter
	for _, s := range shapes {
		n := 1
		for _, d := range s {
			n *= d
		}
		params = append(params, newParameter(configs.Tensor{Name: "x", Shape: s}, make([]float32, n)))
	}
	s := newGradientSum(params)
	if len(s.stages) < 10 {
		t.Errorf("only %d stages", len(s.stages))
	}
	times := make([][]int, len(params))
	for i, p := range params {
		times[i] = make([]int, len(p.weights))
	}
	for _, stage := range s.stages {
		for _, c := range stage {
			cols := params[c.param].cols
			for i := c.from * cols; i < c.to*cols; i++ {
				times[c.param][i]++
			}
		}
	}
	for i := range times {
		if slices.Min(times[i]) != 1 || slices.Max(times[i]) != 1 {
			t.Errorf("elements of %v are in %d to %d stages", shapes[i], slices.Min(times[i]), slices.Max(times[i]))
		}
	}
}
