// Package pages makes the large slices of training, whose memory the system is asked to give in huge pages. With small
// ones, a good part of a training step goes into the translation of addresses: the tensors of one micro-batch lie on
// tens of thousands of pages of 4 KB, far more than a processor keeps translations of.
//
// It is advice, and no error where the system does not know it: the slices are ordinary memory of Go.
package pages

import (
	"runtime"
	"unsafe"
)

// large is the size in bytes from which a slice is worth the advice.
const large = 64 << 10

// Make is make([]T, n).
func Make[T int8 | uint8 | int32 | float32](n int) []T {
	x := make([]T, n)
	if bytes := uintptr(n) * unsafe.Sizeof(*new(T)); bytes >= large {
		// At once, before the first use: memory keeps the pages that it was first touched with.
		advise(uintptr(unsafe.Pointer(unsafe.SliceData(x))), bytes)
		runtime.KeepAlive(x)
	}
	return x
}
