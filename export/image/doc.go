// Package image writes and reads the file that carries a model to a chip: sizes, weights, tokenizer, and a golden that
// proves the run. The format is described in docs/image.md.
//
// # Overview
//
// [Encode] lays a [Model] out and returns the bytes; [WriteFile] puts them under a final name in one step (temporary
// name, sync, rename). [Read] refuses everything that the format's page refuses, each with its own error; [Check] runs
// the same steps and then looks inside: codes and scales, rotary tables, tokenizer, golden, padding.
// The reader shares no packing code with the quantiser or with the C engine, so it can witness for both.
//
// # Caveats
//
// A file is held in memory whole. Codes and scales of a [Model] that was read alias the file's bytes.
// Check does not run the model: that the golden's digest is right is for the engine to say.
package image
