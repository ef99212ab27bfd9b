// Package export turns a checkpoint into what a chip needs: an image with its memory placement, and the proof that the
// engine computes what the trainer does.
//
// # Overview
//
// [BuildImage] quantises the weights, computes a golden with the training graph in its exact mode, plans the placement
// and encodes the image. [Command] is `chiplm export`: it writes a folder with the image, its placement, sizes and
// golden, lets the C engine run the golden, and puts the folder under its final name only when every bit agrees.
// [ImportCommand] does the same for model files of another program, which package esp32ai reads. [ImageCommand] is
// `chiplm image`. Subpackages: image (the file format), targets (chips), placement (the planner),
// clusters (the output layer that reads a part of its rows).
//
// # Caveats
//
// The golden never comes from the engine, so `verified` means that trainer and engine agree to the bit on its prompt
// (for an import, the plain reference and the engine).
// It says nothing of the speed on a chip: that is a model's estimate.
package export
