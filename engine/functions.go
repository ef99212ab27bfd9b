package engine

// #include "kernels.h"
// #include "numerics.h"
// static float quantise(int path, const float *x, size_t n, int8_t *codes) {
//     return chiplm_kernels_of((chiplm_path)path)->quantise(x, n, n, codes, NULL);
// }
// static uint64_t scratch(int path, uint32_t batch, uint64_t padded, uint64_t groups) {
//     return chiplm_kernels_of((chiplm_path)path)->scratch_bytes(batch, padded, groups);
// }
// static void product(int path, chiplm_tensor w, chiplm_product p, const void *codes, const void *scales,
//                     const void *list, void *x, void *sums, void *x_scales, const void *which, void *y, void *scratch) {
//     w.codes.at = codes, w.scales.at = scales;
//     p.w = &w, p.list = list, p.x.codes = x, p.x.sums = sums, p.x.scales = x_scales, p.which = which, p.y = y;
//     p.scratch = scratch;
//     const chiplm_kernels *kernels = chiplm_kernels_of((chiplm_path)path);
//     (w.block == 0 ? kernels->product : kernels->product_transposed)(&p);
// }
import "C"

import "unsafe"

// The kernels' float functions, for the tests: test files cannot use cgo. A run of a whole model rounds to 8 bits so
// often that a last bit gone wrong in them can go unseen; only a comparison of the functions themselves shows it.

func expOf(x float32) float32 { return float32(C.chiplm_exp(C.float(x))) }

func siluOf(x float32) float32 { return float32(C.chiplm_silu(C.float(x))) }

func geluOf(x float32) float32 { return float32(C.chiplm_gelu(C.float(x))) }

// sum8Of adds up at least one value.
func sum8Of(v []float32) float32 {
	return float32(C.chiplm_sum8((*C.float)(unsafe.Pointer(&v[0])), C.size_t(len(v))))
}

// quantiseOf quantises at least one value and returns the scale; codes is as long as x.
func quantiseOf(path Path, x []float32, codes []int8) float32 {
	return float32(C.quantise(C.int(path), (*C.float)(unsafe.Pointer(&x[0])), C.size_t(len(x)), (*C.int8_t)(unsafe.Pointer(&codes[0]))))
}

// productCall is a call of a path's product: see chiplm_product. The memory is the caller's, so that a test can watch it.
type productCall struct {
	rows, columns, bits, group, block int
	half                              bool // the scales are f16
	stride                            int
	codes, scales                     []byte
	first, count                      int    // rows to compute
	list                              []byte // u32, or nil
	x, sums, xScales                  []byte // of inputs: i8 [batch, xStride], i32 [batch, xStride/32], f32 [batch]
	xStride                           int
	which                             []byte // u32: the inputs to take
	ldy                               int
}

func (c *productCall) groups() int {
	if c.group == 0 {
		return 1
	}
	return (c.columns + c.group - 1) / c.group
}

// scratchBytes is what a path wants in a model with products like this one, for up to batch inputs.
func (c *productCall) scratchBytes(path Path, batch int) int {
	return int(C.scratch(C.int(path), C.uint32_t(batch), C.uint64_t((max(c.columns, c.block)+63)/64*64), C.uint64_t(c.groups())))
}

// run computes the product into y, f32 [batch, ldy]. scratch starts at a multiple of 64.
func (c *productCall) run(path Path, y, scratch []byte) {
	w := C.chiplm_tensor{rows: C.uint32_t(c.rows), columns: C.uint32_t(c.columns), bits: C.uint32_t(c.bits), group: C.uint32_t(c.group),
		groups: C.uint32_t(c.groups()), scale_type: C.CHIPLM_F32, block: C.uint32_t(c.block), stride: C.uint32_t(c.stride)}
	if c.half {
		w.scale_type = C.CHIPLM_F16
	}
	w.codes.bytes, w.scales.bytes = C.size_t(len(c.codes)), C.size_t(len(c.scales))
	p := C.chiplm_product{first: C.uint32_t(c.first), rows: C.uint32_t(c.count), listed: C.uint32_t(len(c.list) / 4),
		n: C.uint32_t(len(c.which) / 4), ldy: C.size_t(c.ldy)}
	p.x.stride = C.size_t(c.xStride)
	at := func(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
	C.product(C.int(path), w, p, at(c.codes), at(c.scales), at(c.list), at(c.x), at(c.sums), at(c.xScales), at(c.which), at(y),
		at(scratch))
}
