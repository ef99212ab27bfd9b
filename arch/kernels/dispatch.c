/* dispatch.c calls the copies of the functions that fit the processor. */
#include "kernels.h"
#include "../../qat/simd/simd.h"

static const struct k_set *set = &k_plain;

void k_use(int32_t path) {
    switch (path) {
#if SIMD_X86
    case SIMD_AVX2: set = &k_avx2; break;
    case SIMD_AVX512: set = &k_avx512; break;
#endif
#if SIMD_ARM64
    case SIMD_NEON: set = &k_neon; break;
#endif
#ifndef CHIPLM_NO_BLAS
    case SIMD_LIBRARY: set = &k_library; break;
#endif
    default: set = &k_plain;
    }
}

void k_gemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
            int64_t ldb, int32_t add, float *c, int64_t ldc) {
    set->gemm(ta, tb, m, n, k, a, lda, b, ldb, add, c, ldc);
}

void k_gemm_codes(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const uint8_t *codes, const float *scales,
                       int32_t add, float *c, int64_t ldc) {
    set->gemm_codes(m, n, k, a, lda, codes, scales, add, c, ldc);
}

void k_product_integers(const uint8_t *x, const float *sx, int64_t rows, int64_t in, const int8_t *codes,
                        const float *scales, const int32_t *bias, int64_t out, int64_t group, int32_t max_code, float *y,
                        int64_t ldy) {
    set->product_integers(x, sx, rows, in, codes, scales, bias, out, group, max_code, y, ldy);
}

void k_product_sum8(const float *x, int64_t rows, int64_t in, const float *w, int64_t out, float *y, int64_t ldy) {
    set->product_sum8(x, rows, in, w, out, y, ldy);
}

void k_add(const float *a, const float *b, float *y, int64_t n) {
    set->add(a, b, y, n);
}

void k_rmsnorm(const float *x, const float *gain, int64_t rows, int64_t n, float eps, float *y, float *inv) {
    set->rmsnorm(x, gain, rows, n, eps, y, inv);
}

void k_rmsnorm_grad(const float *x, const float *gain, const float *inv, const float *dy, const float *add, int64_t
                    rows, int64_t n, float *dx, float *dgain) {
    set->rmsnorm_grad(x, gain, inv, dy, add, rows, n, dx, dgain);
}

void k_gate(const float *gu, int64_t rows, int64_t f, int32_t act, float *y) {
    set->gate(gu, rows, f, act, y);
}

void k_gate_grad(const float *gu, const float *dy, int64_t rows, int64_t f, int32_t act, float *dgu) {
    set->gate_grad(gu, dy, rows, f, act, dgu);
}

void k_gelu_mul(const float *g, const float *e, int64_t lde, int64_t rows, int64_t p, float *y) {
    set->gelu_mul(g, e, lde, rows, p, y);
}

void k_gelu_mul_grad(const float *g, const float *e, const float *dy, int64_t lde, int64_t rows, int64_t p, float
                     *dg, float *de) {
    set->gelu_mul_grad(g, e, dy, lde, rows, p, dg, de);
}

void k_gather(const float *table, const int32_t *ids, int64_t rows, int64_t cols, int64_t group, int32_t max_code,
              float divisor, int32_t half, float *y) {
    set->gather(table, ids, rows, cols, group, max_code, divisor, half, y);
}

void k_scatter_add(const float *dy, const int32_t *ids, int64_t rows, int64_t cols, float scale, float *dtable) {
    set->scatter_add(dy, ids, rows, cols, scale, dtable);
}

void k_clear_rows(const int32_t *ids, int64_t rows, int64_t cols, float *dtable) {
    set->clear_rows(ids, rows, cols, dtable);
}

void k_ple_mix(const float *x, const float *gain, const float *t, int64_t rows, int64_t layers, int64_t p, float ce,
               float ct, float ch, float eps, float *inv, float *e) {
    set->ple_mix(x, gain, t, rows, layers, p, ce, ct, ch, eps, inv, e);
}

void k_ple_mix_grad(const float *x, const float *gain, const float *inv, const float *de, int64_t rows, int64_t
                    layers, int64_t p, float ce, float ch, float *dx, float *dgain) {
    set->ple_mix_grad(x, gain, inv, de, rows, layers, p, ce, ch, dx, dgain);
}

int64_t k_attention_work(int64_t seq, int64_t d) {
    return set->attention_work(seq, d);
}

void k_attention(const float *qkv, int64_t seq, int64_t heads, int64_t d, const float *cosines, const
                 float *sines, float eps, float c, int32_t mode, int32_t norm, float *max, float *sum, float *work,
                 float *y) {
    set->attention(qkv, seq, heads, d, cosines, sines, eps, c, mode, norm, max, sum, work, y);
}

void k_attention_grad(const float *qkv, const float *dy, int64_t seq, int64_t heads, int64_t d, const
                      float *cosines, const float *sines, float eps, float c, int32_t mode, int32_t norm, const float
                      *max, const float *sum, float *work, float *dqkv) {
    set->attention_grad(qkv, dy, seq, heads, d, cosines, sines, eps, c, mode, norm, max, sum, work, dqkv);
}

void k_cross_entropy(float *logits, int64_t ld, const int32_t *targets, int64_t rows, int64_t n, int32_t grad, float weight,
                     float *nll) {
    set->cross_entropy(logits, ld, targets, rows, n, grad, weight, nll);
}

void k_route(const float *z, int64_t rows, int64_t n, int32_t *choice, float *p, float *prob) {
    set->route(z, rows, n, choice, p, prob);
}

void k_route_grad(const float *prob, const int32_t *choice, const float *dp, const float *bias, int64_t rows,
                  int64_t n, float *dz) {
    set->route_grad(prob, choice, dp, bias, rows, n, dz);
}

void k_dot_scale_rows(float *a, const float *b, const float *s, int64_t rows, int64_t n, float *dot) {
    set->dot_scale_rows(a, b, s, rows, n, dot);
}

void k_scale(float *x, int64_t n, float f) {
    set->scale(x, n, f);
}

int32_t k_finite(const float *x, int64_t n) {
    return set->finite(x, n);
}

void k_add_rows(const float *x, const int32_t *ids, int64_t rows, int64_t cols, float *table) {
    set->add_rows(x, ids, rows, cols, table);
}

double k_sum_squares(const float *x, int64_t n) {
    return set->sum_squares(x, n);
}

int32_t k_adamw(float *w, float *m, float *v, const float *g, int64_t n, struct k_adamw k) {
    return set->adamw(w, m, v, g, n, k);
}

void k_momentum(const float *g, int64_t n, float scale, float rise, float ahead, float *m, float *u) {
    set->momentum(g, n, scale, rise, ahead, m, u);
}

int32_t k_blend(float a, const float *x, float b, float *y, int64_t n) {
    return set->blend(a, x, b, y, n);
}
