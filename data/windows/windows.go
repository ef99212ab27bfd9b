// Package windows turns a story into what a model is asked about it. The validation of training and the scores of
// package eval both go by it, so that they price the same tokens.
package windows

import "fmt"

// Encoder turns text into tokens and knows the bytes of a token. Package bpe offers it.
type Encoder interface {
	Encode(dst []int32, text []byte) []int32
	Bytes(id int32) []byte
}

// Encode appends a story's tokens to dst. It fails unless they stand for as many bytes as the story has: bits per byte
// would be wrong.
func Encode(enc Encoder, dst []int32, story []byte) ([]int32, error) {
	start := len(dst)
	dst = enc.Encode(dst, story)
	covered := 0
	for _, id := range dst[start:] {
		covered += len(enc.Bytes(id))
	}
	if covered != len(story) {
		return dst, fmt.Errorf("has %d bytes, but its tokens stand for %d: the tokenizer is broken", len(story), covered)
	}
	return dst, nil
}

// Cut cuts a story into stretches of at most context tokens, without overlap. What is to be predicted is the story's
// tokens and then the closing end-of-text, each exactly once. A window's inputs are end-of-text followed by its targets
// but the last, so that inputs and targets have equal length and targets[i] follows inputs[:i+1].
// The slices that yield gets are reused for the next window.
func Cut(story []int32, endOfText int32, context int, yield func(inputs, targets []int32) error) error {
	inputs := make([]int32, 0, context)
	targets := make([]int32, 0, context)
	for start := 0; start <= len(story); start += context {
		targets = append(targets[:0], story[start:min(start+context, len(story))]...)
		if len(targets) < context {
			targets = append(targets, endOfText)
		}
		inputs = append(append(inputs[:0], endOfText), targets[:len(targets)-1]...)
		if err := yield(inputs, targets); err != nil {
			return err
		}
	}
	return nil
}
