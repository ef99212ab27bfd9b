package pie

import (
	"math/rand/v2"
	"slices"
)

// Access says what a kernel may do with a buffer.
type Access int

// A buffer may be read, written, or both.
const (
	Read Access = 1 << iota
	Write
)

// Argument is one argument of a kernel, in the order of the C prototype: a word, or a buffer whose address is passed.
type Argument struct {
	Name   string // "scratch": what the buffer holds at the end is no result
	Word   uint32 // where Buffer is nil; floats as their bits
	Buffer []byte // all the kernel may touch: padding that the prototype promises is part of it. At a multiple of 64
	Access Access
}

// Shape is what the work of a kernel depends on. Fields that a kernel has no use for are 0.
type Shape struct {
	Rows    int  `json:"rows,omitempty"`    // of a matrix; of a transposed one the rows of its block
	Columns int  `json:"columns,omitempty"` // of a matrix, or the length of a vector
	Bits    int  `json:"bits,omitempty"`    // of weights
	Group   int  `json:"group"`             // columns that share a scale; 0: the row
	Half    bool `json:"half,omitempty"`    // scales are float16
	Listed  int  `json:"listed,omitempty"`  // rows, or columns of a transposed matrix, that a list names; 0: all
	N       int  `json:"n,omitempty"`       // positions of attention, or vectors
}

// Values is the kind of values that a case is made of.
type Values int

// Random values, and the extremes of codes and floats.
const (
	Random      Values = iota
	AllLeast           // every code the least: -7, -1, -127
	AllMost            // every code the largest
	Alternating        // least and largest by turns
	AllZero            // zero codes, zero vectors, zero scales
	Tiny               // floats about 2^-100, where vectors count as zero
	Huge               // floats near the largest that stay finite, and infinities and NaNs where the kernel takes them
	valuesCount
)

// EdgeValues are all kinds of values but the random ones.
func EdgeValues() []Values {
	var all []Values
	for v := AllLeast; v < valuesCount; v++ {
		all = append(all, v)
	}
	return all
}

// Kernel describes an assembly function.
type Kernel struct {
	Symbol string // the C name, such as chiplm_pie_rows4
	File   string // the .S file that has it
	About  string // one line for tables

	// Shapes are those of the reference model, for tables and benchmarks.
	Shapes []Shape
	// Any draws a shape that the kernel must take, edges among them: one row, odd counts, a last group that is short.
	Any func(r *rand.Rand) Shape
	// Make makes the arguments of a case. Outputs start with bytes that no kernel writes by chance.
	Make func(s Shape, v Values, r *rand.Rand) []Argument
	// Work is the number of weights, or of values, that a case of the shape has: what cycles are divided by.
	Work func(s Shape) int
	// Returns says that the function returns a word, which is part of its result.
	Returns bool
}

// Kernels lists all kernels, in the order of tables.
func Kernels() []Kernel {
	return slices.Concat(products(), attentionKernels(), elementwiseKernels())
}
