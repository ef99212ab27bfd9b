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
)

// Form says what quantisation writes: integer codes held in floats, or the values code times scale.
type Form int32

// The two forms.
const (
	Codes  Form = 0
	Values Form = 1
)

// Matrix quantises rows x cols weights into out. scales holds one float per row and group, or is nil. Weights that are
// not finite give scales that are not finite, so that a diverged run shows. It panics when a slice is too short.
func Matrix(spec qat.Spec, w []float32, rows, cols int, form Form, out, scales []float32) {
	group := spec.Group
	if group <= 0 || group > cols {
		group = cols
	}
	half := C.int32_t(0)
	if spec.Scale == configs.ScaleF16 {
		half = 1
	}
	need(len(w), rows*cols)
	need(len(out), rows*cols)
	if scales != nil {
		need(len(scales), rows*qat.Groups(spec, cols))
	}
	C.fq_matrix(ptr(w), C.int64_t(rows), C.int64_t(cols), C.int64_t(group), C.int32_t(qat.MaxCode(spec.Bits)), half,
		C.int32_t(form), ptr(out), ptr(scales))
}

// Vectors quantises each row of x, rows x cols activations, as one vector. scales holds one float a row, or is nil.
func Vectors(x []float32, rows, cols int, form Form, out, scales []float32) {
	need(len(x), rows*cols)
	need(len(out), rows*cols)
	if scales != nil {
		need(len(scales), rows)
	}
	C.fq_vectors(ptr(x), C.int64_t(rows), C.int64_t(cols), C.int32_t(form), ptr(out), ptr(scales))
}

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
		panic(fmt.Sprintf("fakequant: a slice of %d floats where %d are needed", have, want))
	}
}

func ptr(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }
