package engine

// #include "kernels.h"
// #include "numerics.h"
// static float quantise(int path, const float *x, size_t n, int8_t *codes) {
//     return chiplm_kernels_of((chiplm_path)path)->quantise(x, n, n, codes, NULL);
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
