package engine

// #include "chiplm.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// Search says how the output layer looks for the best tokens. Rows of the head that are read give the same bits as in full.
type Search struct {
	// Full reads every row: the one way for an image without clusters.
	Full bool
	// Clusters is how many clusters are looked into, those with the highest bounds; 0: all that can matter.
	Clusters int
	// Margin of the bounds, 0 to 1. With 1 and no limit of clusters the search proves its result: it is that of the full
	// head, always. Less reads less, and may miss.
	Margin float32
}

// Certified is the search that proves its result where the image has clusters, and reads every row where not.
func (im *Image) Certified() Search { return Search{Full: im.c.model.clusters == 0, Margin: 1} }

// SearchFor is the way to find the best k tokens that is likely to read least: a certified search for a few of them, and
// every row for more, or where the image has no clusters.
func (im *Image) SearchFor(k int) Search {
	if k > C.CHIPLM_SEARCH_MOST {
		return Search{Full: true}
	}
	return im.Certified()
}

// ForwardBest feeds ids, at least one, and finds the k best tokens after the last of them, ordered by logit down, then id
// up; k is cut to the vocabulary. They are fewer than k only if a search with a limit looked at fewer rows. Errors as
// Forward, and ErrClusters when the image has no clusters and the search is not full.
func (e *Engine) ForwardBest(ids []int32, search Search, k int) ([]TokenLogit, error) {
	k = min(k, int(e.image.c.model.vocab_size))
	if k < 1 || search.Clusters < 0 {
		return nil, fmt.Errorf("engine: the best %d tokens in %d clusters: %w", k, search.Clusters, ErrArgument)
	}
	best, logits := make([]int32, k), make([]float32, k)
	var found C.uint32_t
	s := &C.chiplm_search{full: C.bool(search.Full), clusters: C.uint32_t(min(search.Clusters, math.MaxInt32)), margin: C.float(search.Margin)}
	err := e.call(func(lm *C.chiplm) C.chiplm_status {
		return C.chiplm_forward_best(lm, idsAt(ids), C.size_t(len(ids)), s, C.uint32_t(k), idsAt(best), logitsAt(logits), &found)
	})
	if err != nil {
		return nil, err
	}
	out := make([]TokenLogit, found)
	for i := range out {
		out[i] = TokenLogit{ID: best[i], Logit: logits[i]}
	}
	return out, nil
}

// Draw draws one of the candidates, which are in the order of [Top]: with the k best it draws what [Sample] would draw
// from all logits with that k. Temperature 0 takes the first, and leaves rng alone. Errors: ErrTemperature,
// ErrNotFinite, ErrArgument (no candidates).
func Draw(best []TokenLogit, temperature float32, rng *RNG) (TokenLogit, error) {
	logits := make([]float32, len(best))
	for i, b := range best {
		logits[i] = b.Logit
	}
	var index C.uint32_t
	status := C.chiplm_draw(logitsAt(logits), C.uint32_t(len(logits)), C.float(temperature), (*C.uint64_t)(unsafe.Pointer(rng)), &index)
	if err := failure(status); err != nil {
		return TokenLogit{}, fmt.Errorf("draw among %d: temperature %v: %w", len(best), temperature, err)
	}
	return best[index], nil
}

// AddChoice returns a digest of choices with one more: a token and its logit, as a search gave them.
func (d Digest) AddChoice(t TokenLogit) Digest {
	return Digest(C.chiplm_digest_add_choice(C.uint64_t(d), C.int32_t(t.ID), C.float(t.Logit)))
}
