package train

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/configs"
)

// TestMuonAgreesWithPyTorch replays steps of torch.optim.Muon in double, and of NorMuon (testdata/muon.py).
func TestMuonAgreesWithPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/muon.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Name        string
			Momentum    float64
			Steps       int
			WeightDecay float64 `json:"weight_decay"`
			Beta2       float64
			LR          []float64
			Params      []struct {
				Name     string
				Shape    []int
				Parts    int
				Initial  base64Floats
				Grads    []base64Floats
				Expected []base64Floats
			}
		}
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			solver := &Muon{Momentum: c.Momentum, Steps: c.Steps, WeightDecay: c.WeightDecay, NormaliseRows: c.Beta2 > 0, Beta2: c.Beta2}
			var params []*Parameter
			var values []gorgonia.ValueGrad
			for _, p := range c.Params {
				own := newParameter(configs.Tensor{Name: p.Name, Shape: p.Shape}, slices.Clone(p.Initial))
				params, values = append(params, own), append(values, own)
				solver.Parts = append(solver.Parts, p.Parts)
			}
			for step, lr := range c.LR {
				for i, p := range c.Params {
					copy(params[i].gradient, p.Grads[step])
				}
				solver.LR = lr
				if err := solver.Step(values); err != nil {
					t.Fatal(err)
				}
				for i, p := range c.Params {
					for j, want := range p.Expected[step] {
						got := params[i].weights[j]
						// An update is at most some lr, and five steps of Newton-Schulz lose about two digits of seven.
						if d := math.Abs(float64(got - want)); d > 2e-5*lr*float64(step+1)+1e-6*math.Abs(float64(want)) {
							t.Fatalf("step %d, %s[%d]: %v, want %v", step, p.Name, j, got, want)
						}
					}
				}
			}
		})
	}
}

// randomMatrix is a parameter with random weights and gradient.
func randomMatrix(rng *rand.Rand, name string, shape ...int) *Parameter {
	n := shape[0] * shape[1]
	w := make([]float32, n)
	p := newParameter(configs.Tensor{Name: name, Shape: shape}, w)
	for i := range w {
		w[i], p.gradient[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	return p
}

// The update of any gradient is nearly orthogonal: x x' (or x' x) has its eigenvalues near 1. They are bounded here by the
// trace of x x' and of its square.
func TestOrthogonaliseMakesSingularValuesNearOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {16, 16}, {128, 128}, {320, 128}, {64, 128}} {
		rows, cols := s[0], s[1]
		small := min(rows, cols)
		x, y := make([]float32, rows*cols), make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(rng.NormFloat64() * 1e-3)
		}
		o := orthogonalise(x, y, make([]float32, small*small), make([]float32, small*small), rows, cols, 5)
		product := make([]float32, small*small)
		m := kernels.M(o, cols)
		if rows <= cols {
			kernels.Gemm(small, small, cols, m, m.T(), false, kernels.M(product, small))
		} else {
			kernels.Gemm(small, small, rows, m.T(), m, false, kernels.M(product, small))
		}
		trace := 0.0
		for i := range small {
			trace += float64(product[i*small+i])
		}
		// Singular values between 0.68 and 1.13 (Jordan and others), but for the few smallest of a square matrix.
		if mean := trace / float64(small); mean < 0.46 || mean > 1.28 {
			t.Errorf("%d x %d: the mean squared singular value is %v", rows, cols, mean)
		}
		if spread := kernels.SumSquares(product)/float64(small) - math.Pow(trace/float64(small), 2); spread > 0.1 {
			t.Errorf("%d x %d: squared singular values vary by %v", rows, cols, spread)
		}
	}
}

// The size of a gradient does not matter, and a gradient of zero only decays weights.
func TestMuonIgnoresTheSizeOfGradients(t *testing.T) {
	run := func(scale float32) []float32 {
		p := randomMatrix(rand.New(rand.NewPCG(5, 6)), "w", 8, 12)
		kernels.Scale(p.gradient, scale)
		m := &Muon{LR: 0.1, Momentum: 0.9, Steps: 5, WeightDecay: 0.5}
		if err := m.Step([]gorgonia.ValueGrad{p}); err != nil {
			t.Fatal(err)
		}
		return p.weights
	}
	one, large, none := run(1), run(4096), run(0)
	start := randomMatrix(rand.New(rand.NewPCG(5, 6)), "w", 8, 12).weights
	for i := range one {
		if math.Abs(float64(one[i]-large[i])) > 1e-5 {
			t.Fatalf("weight %d: %v, and %v where gradients are 4096 times larger", i, one[i], large[i])
		}
		if want := start[i] * (1 - 0.1*0.5); math.Abs(float64(none[i]-want)) > 1e-6 {
			t.Fatalf("weight %d without a gradient: %v, want %v", i, none[i], want)
		}
	}
}

func TestMuonThreadsGiveTheSameBits(t *testing.T) {
	run := func(threads int) (all []float32) {
		rng := rand.New(rand.NewPCG(7, 8))
		params := []*Parameter{randomMatrix(rng, "a", 24, 16), randomMatrix(rng, "b", 16, 40), randomMatrix(rng, "c", 7, 5)}
		values := []gorgonia.ValueGrad{params[0], params[1]}
		values = append(values, plainParameter{
			tensor.New(tensor.WithShape(7, 5), tensor.WithBacking(params[2].weights)),
			tensor.New(tensor.WithShape(7, 5), tensor.WithBacking(params[2].gradient)),
		})
		m := &Muon{LR: 0.01, Momentum: 0.95, Steps: 5, WeightDecay: 0.1, Threads: threads, Parts: []int{3, 1, 1},
			NormaliseRows: true, Beta2: 0.9}
		for range 3 {
			if err := m.Step(values); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range params {
			all = append(all, p.weights...)
		}
		return all
	}
	one := run(1)
	for _, threads := range []int{2, 5} {
		if !slices.Equal(run(threads), one) {
			t.Errorf("%d threads give other weights", threads)
		}
	}
}

func TestMuonRefuses(t *testing.T) {
	matrix := randomMatrix(rand.New(rand.NewPCG(1, 1)), "w", 4, 3)
	vector := newParameter(configs.Tensor{Name: "norm", Shape: []int{4}}, make([]float32, 4))
	before := slices.Clone(matrix.weights)
	for _, c := range []struct {
		name  string
		muon  *Muon
		param *Parameter
		want  string
	}{
		{"a vector", &Muon{LR: 1, Steps: 5}, vector, "norm: it is a vector"},
		{"parts that do not divide", &Muon{LR: 1, Steps: 5, Parts: []int{3}}, matrix, "w: its 4 rows do not divide into 3 matrices"},
		{"parts of others", &Muon{LR: 1, Steps: 5, Parts: []int{1, 1}}, matrix, "1 parameters"},
		{"state of another size", &Muon{LR: 1, Steps: 5, m: [][]float32{{1, 2}}}, matrix, "w: 12 weights in 4 rows, but state for others"},
	} {
		if err := c.muon.Step([]gorgonia.ValueGrad{c.param}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !slices.Equal(matrix.weights, before) {
		t.Error("a refused step changed weights")
	}
	if err := new(Muon).SetMoments(nil, [][]float32{{1}}, 1); err == nil {
		t.Error("means of rows are taken without NormaliseRows")
	}
	matrix.gradient[0] = 1
	err := (&Muon{LR: 3e38, Momentum: 0.9, Steps: 5, WeightDecay: 1}).Step([]gorgonia.ValueGrad{matrix})
	if !errors.Is(err, errWeightNotFinite) || !strings.Contains(err.Error(), "w") {
		t.Errorf("weights that are not finite: %v", err)
	}
}
