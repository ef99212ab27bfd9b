package train

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/simd"
)

// TestTrainingGivesTheSameBytesEverywhere takes a few steps and compares the weights with a digest stored here. It must
// hold on every path but the library's, on every processor, with every compiler, on any number of workers. Where the arithmetic of training is
// changed on purpose, it gets a new digest; that another machine or path has another one is an error.
func TestTrainingGivesTheSameBytesEverywhere(t *testing.T) {
	base := func() *configs.Config {
		c := tinyConfig()
		c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.ContextLength, c.PLEDim, c.QKNorm = 61, 24, 2, 2, 72, 70, 12, true
		c.Train.BatchTokens, c.Train.Tokens = 420, 1680 // four steps of three micro-batches
		c.Train.Clip = 0.1                              // reached by every gradient, so that the sum of squares counts
		return c
	}
	for name, test := range map[string]struct {
		workers []int
		edit    func(*configs.Config)
		want    uint64
	}{
		"per-layer embeddings": {[]int{1, 2, 3}, func(*configs.Config) {}, 0xfc3d1e2b2e6c748},
		"silu, 8 bits, untied": {[]int{2}, func(c *configs.Config) {
			c.Activation, c.TieEmbeddings, c.PLEDim, c.QKNorm, c.Quant.Weights.Bits = configs.SwiGLU, false, 0, false, 8
			c.Train.Schedule, c.Train.MinLR = "cosine", 0.1
		}, 0xb5350505892e56ff},
		"experts, 2 bits, half scales": {[]int{3}, func(c *configs.Config) {
			c.Experts, c.PLEDim, c.Quant.Weights.Bits, c.Quant.Weights.Scale = 3, 0, 2, configs.ScaleF16
			c.Train.RouterAux = 0.01
		}, 0x456ad32040d53872},
		"first without quantisation": {[]int{1}, func(c *configs.Config) { c.Quant.StartStep = 2 }, 0x2f9069747007e4da},
		"float activations":          {[]int{2}, func(c *configs.Config) { c.Quant.Activations.Bits = 32 }, 0x372c8164e7f1e14},
		"muon, a bigram table, sharper attention, short sequences": {[]int{1, 3}, func(c *configs.Config) {
			c.Train.Optimizer = OptimizerMuon
			c.Train.Muon = configs.Muon{LR: 0.02, Momentum: 0.95, Steps: 5, WeightDecay: 0.05}
			c.NgramRows, c.AttentionScale, c.Train.StoriesApart = 29, 1.4, true
		}, 0xecc6e1d844fafa92},
		"muon with rows of equal size, experts": {[]int{2}, func(c *configs.Config) {
			c.Train.Optimizer, c.Experts = OptimizerMuon, 3
			c.Train.Muon = configs.Muon{LR: 0.02, Momentum: 0.9, Steps: 5, WeightDecay: 0.05, NormaliseRows: true}
		}, 0x8238c1a250562073},
	} {
		for _, path := range simd.Paths() {
			if path == simd.Library {
				continue // its order of summation is its own
			}
			for _, workers := range test.workers {
				t.Run(fmt.Sprintf("%s/%v/%d workers", name, path, workers), func(t *testing.T) {
					defer simd.Use(simd.Use(path))
					cfg := base()
					test.edit(cfg)
					w := arch.InitWeights(cfg, 1)
					tr, err := NewTrainer(cfg, w.Data, ArchBuilder(cfg, w), fakeFor(cfg), workers)
					if err != nil {
						t.Fatal(err)
					}
					defer tr.Close()
					for range tr.plan.Steps {
						r, err := tr.Step(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if r.GradNorm < cfg.Train.Clip {
							t.Errorf("a gradient of norm %v is not clipped", r.GradNorm)
						}
					}
					if got := digest(w.Data); got != test.want {
						t.Errorf("after %d steps the weights have the digest %#x, want %#x", tr.plan.Steps, got, test.want)
					}
				})
			}
		}
	}
}

// digest is a hash of the bits of weights.
func digest(weights [][]float32) uint64 {
	h := fnv.New64a()
	var word [4]byte
	for _, tensor := range weights {
		for _, x := range tensor {
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
			h.Write(word[:])
		}
	}
	return h.Sum64()
}
