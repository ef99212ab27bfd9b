package engine

// #include "chiplm.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// Digest is the FNV-1a-64 of a run: positions, ids and the bits of all logits. Two runs with the same digest computed
// the same bits.
type Digest uint64

// NewDigest is the digest of nothing.
func NewDigest() Digest { return Digest(C.chiplm_digest_start()) }

// Add returns the digest with one position added: the id fed there, and its row of logits.
func (d Digest) Add(position int, id int32, logits []float32) Digest {
	return Digest(C.chiplm_digest_add(C.uint64_t(d), C.uint32_t(position), C.int32_t(id), logitsAt(logits),
		C.uint32_t(len(logits))))
}

// RNG is the state of splitmix64, the generator of [Sample]. Any value starts a sequence.
type RNG uint64

// Next returns the next number.
func (r *RNG) Next() uint64 { return uint64(C.chiplm_random((*C.uint64_t)(unsafe.Pointer(r)))) }

// NLL is the negative log-likelihood of a token, in nats, given the logits that predict it. Errors: ErrID, ErrNotFinite,
// ErrArgument (no logits).
func NLL(logits []float32, id int32) (float64, error) {
	var sum, shift C.float
	status := C.chiplm_score(logitsAt(logits), C.uint32_t(len(logits)), C.int32_t(id), &sum, &shift)
	if err := failure(status); err != nil {
		return 0, fmt.Errorf("score of token %d among %d: %w", id, len(logits), err)
	}
	return math.Log(float64(sum)) - float64(shift), nil
}

// ArgMax is the id of the largest logit, the lowest on a tie. Errors: ErrNotFinite, ErrArgument (no logits).
func ArgMax(logits []float32) (int32, error) {
	var id C.int32_t
	if err := failure(C.chiplm_arg_max(logitsAt(logits), C.uint32_t(len(logits)), &id)); err != nil {
		return 0, fmt.Errorf("arg-max of %d logits: %w", len(logits), err)
	}
	return int32(id), nil
}

// Top returns the k best tokens, ordered by logit down, then id up; k is cut to the number of logits. Errors:
// ErrNotFinite, ErrArgument (no logits, or k below 1).
func Top(logits []float32, k int) ([]TokenLogit, error) {
	k = min(k, len(logits))
	if k < 1 {
		return nil, fmt.Errorf("best %d of %d logits: %w", k, len(logits), ErrArgument)
	}
	order := make([]int32, k)
	status := C.chiplm_top(logitsAt(logits), C.uint32_t(len(logits)), C.uint32_t(k), idsAt(order))
	if err := failure(status); err != nil {
		return nil, fmt.Errorf("best %d of %d logits: %w", k, len(logits), err)
	}
	top := make([]TokenLogit, k)
	for i, id := range order {
		top[i] = TokenLogit{ID: id, Logit: logits[id]}
	}
	return top, nil
}

// Sample draws a token. Temperature 0 is arg-max, and leaves rng alone; topK keeps the k best tokens, 0 keeps all. The
// same logits, settings and rng give the same token on every machine. Errors: ErrTemperature, ErrNotFinite, ErrArgument
// (no logits, or topK below 0).
func Sample(logits []float32, temperature float32, topK int, rng *RNG) (int32, error) {
	if topK < 0 || len(logits) == 0 {
		return 0, fmt.Errorf("sample: top-k %d of %d logits: %w", topK, len(logits), ErrArgument)
	}
	k := min(topK, len(logits))
	if k == 0 {
		k = len(logits)
	}
	var id C.int32_t
	order := make([]int32, k)
	status := C.chiplm_sample(logitsAt(logits), C.uint32_t(len(logits)), C.float(temperature), C.uint32_t(k),
		(*C.uint64_t)(unsafe.Pointer(rng)), idsAt(order), &id)
	if err := failure(status); err != nil {
		return 0, fmt.Errorf("sample: temperature %v: %w", temperature, err)
	}
	return int32(id), nil
}
