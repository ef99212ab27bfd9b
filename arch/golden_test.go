package arch

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/chiplm/chiplm/configs"
)

// goldenTolerance is the largest difference allowed, over the largest absolute value of the tensor. The goldens come
// from PyTorch in double precision (testdata/golden.py and model.py), so it covers the float32 arithmetic of this
// package alone: sums of a few dozen products, some twenty operations deep; the worst tensor seen is at 1.5e-6.
// Quantised runs need no more: the seeds of the fixtures keep every value away from the rounding boundaries by more
// than float32's error, so the codes are the same.
const goldenTolerance = 1e-5

// goldenFloats reads base64 of little-endian float32.
type goldenFloats []float32

func (f *goldenFloats) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	*f = make(goldenFloats, len(raw)/4)
	for i := range *f {
		(*f)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// goldenModel is one model of testdata/models.json.
type goldenModel struct {
	Name             string
	Config           json.RawMessage
	Batch, Positions int
	IDs, Targets     []int32
	Weights          map[string]goldenFloats
	Modes            map[string]struct {
		Loss, Balance float64
		Gradients     map[string]goldenFloats
	}
}

func readGolden(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// goldenDifference is the largest difference of two tensors over the largest absolute value of the wanted one.
func goldenDifference(got []float32, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var worst, largest float64
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if !(d <= worst) { // a NaN counts
			worst = d
		}
		largest = math.Max(largest, math.Abs(float64(w)))
	}
	if worst == 0 {
		return 0
	}
	return worst / largest
}

// goldenConfig reads a configuration of models.json for a mode; a JSON text is YAML as well.
func goldenConfig(t *testing.T, m goldenModel, mode string) *configs.Config {
	t.Helper()
	var cfg configs.Config
	if err := yaml.Unmarshal(m.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	if mode == "weights_only" {
		cfg.Quant.Activations.Bits = 32
	}
	return &cfg
}

// goldenWeights are the fixture's weights of a model.
func goldenWeights(t *testing.T, m goldenModel, cfg *configs.Config) *Weights {
	t.Helper()
	w := NewWeights(cfg)
	if len(m.Weights) != len(w.Tensors) {
		t.Fatalf("%d tensors in the fixture, %d in the model", len(m.Weights), len(w.Tensors))
	}
	for i, tensor := range w.Tensors {
		from := m.Weights[tensor.Name]
		if len(from) != tensor.Len() {
			t.Fatalf("%s: %d values in the fixture, %d in the model", tensor.Name, len(from), tensor.Len())
		}
		copy(w.Data[i], from)
	}
	return w
}

// TestGoldenModels compares the loss of whole models, in every kind of graph, and every parameter's gradient with
// PyTorch's.
func TestGoldenModels(t *testing.T) {
	var file struct{ Models []goldenModel }
	readGolden(t, "models.json", &file)
	if len(file.Models) == 0 {
		t.Fatal("no models in the fixture")
	}
	for _, m := range file.Models {
		for _, mode := range slices.Sorted(maps.Keys(m.Modes)) {
			want := m.Modes[mode]
			cfg := goldenConfig(t, m, mode)
			run := func(name string, opt Options) {
				t.Run(m.Name+"/"+mode+"/"+name, func(t *testing.T) {
					opt.Batch, opt.Seq, opt.Float = m.Batch, m.Positions, mode == "float"
					w := goldenWeights(t, m, cfg)
					g, err := Build(cfg, w, opt)
					if err != nil {
						t.Fatal(err)
					}
					defer g.Close()
					loss, err := g.Run(m.IDs, m.Targets)
					if err != nil {
						t.Fatal(err)
					}
					if d := math.Abs(loss/want.Loss - 1); !(d <= goldenTolerance) {
						t.Errorf("loss %.8f, PyTorch %.8f: relative difference %.1e", loss, want.Loss, d)
					}
					if d := math.Abs(g.AuxLoss() - want.Balance); !(d <= goldenTolerance*want.Balance) {
						t.Errorf("load-balancing loss %.8f, PyTorch %.8f", g.AuxLoss(), want.Balance)
					}
					if !opt.Train || mode == "weights_only" { // the fixture holds no gradients of that mode
						return
					}
					if len(want.Gradients) != len(w.Tensors) {
						t.Fatalf("%d gradients in the fixture, %d tensors", len(want.Gradients), len(w.Tensors))
					}
					for i, tensor := range w.Tensors {
						if d := goldenDifference(g.Gradients()[i], want.Gradients[tensor.Name]); !(d <= goldenTolerance) {
							t.Errorf("gradient of %s: relative difference %.1e", tensor.Name, d)
						}
					}
				})
			}
			run("train", Options{Train: true})
			run("score", Options{})
			if mode == "fake_quant" {
				run("exact", Options{Exact: true})
			}
		}
	}
}
