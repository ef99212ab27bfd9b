package kernels

// #include "kernels.h"
import "C"

import "github.com/chiplm/chiplm/qat/simd"

func init() {
	C.k_library_threads(1) // a worker runs on one core: threads inside BLAS would fight with the other workers
	path, _ := simd.Chosen() // the command tells of a name that is none
	Use(path)
}

// path is the one in use.
var path simd.Path

// Use has all functions of this package compute on a path, which must be one of [simd.Paths], and returns the one used
// before. It is for tests and benchmarks that compare paths: not while other functions run.
func Use(p simd.Path) (before simd.Path) {
	before, path = path, p
	C.k_use(C.int32_t(p))
	return before
}

// Path is the path in use.
func Path() simd.Path { return path }
