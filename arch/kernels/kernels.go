// Package kernels holds the inner loops of the training operations in C: forward passes in the order of
// docs/numerics.md, their gradients, and matrix products. They are compiled for several instruction sets (package simd),
// and computed on the calling thread.
//
// Every function works on row-major float32 slices owned by the caller, allocates nothing and keeps nothing. A slice
// that is too short panics before C sees it.
package kernels

// #cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -Werror
// #cgo LDFLAGS: -lm
// #include "kernels.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/fakequant"
)

// Mode says how quantised products are computed.
type Mode int32

// The modes: without quantisation; with quantised weights alone, on their values; with quantised weights and activations,
// on integer codes (equal to the engine bit for bit).
const (
	Float  Mode = C.K_FLOAT
	Values Mode = C.K_VALUES
	Codes  Mode = C.K_CODES
)

func ptr(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }

func iptr(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s))) }

func n(i int) C.int64_t { return C.int64_t(i) }

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// need panics when a slice is shorter than a kernel will read or write.
func need(what string, have, want int) {
	if have < want {
		panic(fmt.Sprintf("kernels: %s holds %d values where %d are needed", what, have, want))
	}
}

// Mat is a row-major matrix inside a slice: element (r, c) is at r*Stride + c.
type Mat struct {
	Data   []float32
	Stride int
	Trans  bool // used transposed
}

// M is a matrix with the given stride.
func M(data []float32, stride int) Mat { return Mat{Data: data, Stride: stride} }

// T is the transpose.
func (m Mat) T() Mat { return Mat{Data: m.Data, Stride: m.Stride, Trans: !m.Trans} }

func (m Mat) check(what string, rows, cols int) {
	if m.Trans {
		rows, cols = cols, rows
	}
	if cols > m.Stride {
		panic(fmt.Sprintf("kernels: %s has %d columns in a stride of %d", what, cols, m.Stride))
	}
	need(what, len(m.Data), (rows-1)*m.Stride+cols)
}

// Gemm computes c = a*b, or adds it to c, with a rows x inner and b inner x cols. Every element is a chain of fused
// multiply-adds in ascending order, the same on every path but [simd.Library].
func Gemm(rows, cols, inner int, a, b Mat, add bool, c Mat) {
	a.check("a of a product", rows, inner)
	b.check("b of a product", inner, cols)
	c.check("the result of a product", rows, cols)
	C.k_gemm(flag(a.Trans), flag(b.Trans), n(rows), n(cols), n(inner), ptr(a.Data), n(a.Stride), ptr(b.Data), n(b.Stride),
		flag(add), ptr(c.Data), n(c.Stride))
}

// GemmCodes computes c [rows, cols] = a*x, or adds it to c, with a rows x inner, transposed in memory, and x [inner, cols] given by the
// codes plus 128, in rows of 4*Quads(cols), and scales of its rows. It is [Gemm] on the values code times scale.
func GemmCodes(rows, cols, inner int, a Mat, codes []uint8, scales []float32, add bool, c Mat) {
	if !a.Trans {
		panic("kernels: a of a product with codes is not transposed")
	}
	a.check("a of a product", rows, inner)
	need("codes", len(codes), inner*4*fakequant.Quads(cols))
	need("scales", len(scales), inner)
	c.check("the result of a product", rows, cols)
	C.k_gemm_codes(n(rows), n(cols), n(inner), ptr(a.Data), n(a.Stride), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(codes))),
		ptr(scales), flag(add), ptr(c.Data), n(c.Stride))
}

// ProductIntegers computes y [rows, out] from activations, codes x [rows, 4*Quads(in)] with scales sx, and one part of
// packed weights [out, in]: bit for bit the engine's result.
func ProductIntegers(x []uint8, sx []float32, rows int, w *fakequant.Packed, part int, y Mat) {
	need("x", len(x), rows*4*fakequant.Quads(w.Cols))
	need("sx", len(sx), rows)
	y.check("y", rows, w.Rows)
	codes, scales, bias := w.Part(part)
	C.k_product_integers((*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(x))), ptr(sx), n(rows), n(w.Cols),
		(*C.int8_t)(unsafe.Pointer(unsafe.SliceData(codes))), ptr(scales), iptr(bias), n(w.Rows), n(groupWidth(w.Spec, w.Cols)),
		C.int32_t(qat.MaxCode(w.Spec.Bits)), ptr(y.Data), n(y.Stride))
}

// ProductSum8 computes y [rows, out] = x [rows, in] times w [out, in], each sum in the order of sum8.
func ProductSum8(x []float32, rows, in int, w []float32, out int, y Mat) {
	need("x", len(x), rows*in)
	need("w", len(w), out*in)
	y.check("y", rows, out)
	C.k_product_sum8(ptr(x), n(rows), n(in), ptr(w), n(out), ptr(y.Data), n(y.Stride))
}

// groupWidth is the number of columns that share a scale.
func groupWidth(spec qat.Spec, cols int) int {
	if spec.Group <= 0 || spec.Group > cols {
		return cols
	}
	return spec.Group
}

// Add computes y = a + b.
func Add(a, b, y []float32) {
	need("a", len(a), len(y))
	need("b", len(b), len(y))
	C.k_add(ptr(a), ptr(b), ptr(y), n(len(y)))
}

// Scale multiplies x by f.
func Scale(x []float32, f float32) { C.k_scale(ptr(x), n(len(x)), C.float(f)) }

// Finite says whether x holds no NaN and no infinity.
func Finite(x []float32) bool { return C.k_finite(ptr(x), n(len(x))) != 0 }

// RMSNorm computes y = x / rms(x) * gain on rows as long as gain; inv gets 1 / rms of each row.
func RMSNorm(x, gain []float32, eps float32, y, inv []float32) {
	rows := len(x) / len(gain)
	need("y", len(y), len(x))
	need("inv", len(inv), rows)
	C.k_rmsnorm(ptr(x), ptr(gain), n(rows), n(len(gain)), C.float(eps), ptr(y), ptr(inv))
}

// RMSNormGrad is the gradient of [RMSNorm]; add, when not nil, is added to dx.
func RMSNormGrad(x, gain, inv, dy, add, dx, dgain []float32) {
	rows := len(x) / len(gain)
	need("inv", len(inv), rows)
	need("dy", len(dy), len(x))
	need("dx", len(dx), len(x))
	need("dgain", len(dgain), len(gain))
	if add != nil {
		need("add", len(add), len(x))
	}
	C.k_rmsnorm_grad(ptr(x), ptr(gain), ptr(inv), ptr(dy), ptr(add), n(rows), n(len(gain)), ptr(dx), ptr(dgain))
}

func activation(a configs.Activation) C.int32_t { return flag(a == configs.SwiGLU) }

// Gate computes y [rows, f] = act(gate) * up from gu [rows, 2f].
func Gate(gu []float32, rows, f int, act configs.Activation, y []float32) {
	need("gu", len(gu), 2*rows*f)
	need("y", len(y), rows*f)
	C.k_gate(ptr(gu), n(rows), n(f), activation(act), ptr(y))
}

// GateGrad is the gradient of [Gate]: dgu [rows, 2f].
func GateGrad(gu, dy []float32, rows, f int, act configs.Activation, dgu []float32) {
	need("gu", len(gu), 2*rows*f)
	need("dgu", len(dgu), 2*rows*f)
	need("dy", len(dy), rows*f)
	C.k_gate_grad(ptr(gu), ptr(dy), n(rows), n(f), activation(act), ptr(dgu))
}

// GELUMul computes y [rows, p] = gelu(g) * e.
func GELUMul(g []float32, e Mat, rows, p int, y []float32) {
	need("g", len(g), rows*p)
	e.check("e", rows, p)
	need("y", len(y), rows*p)
	C.k_gelu_mul(ptr(g), ptr(e.Data), n(e.Stride), n(rows), n(p), ptr(y))
}

// GELUMulGrad is the gradient of [GELUMul]; de has the stride of e.
func GELUMulGrad(g []float32, e Mat, dy []float32, rows, p int, dg []float32, de Mat) {
	need("g", len(g), rows*p)
	e.check("e", rows, p)
	need("dy", len(dy), rows*p)
	need("dg", len(dg), rows*p)
	de.check("de", rows, p)
	if de.Stride != e.Stride {
		panic("kernels: de and e differ in stride")
	}
	C.k_gelu_mul_grad(ptr(g), ptr(e.Data), ptr(dy), n(e.Stride), n(rows), n(p), ptr(dg), ptr(de.Data))
}

func checkIDs(ids []int32, cols, size int) {
	for _, id := range ids {
		if id < 0 || (int(id)+1)*cols > size {
			panic(fmt.Sprintf("kernels: id %d is outside a table of %d rows", id, size/cols))
		}
	}
}

// Gather copies rows ids of a table of cols columns into y, quantised and dequantised unless mode is Float.
func Gather(table []float32, ids []int32, cols int, spec qat.Spec, mode Mode, y []float32) {
	checkIDs(ids, cols, len(table))
	need("y", len(y), len(ids)*cols)
	maxCode := qat.MaxCode(spec.Bits)
	if mode == Float {
		maxCode = 0
	}
	C.k_gather(ptr(table), iptr(ids), n(len(ids)), n(cols), n(groupWidth(spec, cols)), C.int32_t(maxCode),
		C.float(qat.Divisor(spec)), flag(spec.Scale == configs.ScaleF16), ptr(y))
}

// ScatterAdd adds scale * dy, a row per id, to the rows ids of dtable.
func ScatterAdd(dy []float32, ids []int32, cols int, scale float32, dtable []float32) {
	checkIDs(ids, cols, len(dtable))
	need("dy", len(dy), len(ids)*cols)
	C.k_scatter_add(ptr(dy), iptr(ids), n(len(ids)), n(cols), C.float(scale), ptr(dtable))
}

// ClearRows zeroes the rows ids of a table of cols columns.
func ClearRows(ids []int32, cols int, dtable []float32) {
	checkIDs(ids, cols, len(dtable))
	C.k_clear_rows(iptr(ids), n(len(ids)), n(cols), ptr(dtable))
}

// CrossEntropy scores rows of cols logits against targets: nll gets nats, 0 where the target is negative and NaN where a
// logit of the row is not finite. With grad, the logits become (softmax - one-hot) * weight.
func CrossEntropy(logits Mat, targets []int32, cols int, grad bool, weight float32, nll []float32) {
	logits.check("logits", len(targets), cols)
	need("nll", len(nll), len(targets))
	for _, t := range targets {
		if int(t) >= cols {
			panic(fmt.Sprintf("kernels: target %d is outside %d logits", t, cols))
		}
	}
	C.k_cross_entropy(ptr(logits.Data), n(logits.Stride), iptr(targets), n(len(targets)), n(cols), flag(grad), C.float(weight), ptr(nll))
}
