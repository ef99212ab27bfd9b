// Package train trains models: `chiplm train`.
//
// [Run] makes a run ready, from a model file or from a checkpoint, and drives a [Loop]. The loop has a [Trainer] take
// optimiser steps and calls hooks: metrics after every step; validation, samples and checkpoints after every so many;
// the loss curve at the end. A trainer owns the weights, an [Optimizer] and a [Team] of workers, each with a graph of
// package arch over the shared weights.
//
// # The same answer whatever happens
//
// A step is a fixed list of micro-batches. A worker runs whole micro-batches, and gradients are added up in the order
// of the micro-batches, so that the weights after a step are the same bytes on any number of workers. The learning rate
// and the training sequences are pure functions of their number, so that weights, moments and two counters are the whole
// state: a run that was stopped or killed goes on from its newest checkpoint to the bytes of a run never stopped.
//
// A run folder holds checkpoints (package checkpoints), metrics.jsonl with a [Record] a line, loss.png and the
// tokenizer. A lock keeps a second process out. Metrics of steps after the newest checkpoint are dropped on resume, for
// these steps are taken again.
//
// # Caveats
//
// The bytes are the same on every processor, but not with simd.Library: BLAS has an order of summation of its own. A loss
// or gradient that is not finite ends the run before the weights change. Validation runs the training graph, with
// quantisation as in training; what the chip computes is scored by `chiplm eval bpb`.
package train
