package kernels

// #include "kernels.h"
import "C"

import "github.com/chiplm/chiplm/qat/simd"

func init() {
	C.k_library_threads(1) // a worker runs on one core: threads inside BLAS would fight with the other workers
	simd.Follow(func(p simd.Path) { C.k_use(C.int32_t(p)) })
}
