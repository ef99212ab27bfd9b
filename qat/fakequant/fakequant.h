/* fakequant.h declares the quantiser of whole matrices and vectorised forms of the scalar rules. */
#ifndef CHIPLM_FAKEQUANT_H
#define CHIPLM_FAKEQUANT_H
#include <stdint.h>

/* Quantises rows x cols weights. out gets codes (values = 0) or code * scale (values = 1); scales, rows x groups, may
 * be NULL. group: columns that share a scale, 1 <= group <= cols. */
void fq_matrix(const float *w, int64_t rows, int64_t cols, int64_t group, int32_t max_code, int32_t half, int32_t values,
               float *out, float *scales);

/* Quantises each row of x, rows x cols activations, in the same two forms; scales has one float a row or is NULL. */
void fq_vectors(const float *x, int64_t rows, int64_t cols, int32_t values, float *out, float *scales);

/* dst = f(src), n floats, for the rules named. */
enum { FQ_RNE, FQ_EXP, FQ_SIGMOID, FQ_SILU, FQ_GELU, FQ_HALF };
void fq_map(int32_t rule, const float *src, float *dst, int64_t n);
float fq_sum8(const float *v, int64_t n);
#endif
