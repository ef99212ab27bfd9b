package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/chiplm/chiplm/arch"
)

// The sampled stories of a training run: a glimpse, not a measurement.
const (
	samplePrompt      = "Once upon a time"
	sampleTokens      = 64 // prompt included
	sampleTemperature = 0.7
	sampleTopK        = 40
)

// Sampler writes the start of a story with the training graph, which computes all positions anew for every token. It
// is for a look at a run under way; `chiplm sample` writes whole stories with the engine.
type Sampler struct {
	graph        Graph
	float        bool
	vocab        int
	seq          int
	ids, targets []int32
	order        []int
}

// NewSampler makes a sampler for a vocabulary and a context length. It builds its graph at the first story.
func NewSampler(vocab, context int) *Sampler {
	seq := min(context, sampleTokens)
	return &Sampler{vocab: vocab, seq: seq, ids: make([]int32, seq), targets: make([]int32, seq)}
}

// Story samples with the weights of now. The same weights and seed give the same story.
func (s *Sampler) Story(ctx context.Context, build Builder, tok Encoder, float bool, seed uint64) (string, error) {
	if s.graph == nil || s.float != float {
		s.Close()
		g, err := buildGraph(ctx, build, arch.Options{Batch: 1, Seq: s.seq, Float: float, Logits: true})
		if err != nil {
			return "", fmt.Errorf("build the sampling graph: %w", err)
		}
		s.graph, s.float = g, float
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	tokens := tok.Encode([]int32{tok.EOT()}, []byte(samplePrompt))
	if len(tokens) >= s.seq { // a context too short for the prompt
		tokens = tokens[:1]
	}
	s.graph.HoldWeights(false)
	for len(tokens) < s.seq {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n := copy(s.ids, tokens)
		for i := range s.ids {
			s.targets[i] = -1
			if i >= n {
				s.ids[i] = tok.EOT()
			}
		}
		s.targets[n-1] = tok.EOT() // some target there must be; the loss is not looked at
		if _, err := s.graph.Run(s.ids, s.targets); err != nil {
			return "", err
		}
		s.graph.HoldWeights(true)
		id := s.choose(s.graph.Logits()[(n-1)*s.vocab:n*s.vocab], rng)
		if id == tok.EOT() {
			break
		}
		tokens = append(tokens, id)
	}
	var text []byte
	for _, id := range tokens[1:] {
		text = append(text, tok.Bytes(id)...)
	}
	return string(text), nil
}

// choose draws one of the best tokens.
func (s *Sampler) choose(logits []float32, rng *rand.Rand) int32 {
	if len(s.order) != len(logits) {
		s.order = make([]int, len(logits))
	}
	for i := range s.order {
		s.order[i] = i
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	best := s.order[:min(sampleTopK, len(s.order))]
	weight := func(i int) float64 {
		return math.Exp(float64(logits[i]-logits[best[0]]) / sampleTemperature)
	}
	total := 0.0
	for _, i := range best {
		total += weight(i)
	}
	r := rng.Float64() * total
	for _, i := range best {
		if r -= weight(i); r < 0 {
			return int32(i)
		}
	}
	return int32(best[len(best)-1])
}

// Close gives the graph up.
func (s *Sampler) Close() {
	if s.graph != nil {
		_ = s.graph.Close() // it only gives memory back
		s.graph = nil
	}
}
