// Command classes writes encode_classes.h, the C engine's table of the characters that splitting text into words tells
// apart: letters, numbers and white space, as package bpe has them. Go's own tables play no part, so that a new release of
// Go does not change how a board cuts text.
//
//	go generate ./engine/classes
package main
