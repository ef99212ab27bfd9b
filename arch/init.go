package arch

import (
	"hash/fnv"
	"math"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/splitmix"
)

// embeddingStd is the standard deviation with which embeddings start. The tied head multiplies by it, so that the first
// logits are small and the first loss is close to ln(vocab_size).
const embeddingStd = 0.02

// InitWeights makes the parameters with which training starts, the same bytes on every platform for a seed. Norms are
// 1. Embedding tables have a standard deviation of 0.02, matrices of 1/sqrt(columns); with zero_init_proj the output
// projections of attention and feed-forward are zero, so that a layer starts as the identity. The bigram table is zero.
func InitWeights(cfg *configs.Config, seed int64) *Weights {
	w := NewWeights(cfg)
	for i, t := range w.Tensors {
		part := t.Name[strings.LastIndexByte(t.Name, '.')+1:]
		switch {
		case t.Class == configs.ClassNorm:
			for j := range w.Data[i] {
				w.Data[i][j] = 1
			}
		case t.Class == configs.ClassNgramTable:
		case cfg.Train.ZeroInitProj && (part == configs.AttentionOutput || part == configs.Down):
		case t.Class == configs.ClassEmbedding || t.Class == configs.ClassHead || t.Class == configs.ClassPLETable:
			fillNormal(w.Data[i], embeddingStd, seed, t.Name)
		default:
			fillNormal(w.Data[i], 1/math.Sqrt(float64(t.Cols())), seed, t.Name)
		}
	}
	return w
}

// fillNormal draws from a sum of twelve uniform numbers: nearly normal, and exact in integers, so that no platform's
// logarithm or fused multiply-add changes a bit. Each tensor has its own stream, chosen by its name.
func fillNormal(dst []float32, std float64, seed int64, name string) {
	h := fnv.New64a()
	h.Write([]byte(name))
	random := splitmix.New(uint64(seed), h.Sum64())
	for i := range dst {
		sum := int64(0)
		for range 3 {
			for z := random.Next(); z != 0; z >>= 16 {
				sum += int64(z & 0xffff)
			}
		}
		dst[i] = float32(float64(2*sum-12*0xffff) / (2 * 0x10000) * std)
	}
}
