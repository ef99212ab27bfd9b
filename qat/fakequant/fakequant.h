/* fakequant.h declares the quantisers of weights and activations, and vectorised forms of the scalar rules. They are
 * compiled once per instruction set (qat/simd/simd.h), with the same bits on each.
 *
 * Integer products read codes in blocks of FQ_BLOCK rows: the four codes of columns 4q to 4q+3 of a row lie together,
 * those of the block's rows follow one another, then come the next four columns. Columns are padded to a multiple of
 * four, rows to whole blocks, both with zeros. Scales and biases are [block][group][FQ_BLOCK]; the bias of a group is
 * -128 times the sum of its codes, which takes back the 128 that is added to every code of an activation. */
#ifndef CHIPLM_FAKEQUANT_H
#define CHIPLM_FAKEQUANT_H
#include <stdint.h>

enum { FQ_BLOCK = 16 };

/* Takes the copies of a path (SIMD_AVX2, ...) into use. */
void fq_use(int32_t path);

/* Quantises rows x cols weights. values gets code * scale. codes, when not NULL, gets the codes in blocks, scales and bias
 * what belongs to them. A scale is the largest magnitude over divisor. group: columns that share a scale, 1 <= group <= cols; a multiple of 4 unless it is cols. */
void fq_weights(const float *w, int64_t rows, int64_t cols, int64_t group, int32_t max_code, float divisor, int32_t half,
                float *values, int8_t *codes, float *scales, int32_t *bias);

/* Quantises each row of x, rows x cols activations. values, when not NULL, gets code * scale; codes gets code + 128 in
 * rows padded with 128 to a multiple of four; scales gets one float a row. */
void fq_activations(const float *x, int64_t rows, int64_t cols, float *values, uint8_t *codes, float *scales);

/* dst = f(src), n floats, for the rules named. */
enum { FQ_RNE, FQ_EXP, FQ_SIGMOID, FQ_SILU, FQ_GELU, FQ_HALF };
void fq_map(int32_t rule, const float *src, float *dst, int64_t n);
float fq_sum8(const float *v, int64_t n);

/* One path's copies of all functions. */
struct fq_set {
    __typeof__(fq_weights) *weights;
    __typeof__(fq_activations) *activations;
    __typeof__(fq_map) *map;
    __typeof__(fq_sum8) *sum8;
};
extern const struct fq_set fq_plain, fq_avx2, fq_avx512; /* those that the build has */
#endif
