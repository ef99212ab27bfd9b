// Package engine runs chiplm images: it binds the C engine that lies beside it. The engine is plain C11 without allocation,
// files or an operating system, written to be compiled for the chip as it stands and to compute there the same bits as
// here; chiplm.h documents it and shows how to use it, docs/numerics.md gives the arithmetic, docs/image.md the file.
//
//	im, err := engine.OpenImage("exports/combo-esp32s3/model.clm")
//	e, err := engine.New(im, engine.Options{})
//	err = e.ForwardLast(prompt, logits)
//	id, err := engine.Sample(logits, 0.8, 40, &rng)
//
// An [Image] is checked whole when it is opened, mapped read-only, and shared by any number of engines. An [Engine]
// holds one sequence: its keys, values and position. Methods of one engine may be called from several goroutines, but
// run one after the other; engines over one image run in parallel.
//
// Memory of images and engines lies outside Go's heap. Close releases it; so does the garbage collector, later.
//
// A mapped file must not be shortened while it is open: the operating system ends a program that reads past the end of
// a mapping. Writers that replace a file by renaming, as chiplm export does, are harmless.
package engine
