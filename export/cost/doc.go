// Package cost says what a token costs on a chip, before anything runs there, and what would make it cheaper.
//
// # Overview
//
// The model itself is in package placement ([placement.Layout.Estimate]), its figures are in a target file. A [Subject] is
// a model to cost, from a configuration, a checkpoint or an image; [Subject.Report] plans and estimates it, and tries what
// would help. [Predict] holds the model against published speeds. [ReadBenchmark] reads what the benchmark of a board
// prints, and [Benchmark.Calibrate] puts it into a target. [Command] is `chiplm cost`.
//
// # Caveats
//
// All of it is an estimate until a board has measured; docs/cost.md says what each figure rests on.
package cost
