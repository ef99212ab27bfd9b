package placement

import (
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// variants are models that are read in different ways.
func variants() map[string]*configs.Config {
	out := map[string]*configs.Config{}
	for name, change := range map[string]func(c *configs.Config){
		"combo":      func(*configs.Config) {},
		"swiglu":     func(c *configs.Config) { c.Activation = configs.SwiGLU },
		"experts":    func(c *configs.Config) { c.Experts = 4 },
		"untied":     func(c *configs.Config) { c.TieEmbeddings = false },
		"plain":      func(c *configs.Config) { c.PLEDim = 0 },
		"odd":        func(c *configs.Config) { c.DFF, c.VocabSize = 65, 301 },
		"2 bits":     func(c *configs.Config) { c.Quant.Weights.Bits, c.Quant.Weights.Scale = 2, configs.ScaleF16 },
		"one scale":  func(c *configs.Config) { c.Quant.Weights.Group = 0 },
		"bigrams":    func(c *configs.Config) { c.NgramRows = 5000 },
		"two layers": func(c *configs.Config) { c.NLayers = 2 },
	} {
		c := combo()
		change(c)
		out[name] = c
	}
	return out
}

// A token alone, with every neuron, reads what the budget of the configuration says, tensor by tensor.
func TestPredictOneToken(t *testing.T) {
	for name, c := range variants() {
		var run Conditions
		run.Feed(c, 9, 1, true)
		p := Predict(c, run)
		for i, b := range c.Budget().Tensors {
			if p.Tensors[i] != b.TokenRead {
				t.Errorf("%s: %s: %d bytes, the budget says %d", name, b.Name, p.Tensors[i], b.TokenRead)
			}
		}
		width := c.DModel / c.NHeads
		if want := int64(10 * c.NLayers * c.NHeads * (2*width + 8)); p.Cache != want || p.Rotary != int64(4*width) {
			t.Errorf("%s: cache %d, rotary %d, want %d and %d", name, p.Cache, p.Rotary, want, 4*width)
		}
	}
}

// Counted by hand for combo: 72 bytes a row of 128 columns, 64 bytes a column of down, 512 bytes of scales for a group of
// its columns.
func TestPredictNeuronsAndHead(t *testing.T) {
	c := combo()
	run := Conditions{Positions: 5, Passes: 2, Heads: 1, HeadRows: 100, Attended: 15, Layers: make([]Neurons, 6)}
	run.Layers[3] = Neurons{Experts: 2, Up: 11, Down: 7, Groups: 3}
	p := Predict(c, run)
	want := map[string]int64{
		configs.TokenEmbedding:                          100*72 + 5*72,
		configs.PLETable:                                5 * 216,
		configs.PLEProjection:                           2 * 384 * 72,
		configs.OutputNorm:                              512,
		configs.LayerTensor(3, configs.Gate):            2 * 320 * 72,
		configs.LayerTensor(3, configs.Up):              11 * 72,
		configs.LayerTensor(3, configs.Down):            7*64 + 3*512,
		configs.LayerTensor(2, configs.Gate):            0,
		configs.LayerTensor(2, configs.QKV):             2 * 384 * 72,
		configs.LayerTensor(2, configs.PLENorm):         2 * 512,
		configs.LayerTensor(3, configs.AttentionNorm):   2 * 512,
		configs.LayerTensor(3, configs.PLEOutput):       2 * 128 * (32 + 4),
		configs.LayerTensor(5, configs.Down):            0,
		configs.LayerTensor(5, configs.AttentionOutput): 2 * 128 * 72,
	}
	for i, w := range c.Tensors() {
		if bytes, ok := want[w.Name]; ok && p.Tensors[i] != bytes {
			t.Errorf("%s: %d bytes, want %d", w.Name, p.Tensors[i], bytes)
		}
	}
	if p.Head != 7200 || p.Rotary != 5*128 || p.Cache != 15*6*4*(64+8) {
		t.Errorf("head %d, rotary %d, cache %d", p.Head, p.Rotary, p.Cache)
	}
}

// Runs add up, in any order, and a longer pass reads the weights no more often than a shorter one.
func TestConditionsAdd(t *testing.T) {
	for name, c := range variants() {
		var single, block, sum Conditions
		for i := range 4 {
			single.Feed(c, i, 1, i == 3)
		}
		block.Feed(c, 0, 4, true)
		sum.Add(block)
		sum.Add(single)
		a, b, both := Predict(c, single), Predict(c, block), Predict(c, sum)
		if both.Total() != a.Total()+b.Total() || both.Head != a.Head+b.Head {
			t.Errorf("%s: %d together, %d and %d apart", name, both.Total(), a.Total(), b.Total())
		}
		if a.Cache != b.Cache || a.Rotary != b.Rotary || a.Head != b.Head || b.Total() >= a.Total() {
			t.Errorf("%s: single %d, in a block %d", name, a.Total(), b.Total())
		}
		few := single
		few.Layers = make([]Neurons, c.NLayers)
		for l := range few.Layers {
			few.Layers[l] = Neurons{Experts: 4, Up: 3, Down: 2, Groups: 2}
		}
		dense := Predict(c, few.Dense(c))
		if dense.Total() != a.Total() {
			t.Errorf("%s: every neuron %d, want %d", name, dense.Total(), a.Total())
		}
	}
}

// Up and down of combo are 6 x 2 x 23,040 of the bytes.
func TestSilenceIsExplained(t *testing.T) {
	c := combo()
	for activation, want := range map[configs.Activation]bool{configs.ReLU: true, configs.SwiGLU: false} {
		c.Activation = activation
		notes := strings.Join(plan(t, c, Buffers{Arena: 70000, Cache: 442368}, 3<<20).Notes, "\n")
		if strings.Contains(notes, "about 27,648 of these 1,024,032 bytes a token for each tenth of the neurons") != want {
			t.Errorf("%s: %s", activation, notes)
		}
	}
}
