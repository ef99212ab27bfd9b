package export

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export/image"
)

// The golden's prompt: end-of-text, then the start of this text, up to goldenIDs ids in all.
const (
	goldenText = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park with her best friend."
	goldenIDs  = 32
	goldenTop  = 8
)

// golden runs the prompt through the training graph in exact mode. The graph quantises the weights itself, by the
// configuration, so a fault in the image's packing cannot hide in it.
func golden(c *configs.Config, tensors map[string][]float32, tok *bpe.Tokenizer) (image.Golden, error) {
	ids := goldenPrompt(c, tok)
	w, err := arch.WeightsOf(c, tensors)
	if err != nil {
		return image.Golden{}, err
	}
	g, err := arch.Build(c, w, arch.Options{Batch: 1, Seq: len(ids), Exact: true, Logits: true})
	if err != nil {
		return image.Golden{}, err
	}
	defer g.Close()
	none := make([]int32, len(ids)) // no position is scored
	for i := range none {
		none[i] = -1
	}
	if _, err := g.Run(ids, none); err != nil {
		return image.Golden{}, err
	}
	logits := g.Logits()
	if len(logits) != len(ids)*c.VocabSize {
		return image.Golden{}, fmt.Errorf("the graph gave %d logits for %d positions of %d", len(logits), len(ids), c.VocabSize)
	}
	if i := notFinite(logits); i >= 0 {
		return image.Golden{}, fmt.Errorf("position %d, token %d: the logit is %v; first tensor at fault: %s; take an earlier checkpoint",
			i/c.VocabSize, i%c.VocabSize, logits[i], cmp.Or(g.FirstNonFinite(), "the logits"))
	}
	return goldenOf(ids, logits), nil
}

// goldenPrompt is end-of-text and the start of a story.
func goldenPrompt(c *configs.Config, tok *bpe.Tokenizer) []int32 {
	ids := append([]int32{tok.EOT()}, tok.Encode(nil, []byte(goldenText))...)
	return ids[:min(len(ids), goldenIDs, c.ContextLength)]
}

// notFinite is the index of the first logit that is not finite, or -1.
func notFinite(logits []float32) int {
	return slices.IndexFunc(logits, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
}

// goldenOf is the golden of a prompt with the logits of all its positions.
func goldenOf(ids []int32, logits []float32) image.Golden {
	vocab := len(logits) / len(ids)
	out := image.Golden{Digest: digest(ids, logits), Top: top(logits[len(logits)-vocab:], goldenTop)}
	for _, id := range ids {
		out.Prompt = append(out.Prompt, uint32(id))
	}
	return out
}

// digest is FNV-1a-64 over position, id and the bits of all logits of each position, little endian.
func digest(ids []int32, logits []float32) uint64 {
	h := uint64(0xcbf29ce484222325)
	word := func(v uint32) {
		for range 4 {
			h = (h ^ uint64(v&0xff)) * 0x100000001b3
			v >>= 8
		}
	}
	vocab := len(logits) / len(ids)
	for p, id := range ids {
		word(uint32(p))
		word(uint32(id))
		for _, v := range logits[p*vocab : (p+1)*vocab] {
			word(math.Float32bits(v))
		}
	}
	return h
}

// top lists the k best tokens by (logit down, id up).
func top(logits []float32, k int) []image.Scored {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return logits[order[a]] > logits[order[b]] })
	var out []image.Scored
	for _, i := range order[:min(k, len(order))] {
		out = append(out, image.Scored{ID: uint32(i), Logit: logits[i]})
	}
	return out
}
