// Package eval scores models on held-out stories and lets them write.
//
// The measure is bits per byte: the nats of a story's tokens, divided by ln 2 and by the bytes of the raw story, which
// are known before any tokenizer sees it. So models with different tokenizers stand in one table. The score of a model
// is what the C engine computes from its quantised weights, which is what the chip computes, bit for bit; the training
// graph can be asked for a second opinion (`--reference trainer`), in float and in its exact mode.
//
// Caveats: a story longer than the model's context is cut into windows without overlap, so every window's first tokens
// are predicted from little; a model with a longer context is at an advantage there, as it is in use. Numbers from
// different stories do not compare, and one report never mixes them.
package eval
