// Package qat is the one definition of quantisation: how weights and activations become integer codes with scales, how
// codes are packed in an image, and the float32 functions that go with them (docs/numerics.md). Training, export and
// the tests of the C engine use it, so that they agree to the bit.
//
// The package is plain Go and slow; rules.h holds the same rules as C functions that a compiler vectorises, and
// package fakequant offers them to the training graph. A test holds the two together.
//
// Caveats. Go may fuse a multiplication and an addition on some platforms; every product that is added to something is
// therefore converted with float32(...) first, which forbids it. The scale of a zero group or vector is 0 and so are
// its codes.
package qat
