// Package results keeps what trained models scored: one [Run] a line of a JSON lines file. `chiplm sweep` appends to it,
// and `chiplm compare` renders it.
//
// A line carries the hashes of all that decides its figures (corpus, tokenizer, configuration, program, held-out stories),
// so that a reader can refuse to put figures side by side that do not compare: see [Comparable].
//
// A training that diverged is a line too, with its reason and without scores: whoever compares arms must know of runs
// that are missing for that reason ([Failures]).
//
// # Caveats
//
// A line is written whole or, when a program is killed in the middle of it, cut short; [Read] skips such a last line, [Cut]
// tells of it, and [Append] writes in its place. A last line that is whole but for its end, as an editor may save it, counts.
// Any other line that cannot be read is an error, and so is one with neither a score nor a failure: nothing is dropped
// silently, and all readers take a line for the same.
package results
