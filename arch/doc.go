// Package arch builds the model of docs/numerics.md as a Gorgonia graph: a decoder of RMSNorm, rotary attention with
// normalised queries and keys, a gated feed-forward or top-1 experts, per-layer embeddings, and a tied head.
//
// Gorgonia owns the graph, its differentiation and the virtual machine. The operations are coarse, one file each; their
// inner loops are in package kernels, and each operation owns its buffers, allocated once by [Build].
//
// How the gradients are kept cheap. Gorgonia adds up the gradients of a node with several consumers by built-in
// additions, which allocate. Here every node has one differentiable consumer: where the residual stream forks, the
// branch that starts with a norm (or a projection) receives the residual's gradient and adds it in its own loop (type
// fork). An operation with several gradients computes all of them at once; the nodes for the others take the first
// as an input that only orders them, and return its buffers. Quantisation passes gradients straight through.
//
// Every operation says what kind of work it is and how much; with a profile in [Options] its time is charged to that
// (package profile).
//
// What is inside the model can be looked at after a run, step by step: [Graph.Steps]. The buffers of the operations are
// what is read, so it costs a run nothing.
//
// Caveats. A Graph serves one goroutine; several graphs over the same [Weights] may run at the same time. The result
// of [Graph.Gradients], [Graph.NLL], [Graph.Logits] and [Step.Values] is overwritten by the next run.
package arch
