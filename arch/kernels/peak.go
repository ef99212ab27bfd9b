package kernels

// #include "peak.h"
import "C"

// LibraryGemm computes what [Gemm] does by the product of the BLAS library, whatever path is in use: by OpenBLAS on the
// calling thread, on macOS by Accelerate, which chooses its own threads. It is the measure that the speed of training is
// held against. It panics in a build without a library, of which [simd.Paths] tells.
func LibraryGemm(rows, cols, inner int, a, b Mat, add bool, c Mat) {
	a.check("a of a product", rows, inner)
	b.check("b of a product", inner, cols)
	c.check("the result of a product", rows, cols)
	if C.k_library_gemm(flag(a.Trans), flag(b.Trans), n(rows), n(cols), n(inner), ptr(a.Data), n(a.Stride), ptr(b.Data),
		n(b.Stride), flag(add), ptr(c.Data), n(c.Stride)) == 0 {
		panic("kernels: this build has no BLAS library")
	}
}
