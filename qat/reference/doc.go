// Package reference runs a model by docs/numerics.md in plain Go: one position after the other, one product after the
// other, with nothing shared between positions but lists of past keys and values.
//
// # Overview
//
// [Model.Forward] gives the logits of every position. It shares the building blocks of package qat with the training
// graph, and nothing with the C engine, so it can witness against both: the engine's tests compare bits with it, and it
// makes the golden of a model that no training graph here has trained.
//
// # Caveats
//
// It is slow, a thousandth of the engine's speed, and allocates at every step.
package reference
