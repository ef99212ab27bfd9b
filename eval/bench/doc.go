// Package bench measures how fast a model decodes and reads prompts, and how many bytes each token takes: `chiplm bench
// decode`.
//
// The bytes are counted by the engine, are the same on every machine, and depend on the text, since silent neurons are not
// read. The speeds are those of this machine.
package bench
