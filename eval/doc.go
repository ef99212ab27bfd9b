// Package eval scores models on held-out stories, holds the C engine to the training graph, and lets models write.
//
// The measure is bits per byte: the nats of a story's tokens, divided by ln 2 and by the bytes of the raw story, which
// are known before any tokenizer sees it. So models with different tokenizers stand in one table. The score of a model
// is what the C engine computes from its quantised weights, which is what the chip computes, bit for bit; the training
// graph can be asked for a second opinion (`--reference trainer`), in float and in its exact mode.
//
// `chiplm verify` looks closer: engine and exact graph run the same windows side by side, and every position is compared,
// in loss, in the chosen token, and in the bits of all logits. On a sample of windows the steps on the way are compared
// too (the engine's [engine.Engine.Trace], the graph's [arch.Graph.Steps]), and the first difference is named.
//
// `chiplm sample` lets a model write, a story or the holes of a [Template]; a [Constraint] says what may stand in a text.
// With --count, here and in the scores, the bytes that the engine counts are held against the planner's prediction, for
// which the run is watched from outside. Package bench measures speed.
//
// Caveats: a story longer than the model's context is cut into windows without overlap, so every window's first tokens
// are predicted from little; a model with a longer context is at an advantage there, as it is in use. Numbers from
// different stories do not compare, and one report never mixes them.
package eval
