package train

import (
	"encoding/base64"
	"encoding/binary"
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

// base64Floats reads base64 of little-endian float32.
type base64Floats []float32

func (f *base64Floats) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	for ; len(raw) >= 4; raw = raw[4:] {
		*f = append(*f, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return nil
}

type adamwCase struct {
	Name        string
	Beta1       float64
	Beta2       float64
	Eps         float64
	WeightDecay float64 `json:"weight_decay"`
	Clip        float64
	LR          []float64
	Norms       []float64
	Params      []struct {
		Name     string
		Shape    []int
		Initial  base64Floats
		Grads    []base64Floats
		Expected []base64Floats
	}
}

// TestAdamWAgreesWithPyTorch replays steps of torch.optim.AdamW with clip_grad_norm_ (testdata/adamw.py).
func TestAdamWAgreesWithPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/adamw.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []adamwCase }
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			solver := &AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, WeightDecay: c.WeightDecay}
			var params []*Parameter
			var values []gorgonia.ValueGrad
			for _, p := range c.Params {
				own := newParameter(configs.Tensor{Name: p.Name, Shape: p.Shape}, slices.Clone(p.Initial))
				params, values = append(params, own), append(values, own)
			}
			for step, lr := range c.LR {
				sum := 0.0
				for i, p := range c.Params {
					copy(params[i].gradient, p.Grads[step])
					sum += kernels.SumSquares(params[i].gradient)
				}
				norm := math.Sqrt(sum)
				if math.Abs(norm-c.Norms[step]) > 1e-6*c.Norms[step] {
					t.Fatalf("step %d: norm %v, want %v", step, norm, c.Norms[step])
				}
				solver.LR, solver.GradScale = lr, clipScale(norm, c.Clip)
				if err := solver.Step(values); err != nil {
					t.Fatal(err)
				}
				for i, p := range c.Params {
					for j, want := range p.Expected[step] {
						got := params[i].weights[j]
						// Eight float32 steps of at most lr each: a few roundings of the weight, and of the update.
						if d := math.Abs(float64(got - want)); d > 1e-6*math.Abs(float64(want))+1e-7 {
							t.Fatalf("step %d, %s[%d]: %v, want %v", step, p.Name, j, got, want)
						}
					}
				}
			}
		})
	}
}

// plainParameter is a gorgonia.ValueGrad of its own kind.
type plainParameter struct{ value, grad *tensor.Dense }

func (p plainParameter) Value() gorgonia.Value         { return p.value }
func (p plainParameter) Grad() (gorgonia.Value, error) { return p.grad, nil }

// TestAdamWThreadsGiveTheSameBits also checks that any gorgonia.ValueGrad will do.
func TestAdamWThreadsGiveTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shape := []int{3, pieceSize + 17}
	w, g := make([]float32, shape[0]*shape[1]), make([]float32, shape[0]*shape[1])
	for i := range w {
		w[i], g[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	run := func(threads int) []float32 {
		mine := slices.Clone(w)
		p := plainParameter{
			tensor.New(tensor.WithShape(shape...), tensor.WithBacking(mine)),
			tensor.New(tensor.WithShape(shape...), tensor.WithBacking(slices.Clone(g))),
		}
		a := &AdamW{LR: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Threads: threads}
		for range 3 {
			if err := a.Step([]gorgonia.ValueGrad{p}); err != nil {
				t.Fatal(err)
			}
		}
		return mine
	}
	one := run(1)
	if slices.Equal(one, w) {
		t.Fatal("the weights did not change")
	}
	for _, threads := range []int{2, 5} {
		if !slices.Equal(run(threads), one) {
			t.Errorf("%d threads give other weights", threads)
		}
	}
}

func TestAdamWNamesAWeightThatIsNotFinite(t *testing.T) {
	p := newParameter(configs.Tensor{Name: "layers.0.qkv", Shape: []int{1, 3}}, []float32{1, 2, 3})
	p.gradient[1] = 1
	a := &AdamW{LR: 1e39, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	err := a.Step([]gorgonia.ValueGrad{p})
	if !errors.Is(err, errWeightNotFinite) || !strings.Contains(err.Error(), "layers.0.qkv") {
		t.Errorf("got %v", err)
	}
}

func TestAdamWRefusesOtherParameters(t *testing.T) {
	p := newParameter(configs.Tensor{Name: "a", Shape: []int{3}}, []float32{1, 2, 3})
	a := &AdamW{LR: 0.1, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	if err := a.SetMoments([][]float32{{0, 0}}, [][]float32{{0, 0}}, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.Step([]gorgonia.ValueGrad{p}); err == nil || !strings.Contains(err.Error(), "2 moments") {
		t.Errorf("another size: got %v", err)
	}
	if err := a.Step([]gorgonia.ValueGrad{p, p}); err == nil {
		t.Error("another number of parameters is taken")
	}
	if !slices.Equal(p.weights, []float32{1, 2, 3}) {
		t.Error("a refused step changed weights")
	}
	if err := a.SetMoments([][]float32{{0}}, nil, 1); err == nil {
		t.Error("first moments without second ones are taken")
	}
}
