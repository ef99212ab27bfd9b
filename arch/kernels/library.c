/* library.c: plain C with the matrix products of BLAS. */
#ifndef CHIPLM_NO_BLAS
#define SIMD_PATH SIMD_LIBRARY
#define K_SET k_library
#define K_LIBRARY
#include "path.h"

int32_t k_library_threads(int32_t threads) {
#ifndef __APPLE__
    openblas_set_num_threads(threads);
#endif
    return threads;
}
#else
#include "kernels.h"
int32_t k_library_threads(int32_t threads) { return threads; }
#endif
