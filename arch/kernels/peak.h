/* peak.h declares the matrix product of the BLAS library, whatever path is in use. */
#ifndef CHIPLM_PEAK_H
#define CHIPLM_PEAK_H
#include <stdint.h>

/* As k_gemm, by the library. Returns 0, with nothing computed, in a build without one. */
int32_t k_library_gemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                       const float *b, int64_t ldb, int32_t add, float *c, int64_t ldc);
#endif
