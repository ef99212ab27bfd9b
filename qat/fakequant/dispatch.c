/* dispatch.c calls the copies of the functions that fit the processor. */
#include "../simd/simd.h"
#include "fakequant.h"

static const struct fq_set *set = &fq_plain;

void fq_use(int32_t path) {
    switch (path) {
#if SIMD_X86
    case SIMD_AVX2: set = &fq_avx2; break;
    case SIMD_AVX512: set = &fq_avx512; break;
#endif
    default: set = &fq_plain;
    }
}

void fq_weights(const float *w, int64_t rows, int64_t cols, int64_t group, int32_t max_code, float divisor, int32_t half,
                float *values, int8_t *codes, float *scales, int32_t *bias) {
    set->weights(w, rows, cols, group, max_code, divisor, half, values, codes, scales, bias);
}

void fq_activations(const float *x, int64_t rows, int64_t cols, float *values, uint8_t *codes, float *scales) {
    set->activations(x, rows, cols, values, codes, scales);
}

void fq_map(int32_t rule, const float *src, float *dst, int64_t n) { set->map(rule, src, dst, n); }
float fq_sum8(const float *v, int64_t n) { return set->sum8(v, n); }
