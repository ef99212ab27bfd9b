package train

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/simd"
)

// TestTrainingGivesTheSameBytesEverywhere takes a few steps and compares the weights with a digest stored here. It must
// hold on every path but the library's, on every processor, with every compiler. Where the arithmetic of training is
// changed on purpose, it gets a new digest; that another machine or path has another one is an error.
func TestTrainingGivesTheSameBytesEverywhere(t *testing.T) {
	base := func() *configs.Config {
		c := tinyConfig()
		c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.ContextLength, c.PLEDim, c.QKNorm = 61, 24, 2, 2, 72, 70, 12, true
		c.Train.BatchTokens, c.Train.Tokens = 420, 1680 // four steps of three micro-batches
		return c
	}
	for name, test := range map[string]struct {
		edit func(*configs.Config)
		want uint64
	}{
		"per-layer embeddings": {func(*configs.Config) {}, 0x3227d972c96a96e2},
		"silu, 8 bits, untied": {func(c *configs.Config) {
			c.Activation, c.TieEmbeddings, c.PLEDim, c.QKNorm, c.Quant.Weights.Bits = configs.SwiGLU, false, 0, false, 8
			c.Train.Schedule, c.Train.MinLR = "cosine", 0.1
		}, 0x23039034a706437b},
		"experts, 2 bits, half scales": {func(c *configs.Config) {
			c.Experts, c.PLEDim, c.Quant.Weights.Bits, c.Quant.Weights.Scale = 3, 0, 2, configs.ScaleF16
			c.Train.RouterAux = 0.01
		}, 0x64b203935e8cbf74},
		"first without quantisation": {func(c *configs.Config) { c.Quant.StartStep = 2 }, 0x2ac34bdb454d766b},
		"float activations":          {func(c *configs.Config) { c.Quant.Activations.Bits = 32 }, 0x98bf929a04609700},
	} {
		for _, path := range simd.Paths() {
			if path == simd.Library {
				continue // its order of summation is its own
			}
			t.Run(name+"/"+path.String(), func(t *testing.T) {
				defer simd.Use(simd.Use(path))
				cfg := base()
				test.edit(cfg)
				w := arch.InitWeights(cfg, 1)
				tr, err := NewTrainer(cfg, w.Data, ArchBuilder(cfg, w), fakeSequences{int32(cfg.VocabSize)}, 2)
				if err != nil {
					t.Fatal(err)
				}
				defer tr.Close()
				for range tr.plan.Steps {
					if _, err := tr.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				h := fnv.New64a()
				var word [4]byte
				for _, tensor := range w.Data {
					for _, x := range tensor {
						binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
						h.Write(word[:])
					}
				}
				if got := h.Sum64(); got != test.want {
					t.Errorf("after %d steps the weights have the digest %#x, want %#x", tr.plan.Steps, got, test.want)
				}
			})
		}
	}
}
