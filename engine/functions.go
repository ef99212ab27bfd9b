package engine

// #include "kernels.h"
// #include "numerics.h"
// static const chiplm_kernels *of(int path) { return chiplm_kernels_of((chiplm_path)path); }
// static float quantise(int path, const float *x, size_t n, size_t padded, int8_t *codes, int32_t *sums) {
//     return of(path)->quantise(x, n, padded, codes, sums);
// }
// static void rmsnorm(int path, const float *x, const float *gain, size_t n, float *y) {
//     of(path)->rmsnorm(x, gain, n, 1e-6f, y);
// }
// static void gate(int path, float *g, const float *up, size_t n, bool swiglu) { of(path)->gate(g, up, n, swiglu); }
// static void add(int path, float *x, const float *y, size_t n) { of(path)->add(x, y, n); }
// static void blend(int path, float *y, const float *x, size_t n) { of(path)->blend(y, x, 11.3f, 0.7f, n); }
// static void gelu_mix(int path, float *x, const float *e, size_t n) { of(path)->gelu_mix(x, e, n); }
// static void rotate(int path, float *x, uint32_t d, const float *c, const float *s) { of(path)->rotate(x, d, c, s); }
// static bool soft_sum(int path, const float *v, size_t n, float *out) { return of(path)->soft_sum(v, n, out, out + 1); }
// static bool all_finite(int path, const float *v, size_t n) { return of(path)->all_finite(v, n); }
// static uint32_t mark_open(int path, const float *v, uint32_t n, uint8_t *m) { return of(path)->mark_open(v, n, m); }
// static uint32_t mark_used(int path, const int8_t *v, uint32_t n, uint8_t *m) { return of(path)->mark_used(v, n, m); }
// static void dequantise(int path, chiplm_tensor w, const void *codes, const void *scales, uint32_t row, float *y) {
//     w.codes.at = codes, w.scales.at = scales;
//     of(path)->dequantise(&w, row, y);
// }
// static void product_floats(int path, chiplm_tensor w, const void *codes, const float *x, float *y) {
//     w.codes.at = codes;
//     of(path)->product_floats(&w, x, y);
// }
// static bool attend(int path, const void *codes, size_t stride, const float *scales, uint32_t queries, const void *keys,
//                    const void *key_scales, const void *values, const void *value_scales, uint32_t first, uint32_t d,
//                    float c, void *weights, void *shares, void *sums, float *o, size_t ldo) {
//     const chiplm_queries q = {codes, stride, scales, queries};
//     const chiplm_head head = {keys, key_scales, values, value_scales};
//     return of(path)->attend(q, head, first, d, c, (chiplm_attention){weights, shares, sums}, o, ldo);
// }
// static uint32_t queries(int path) { return of(path)->queries; }
// static uint64_t scratch(int path, uint32_t batch, uint64_t padded, uint64_t groups) {
//     return of(path)->scratch_bytes(batch, padded, groups);
// }
// static void product(int path, chiplm_tensor w, chiplm_product p, const void *codes, const void *scales,
//                     const void *list, void *x, void *sums, void *x_scales, const void *which, void *y, void *scratch) {
//     w.codes.at = codes, w.scales.at = scales;
//     p.w = &w, p.list = list, p.x.codes = x, p.x.sums = sums, p.x.scales = x_scales, p.which = which, p.y = y;
//     p.scratch = scratch;
//     (w.block == 0 ? of(path)->product : of(path)->product_transposed)(&p);
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
	return float32(C.quantise(C.int(path), (*C.float)(unsafe.Pointer(&x[0])), C.size_t(len(x)), C.size_t(len(x)),
		(*C.int8_t)(unsafe.Pointer(&codes[0])), nil))
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

// tensor is the matrix without its codes and scales.
func (c *productCall) tensor() C.chiplm_tensor {
	w := C.chiplm_tensor{rows: C.uint32_t(c.rows), columns: C.uint32_t(c.columns), bits: C.uint32_t(c.bits), group: C.uint32_t(c.group),
		groups: C.uint32_t(c.groups()), scale_type: C.CHIPLM_F32, block: C.uint32_t(c.block), stride: C.uint32_t(c.stride)}
	if c.half {
		w.scale_type = C.CHIPLM_F16
	}
	w.codes.bytes, w.scales.bytes = C.size_t(len(c.codes)), C.size_t(len(c.scales))
	return w
}

// run computes the product into y, f32 [batch, ldy]. scratch starts at a multiple of 64.
func (c *productCall) run(path Path, y, scratch []byte) {
	w := c.tensor()
	p := C.chiplm_product{first: C.uint32_t(c.first), rows: C.uint32_t(c.count), listed: C.uint32_t(len(c.list) / 4),
		n: C.uint32_t(len(c.which) / 4), ldy: C.size_t(c.ldy)}
	p.x.stride = C.size_t(c.xStride)
	C.product(C.int(path), w, p, bytesIn(c.codes), bytesIn(c.scales), bytesIn(c.list), bytesIn(c.x), bytesIn(c.sums),
		bytesIn(c.xScales), bytesIn(c.which), bytesIn(y), bytesIn(scratch))
}

// kernels calls the functions of a path on memory of the caller's: floats are f32, little endian.
type kernels Path

func floatsIn(b []byte) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(b))) }

func bytesIn(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// quantise quantises x; codes holds whole chunks of 64, sums an i32 for each 32 of them.
func (k kernels) quantise(x, codes, sums []byte) float32 {
	return float32(C.quantise(C.int(k), floatsIn(x), C.size_t(len(x)/4), C.size_t(len(codes)), (*C.int8_t)(bytesIn(codes)),
		(*C.int32_t)(bytesIn(sums))))
}

// rmsnorm norms x into y; gain may be nil.
func (k kernels) rmsnorm(x, gain, y []byte) {
	C.rmsnorm(C.int(k), floatsIn(x), floatsIn(gain), C.size_t(len(x)/4), floatsIn(y))
}

func (k kernels) gate(gate, up []byte, swiglu bool) {
	C.gate(C.int(k), floatsIn(gate), floatsIn(up), C.size_t(len(gate)/4), C.bool(swiglu))
}

func (k kernels) add(x, y []byte) { C.add(C.int(k), floatsIn(x), floatsIn(y), C.size_t(len(x)/4)) }

// blend has the factors 11.3 and 0.7.
func (k kernels) blend(y, x []byte) { C.blend(C.int(k), floatsIn(y), floatsIn(x), C.size_t(len(x)/4)) }

func (k kernels) geluMix(x, e []byte) {
	C.gelu_mix(C.int(k), floatsIn(x), floatsIn(e), C.size_t(len(x)/4))
}

func (k kernels) rotate(x, cosine, sine []byte) {
	C.rotate(C.int(k), floatsIn(x), C.uint32_t(len(x)/4), floatsIn(cosine), floatsIn(sine))
}

// softSum writes the largest value and the sum to out.
func (k kernels) softSum(v, out []byte) bool {
	return bool(C.soft_sum(C.int(k), floatsIn(v), C.size_t(len(v)/4), floatsIn(out)))
}

func (k kernels) allFinite(v []byte) bool {
	return bool(C.all_finite(C.int(k), floatsIn(v), C.size_t(len(v)/4)))
}

func (k kernels) markOpen(gate, marks []byte) int {
	return int(C.mark_open(C.int(k), floatsIn(gate), C.uint32_t(len(marks)), (*C.uint8_t)(bytesIn(marks))))
}

func (k kernels) markUsed(codes, marks []byte) int {
	return int(C.mark_used(C.int(k), (*C.int8_t)(bytesIn(codes)), C.uint32_t(len(marks)), (*C.uint8_t)(bytesIn(marks))))
}

// dequantise writes a row of the matrix of c.
func (k kernels) dequantise(c *productCall, row int, y []byte) {
	C.dequantise(C.int(k), c.tensor(), bytesIn(c.codes), bytesIn(c.scales), C.uint32_t(row), floatsIn(y))
}

// productFloats multiplies a matrix of floats, each row padded to whole 16 bytes.
func (k kernels) productFloats(w, x, y []byte) {
	rows, columns := len(y)/4, len(x)/4
	t := C.chiplm_tensor{rows: C.uint32_t(rows), columns: C.uint32_t(columns), bits: 32, stride: C.uint32_t(len(w) / rows)}
	C.product_floats(C.int(k), t, bytesIn(w), floatsIn(x), floatsIn(y))
}

// attentionCall is a head and its queries at consecutive positions: their codes [queries, stride] and scales, f32, and the
// codes [n, width] of keys and values with their scales. The last query is at position n - 1.
type attentionCall struct {
	queries, queryScales                 []byte
	keys, keyScales, values, valueScales []byte
	stride, width                        int
	scale                                float32
}

// most is the number of queries that a path takes at once.
func (k kernels) most() int { return int(C.queries(C.int(k))) }

// attend computes o, f32 [queries, ldo], for the queries from..to. scratch is what chiplm_attention says.
func (k kernels) attend(a *attentionCall, from, to int, weights, shares, sums, o []byte, ldo int) bool {
	first := len(a.keyScales)/4 - len(a.queryScales)/4 + from
	return bool(C.attend(C.int(k), bytesIn(a.queries[from*a.stride:]), C.size_t(a.stride), floatsIn(a.queryScales[4*from:]),
		C.uint32_t(to-from), bytesIn(a.keys), bytesIn(a.keyScales), bytesIn(a.values), bytesIn(a.valueScales), C.uint32_t(first),
		C.uint32_t(a.width), C.float(a.scale), bytesIn(weights), bytesIn(shares), bytesIn(sums), floatsIn(o), C.size_t(ldo)))
}

// attentionTurn is what the scratch of attention is rounded up to.
const attentionTurn = int(C.CHIPLM_TURN)
