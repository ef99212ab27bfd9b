// Package safetensors reads and writes float32 tensors in the safetensors format of Hugging Face: an 8-byte
// little-endian length, a JSON header with name, type, shape and byte range of each tensor, then the values.
//
// The package is our own because a checkpoint needs what the Go libraries for this format do not offer together: values
// streamed to and from a file (so that a hash is taken in the same pass and no second copy is in memory), tensors in a
// chosen order (equal tensors then give equal bytes), and a reader that is strict. It refuses a name given twice, byte
// ranges that overlap or leave holes, sizes that do not match the shape, and bytes after the last tensor; and it
// allocates nothing that the size of the file does not justify, whatever the header claims.
//
// Caveat: F32 is the only type. Files with others are refused with [ErrType].
package safetensors

import (
	"errors"
	"fmt"
	"math"
)

// Tensor is a named array of float32 values, the last dimension running fastest. A shape without dimensions is a scalar.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Errors of this package. Those of reading say that the file is not what its name claims.
var (
	// ErrHeader occurs when the header is cut off, too large, not JSON, or contradicts itself.
	ErrHeader = errors.New("not a valid safetensors header")
	// ErrType occurs when a tensor is not of type F32.
	ErrType = errors.New("tensor type is not F32")
	// ErrSize occurs when the file is shorter or longer than its header says.
	ErrSize = errors.New("file size does not match the safetensors header")
	// ErrTensor occurs when a tensor given to Write cannot be stored.
	ErrTensor = errors.New("tensor cannot be stored")
)

const (
	lengthBytes    = 8
	maxHeaderBytes = 16 << 20
	maxDimensions  = 8
	metadataKey    = "__metadata__"
	typeF32        = "F32"
	align          = 8 // the header is padded so that the values are aligned
)

// elements is the product of the dimensions; false if one is negative or the bytes would not fit into an int64.
func elements(shape []int) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d > 0 && n > math.MaxInt64/8/int64(d) {
			return 0, false
		}
		n *= int64(d)
	}
	return n, true
}

// check refuses tensors that a reader would refuse.
func check(tensors []Tensor) error {
	seen := map[string]bool{}
	for _, t := range tensors {
		n, ok := elements(t.Shape)
		switch {
		case t.Name == "" || t.Name == metadataKey:
			return fmt.Errorf("%w: the name %q is not allowed", ErrTensor, t.Name)
		case seen[t.Name]:
			return fmt.Errorf("%w: %s is there twice", ErrTensor, t.Name)
		case !ok || n != int64(len(t.Data)):
			return fmt.Errorf("%w: %s has %d values, its shape %v says %d", ErrTensor, t.Name, len(t.Data), t.Shape, n)
		case len(t.Shape) > maxDimensions:
			return fmt.Errorf("%w: %s has more than %d dimensions", ErrTensor, t.Name, maxDimensions)
		}
		seen[t.Name] = true
	}
	return nil
}
