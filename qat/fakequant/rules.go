// Package fakequant offers the rules of package qat as vectorised C functions, and the fake-quantisation of a weight
// matrix as a Gorgonia operation whose gradient passes straight through (Bengio, Léonard and Courville 2013).
package fakequant

// #cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -Werror
// #cgo LDFLAGS: -lm
// #include "fakequant.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/pages"
	"github.com/chiplm/chiplm/qat/simd"
)

// Block is the number of rows whose codes lie together in a [Packed] matrix.
const Block = C.FQ_BLOCK

// Quads is the number of groups of four codes in a row of cols columns.
func Quads(cols int) int { return (cols + 3) / 4 }

// Packed holds the codes, scales and biases of one or several matrices of equal size as integer products read them; see
// fakequant.h for the order.
type Packed struct {
	Spec             qat.Spec
	Parts            int // matrices, such as experts; each starts a block
	Rows, Cols       int // of each
	Codes            []int8
	Scales           []float32
	Bias             []int32
	codes1, scaling1 int // length of a part in Codes, and in Scales and Bias
}

// NewPacked makes room for parts matrices of rows x cols.
func NewPacked(spec qat.Spec, parts, rows, cols int) *Packed {
	blocks := (rows + Block - 1) / Block
	p := &Packed{Spec: spec, Parts: parts, Rows: rows, Cols: cols, codes1: blocks * Block * 4 * Quads(cols),
		scaling1: blocks * Block * qat.Groups(spec, cols)}
	p.Codes, p.Scales, p.Bias = pages.Make[int8](parts*p.codes1), pages.Make[float32](parts*p.scaling1), pages.Make[int32](parts*p.scaling1)
	return p
}

// Part are codes, scales and biases of one of the matrices.
func (p *Packed) Part(i int) (codes []int8, scales []float32, bias []int32) {
	return p.Codes[i*p.codes1 : (i+1)*p.codes1], p.Scales[i*p.scaling1 : (i+1)*p.scaling1], p.Bias[i*p.scaling1 : (i+1)*p.scaling1]
}

// Weights quantises a matrix of rows x cols: values gets code times scale, packed, when not nil, what integer products
// read; its parts are consecutive rows of the matrix. Weights that are not finite give scales that are not finite, so
// that a diverged run shows. It panics when a slice is too short.
func Weights(spec qat.Spec, w []float32, rows, cols int, values []float32, packed *Packed) {
	need(len(w), rows*cols)
	need(len(values), rows*cols)
	half := C.int32_t(0)
	if spec.Scale == configs.ScaleF16 {
		half = 1
	}
	group := spec.Group
	if group <= 0 || group > cols {
		group = cols
	}
	parts := 1
	if packed != nil {
		parts = packed.Parts
		if packed.Parts*packed.Rows != rows || packed.Cols != cols || packed.Spec != spec {
			panic(fmt.Sprintf("fakequant: %d x %d weights for %d packed matrices of %d x %d", rows, cols, parts, packed.Rows, packed.Cols))
		}
	}
	for i := range parts {
		var codes *C.int8_t
		var scales *C.float
		var bias *C.int32_t
		if packed != nil {
			c, s, b := packed.Part(i)
			codes, scales, bias = (*C.int8_t)(unsafe.Pointer(unsafe.SliceData(c))), ptr(s), (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(b)))
		}
		at := i * (rows / parts) * cols
		C.fq_weights(ptr(w[at:]), C.int64_t(rows/parts), C.int64_t(cols), C.int64_t(group), C.int32_t(qat.MaxCode(spec.Bits)),
			C.float(qat.Divisor(spec)), half,
			ptr(values[at:]), codes, scales, bias)
	}
}

// Activations quantises each row of x, rows x cols, as one vector of 8 bits. values, when not nil, gets code times scale;
// codes gets rows of 4*Quads(cols) codes plus 128, padded with 128; scales gets one float a row.
func Activations(x []float32, rows, cols int, values []float32, codes []uint8, scales []float32) {
	need(len(x), rows*cols)
	if values != nil {
		need(len(values), rows*cols)
	}
	need(len(codes), rows*4*Quads(cols))
	need(len(scales), rows)
	C.fq_activations(ptr(x), C.int64_t(rows), C.int64_t(cols), ptr(values), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(codes))), ptr(scales))
}

func init() { simd.Follow(func(p simd.Path) { C.fq_use(C.int32_t(p)) }) }

// rule names a scalar rule for apply.
type rule int32

const (
	ruleRNE     rule = C.FQ_RNE
	ruleExp     rule = C.FQ_EXP
	ruleSigmoid rule = C.FQ_SIGMOID
	ruleSiLU    rule = C.FQ_SILU
	ruleGELU    rule = C.FQ_GELU
	ruleHalf    rule = C.FQ_HALF
)

// apply computes a scalar rule over a slice: the way in which the tests see the C form of the rules.
func apply(r rule, dst, src []float32) {
	need(len(dst), len(src))
	C.fq_map(C.int32_t(r), ptr(src), ptr(dst), C.int64_t(len(src)))
}

func sum8(v []float32) float32 { return float32(C.fq_sum8(ptr(v), C.int64_t(len(v)))) }

func need(have, want int) {
	if have < want {
		panic(fmt.Sprintf("fakequant: a slice of %d values where %d are needed", have, want))
	}
}

func ptr(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }
