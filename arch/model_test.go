package arch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// testConfig is a small model; edit changes it.
func testConfig(edit func(*configs.Config)) *configs.Config {
	c := &configs.Config{
		Name: "test", VocabSize: 29, DModel: 12, NLayers: 2, NHeads: 3, DFF: 11, ContextLength: 16, PLEDim: 5,
		TieEmbeddings: true, Activation: configs.ReLU, QKNorm: true, AttentionScale: 1, RopeTheta: 10000, NormEps: 1e-6,
		Quant: configs.Quant{
			Weights:     configs.WeightQuant{Bits: 4, Group: 32, Scale: configs.ScaleF32},
			Activations: configs.ActivationQuant{Bits: 8},
		},
		Train: configs.Train{RouterAux: 0.01},
	}
	if edit != nil {
		edit(c)
	}
	return c
}

// comboConfig is the reference model.
func comboConfig() *configs.Config {
	return testConfig(func(c *configs.Config) {
		c.Name, c.VocabSize, c.DModel, c.NLayers, c.NHeads = "combo", 4096, 128, 6, 4
		c.DFF, c.ContextLength, c.PLEDim, c.Quant.Weights.Group = 320, 256, 64, 64
		c.Train.ZeroInitProj = true
	})
}

// variants are configurations that between them take every path through the model.
func variants() map[string]*configs.Config {
	return map[string]*configs.Config{
		"dense":           testConfig(nil),
		"swiglu":          testConfig(func(c *configs.Config) { c.Activation = configs.SwiGLU }),
		"no ple":          testConfig(func(c *configs.Config) { c.PLEDim = 0 }),
		"untied":          testConfig(func(c *configs.Config) { c.TieEmbeddings = false }),
		"no qk norm":      testConfig(func(c *configs.Config) { c.QKNorm = false }),
		"sharp":           testConfig(func(c *configs.Config) { c.AttentionScale = 3.7 }),
		"bigrams":         testConfig(func(c *configs.Config) { c.NgramRows = 37 }),
		"bigrams, untied": testConfig(func(c *configs.Config) { c.NgramRows, c.PLEDim, c.TieEmbeddings = 5, 0, false }),
		"one head":        testConfig(func(c *configs.Config) { c.NHeads = 1 }),
		"one layer":       testConfig(func(c *configs.Config) { c.NLayers = 1 }),
		"experts":         testConfig(func(c *configs.Config) { c.Experts = 4 }),
		"2 experts":       testConfig(func(c *configs.Config) { c.Experts, c.PLEDim, c.Train.RouterAux = 2, 0, 0.5 }),
		"short group":     testConfig(func(c *configs.Config) { c.DModel, c.DFF, c.Quant.Weights.Group = 36, 50, 32 }),
	}
}

// randomWeights makes weights in which nothing is zero or one, so that every gradient counts.
func randomWeights(cfg *configs.Config, seed uint64) *Weights {
	w := NewWeights(cfg)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i, t := range w.Tensors {
		for j := range w.Data[i] {
			v := rng.NormFloat64() * 0.3
			if t.Class == configs.ClassNorm {
				v = 1 + v
			}
			w.Data[i][j] = float32(v)
		}
	}
	return w
}

// randomBatch makes ids with repetitions, and targets of which some are not scored.
func randomBatch(cfg *configs.Config, n int, seed uint64) (ids, targets []int32) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		ids = append(ids, rng.Int32N(int32(cfg.VocabSize)))
		targets = append(targets, rng.Int32N(int32(cfg.VocabSize)))
		if i%5 == 3 {
			targets[i] = -1
		}
	}
	return ids, targets
}

func mustBuild(t testing.TB, cfg *configs.Config, w *Weights, opt Options) *Graph {
	t.Helper()
	g, err := Build(cfg, w, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func mustRun(t testing.TB, g *Graph, ids, targets []int32) float64 {
	t.Helper()
	loss, err := g.Run(ids, targets)
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// TestNumericGradient compares every parameter's gradient with central differences of the loss, in float mode.
func TestNumericGradient(t *testing.T) {
	for name, cfg := range variants() {
		for _, shape := range [][2]int{{1, 1}, {2, 5}} {
			t.Run(fmt.Sprintf("%s/%dx%d", name, shape[0], shape[1]), func(t *testing.T) {
				w := randomWeights(cfg, 7)
				g := mustBuild(t, cfg, w, Options{Batch: shape[0], Seq: shape[1], Train: true, Float: true})
				ids, targets := randomBatch(cfg, shape[0]*shape[1], 3)
				checkGradient(t, cfg, w, g, ids, targets)
			})
		}
	}
}

// checkGradient compares each tensor's gradient with central differences at some of its elements and along a random
// direction. The loss is summed in double precision.
func checkGradient(t *testing.T, cfg *configs.Config, w *Weights, g *Graph, ids, targets []int32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	mustRun(t, g, ids, targets)
	var grads [][]float32
	for _, d := range g.Gradients() {
		grads = append(grads, append([]float32(nil), d...))
	}
	total := func() float64 { return mustRun(t, g, ids, targets) + cfg.Train.RouterAux*g.AuxLoss() }
	for i, tensor := range w.Tensors {
		data := w.Data[i]
		saved := append([]float32(nil), data...)
		for range 3 {
			// A random direction of unit length times the root of the count: each element moves by about h.
			const h = 5e-4
			dir := make([]float64, len(data))
			norm := 0.0
			for j := range dir {
				dir[j] = rng.NormFloat64()
				norm += dir[j] * dir[j]
			}
			norm = math.Sqrt(norm / float64(min(len(dir), 30)))
			move := func(sign float64) float64 {
				for j := range data {
					data[j] = saved[j] + float32(sign*h*dir[j]/norm)
				}
				return total()
			}
			diff := (move(1) - move(-1)) / 2
			want := 0.0
			scale := 0.0
			for j := range data {
				want += float64(grads[i][j]) * h * dir[j] / norm
				scale += math.Pow(float64(grads[i][j])*h, 2)
			}
			copy(data, saved)
			if math.Abs(diff-want) > 2e-6+0.02*math.Sqrt(scale) {
				t.Errorf("%s: the loss moves by %.3g, the gradient says %.3g", tensor.Name, diff, want)
			}
		}
	}
}

// TestModesAgree holds exact mode, the training form and their losses close: they differ in rounding only.
func TestModesAgree(t *testing.T) {
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			w := randomWeights(cfg, 7)
			ids, targets := randomBatch(cfg, 2*9, 3)
			var losses []float64
			for _, o := range []Options{{Train: true}, {Logits: true}, {Exact: true}} {
				o.Batch, o.Seq = 2, 9
				losses = append(losses, mustRun(t, mustBuild(t, cfg, w, o), ids, targets))
			}
			if losses[0] != losses[1] || math.Abs(losses[0]-losses[2]) > 0.02 {
				t.Errorf("losses in training, evaluation and exact mode: %v", losses)
			}
		})
	}
}

func BenchmarkStepCombo(b *testing.B) {
	cfg := comboConfig()
	w := InitWeights(cfg, 1)
	g, err := Build(cfg, w, Options{Batch: 4, Seq: 256, Train: true})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	ids, targets := randomBatch(cfg, 4*256, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Run(ids, targets); err != nil {
			b.Fatal(err)
		}
	}
	tokens := float64(b.N) * 4 * 256
	b.ReportMetric(tokens/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(tokens*trainingFLOPs(cfg, 256)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// trainingFLOPs is the model arithmetic per token: 6 per weight used in products, and causal attention.
func trainingFLOPs(cfg *configs.Config, seq int) float64 {
	d, l := cfg.DModel, cfg.NLayers
	layer := 4*d*d + 3*d*cfg.DFF + 2*d*cfg.PLEDim
	weights := l*layer + d*l*cfg.PLEDim + d*cfg.VocabSize
	return 6*float64(weights) + 6*float64(l*d*(seq+1))
}
