/* kernels.h declares the inner loops of the training operations: forward passes in the order of docs/numerics.md, and
 * their gradients. All arrays are row-major float32; nothing is allocated; no pointer is kept.
 *
 * The functions are compiled once per instruction set: plain.c, avx2.c and so on include path.h, which includes the
 * files with their bodies (norm.h, ffn.h, ...). dispatch.c calls the copy in use. All copies give the same bits. */
#ifndef CHIPLM_KERNELS_H
#define CHIPLM_KERNELS_H
#include <stdint.h>

/* How products are computed. */
enum {
    K_FLOAT = 0,  /* nothing is quantised */
    K_VALUES = 1, /* weights are quantised, activations not: on values code * scale */
    K_CODES = 2   /* both are: on integer codes, scales applied after; bit for bit the engine's result */
};

/* Takes the copies of a path (SIMD_AVX2, ... of qat/simd/simd.h) into use, which must be one that can run here. Not
 * while other functions run. */
void k_use(int32_t path);

/* Sets the threads that the BLAS library may use, if there is one, and returns that number. */
int32_t k_library_threads(int32_t threads);

/* C = op(A) op(B), or C += when add; op(A) is m x k, op(B) is k x n; ta, tb: transposed. Each element is a chain of
 * fused multiply-adds in ascending order, except with SIMD_LIBRARY. */
void k_gemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
            int64_t ldb, int32_t add, float *c, int64_t ldc);
/* C = op(A) X, or C +=, for A transposed, k x m, and X [k, n] = (codes - 128) * scales, in the layout of qat/fakequant/fakequant.h. */
void k_gemm_codes(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const uint8_t *codes, const float *scales,
                       int32_t add, float *c, int64_t ldc);

/* y[rows, out] = product of activations with scales sx and weights, in the layouts of qat/fakequant/fakequant.h: bit for
 * bit the engine's. group: columns of a scale; max_code: the largest code of a weight, which decides how sums are kept. */
void k_product_integers(const uint8_t *x, const float *sx, int64_t rows, int64_t in, const int8_t *codes,
                        const float *scales, const int32_t *bias, int64_t out, int64_t group, int32_t max_code, float *y,
                        int64_t ldy);
/* y[rows, out] = sum8 of products: a weight that is not quantised. */
void k_product_sum8(const float *x, int64_t rows, int64_t in, const float *w, int64_t out, float *y, int64_t ldy);

void k_add(const float *a, const float *b, float *y, int64_t n);

/* y = rmsnorm(x, gain), rows of n; inv[rows] gets 1 / root mean square. */
void k_rmsnorm(const float *x, const float *gain, int64_t rows, int64_t n, float eps, float *y, float *inv);
/* dx = gradient of x (+ add, when not NULL); dgain[n] is overwritten. */
void k_rmsnorm_grad(const float *x, const float *gain, const float *inv, const float *dy, const float *add, int64_t rows,
                    int64_t n, float *dx, float *dgain);

/* Gated feed-forward: gu [rows, 2f] holds gate and up; y = act(gate) * up. act: 0 relu, 1 silu. */
void k_gate(const float *gu, int64_t rows, int64_t f, int32_t act, float *y);
void k_gate_grad(const float *gu, const float *dy, int64_t rows, int64_t f, int32_t act, float *dgu);

/* y[rows, p] = gelu(g) * e, e a slice of rows with stride lde; gradients dg [rows, p] and de (stride lde). */
void k_gelu_mul(const float *g, const float *e, int64_t lde, int64_t rows, int64_t p, float *y);
void k_gelu_mul_grad(const float *g, const float *e, const float *dy, int64_t lde, int64_t rows, int64_t p, float *dg,
                     float *de);

/* Table rows: y[rows, cols] = dequantised rows ids of table; max_code 0: not quantised. divisor: see
 * rule_quantise_group. */
void k_gather(const float *table, const int32_t *ids, int64_t rows, int64_t cols, int64_t group, int32_t max_code,
              float divisor, int32_t half, float *y);
/* dtable[ids[r]] += scale * dy[r]; k_clear_rows zeroes those rows first. */
void k_scatter_add(const float *dy, const int32_t *ids, int64_t rows, int64_t cols, float scale, float *dtable);
void k_clear_rows(const int32_t *ids, int64_t rows, int64_t cols, float *dtable);

/* Per-layer embeddings: e = (rmsnorm(x * ce, gain) + t * ct) * ch on slices of p; t and e may be the same array.
 * inv [rows, layers] gets the inverse norms. */
void k_ple_mix(const float *x, const float *gain, const float *t, int64_t rows, int64_t layers, int64_t p, float ce,
               float ct, float ch, float eps, float *inv, float *e);
void k_ple_mix_grad(const float *x, const float *gain, const float *inv, const float *de, int64_t rows, int64_t layers,
                    int64_t p, float ce, float ch, float *dx, float *dgain);

/* Positions of a block of attention. */
enum { K_SIDE = 16 };
/* The floats that attention needs as work, for sequences up to seq and heads of d. */
int64_t k_attention_work(int64_t seq, int64_t d);
/* Causal attention over a sequence, qkv [seq, 3*heads*d]. cosines, sines: [blocks of positions, d/2, K_SIDE]; norm: queries and
 * keys are normalised. max, sum: what the gradient needs, K_SIDE floats a block of positions of each head. */
void k_attention(const float *qkv, int64_t seq, int64_t heads, int64_t d, const float *cosines,
                 const float *sines, float eps, float c, int32_t mode, int32_t norm, float *max, float *sum, float *work,
                 float *y);
/* Its gradient; dqkv is overwritten. */
void k_attention_grad(const float *qkv, const float *dy, int64_t seq, int64_t heads, int64_t d,
                      const float *cosines, const float *sines, float eps, float c, int32_t mode, int32_t norm,
                      const float *max, const float *sum, float *work, float *dqkv);

/* Cross-entropy of rows of n logits, ld apart: nll[r] = nats of targets[r] (0 where the target is negative, NaN where a logit is
 * not finite). grad: logits become (softmax - onehot) * weight. */
void k_cross_entropy(float *logits, int64_t ld, const int32_t *targets, int64_t rows, int64_t n, int32_t grad, float weight,
                     float *nll);
/* Top-1 routing over rows of n scores: choice (lowest index of the largest), prob [rows, n] softmax; p = 1 / sum8 of
 * exp(z - z[choice]) is the weight of the choice. */
void k_route(const float *z, int64_t rows, int64_t n, int32_t *choice, float *p, float *prob);
/* dz from dp, the gradient of p, and bias[n], a gradient of prob that is the same in every row. */
void k_route_grad(const float *prob, const int32_t *choice, const float *dp, const float *bias, int64_t rows, int64_t n,
                  float *dz);
/* dot[r] = a[r] . b[r] for rows of n, then a[r] *= s[r]. */
void k_dot_scale_rows(float *a, const float *b, const float *s, int64_t rows, int64_t n, float *dot);
void k_scale(float *x, int64_t n, float f);
/* 1 when all n floats are finite. */
int32_t k_finite(const float *x, int64_t n);

/* table[ids[r]] += x[ids[r]], rows of two tables of the same shape; ids are distinct. */
void k_add_rows(const float *x, const int32_t *ids, int64_t rows, int64_t cols, float *table);
/* The sum of the squares of n floats in double, in a fixed order. */
double k_sum_squares(const float *x, int64_t n);

/* What one step of AdamW has in common for all elements. */
struct k_adamw {
    float grad_scale, one_minus_beta1, beta2, one_minus_beta2, inv_sqrt_bias2, eps, decay, step_size;
};
/* Updates n weights w and their moments m and v in place from the gradient g, every element on its own:
 *
 *   g' = g * grad_scale
 *   m  = m + (g' - m) * one_minus_beta1
 *   v  = v * beta2 + (g' * g') * one_minus_beta2
 *   w  = w * decay - step_size * (m / (sqrt(v) * inv_sqrt_bias2 + eps))
 *
 * Returns 1 when every new weight is finite. */
int32_t k_adamw(float *w, float *m, float *v, const float *g, int64_t n, struct k_adamw k);

/* m += (d - m) * rise and u = d + (m - d) * ahead, d being g * scale: a running mean of gradients, and Nesterov's look
 * ahead. */
void k_momentum(const float *g, int64_t n, float scale, float rise, float ahead, float *m, float *u);
/* y = a * x + b * y; says whether every element of y is finite then. */
int32_t k_blend(float a, const float *x, float b, float *y, int64_t n);

/* One path's copies of all functions. */
#define K_FUNCTIONS(F) \
    F(gemm) F(gemm_codes) F(product_integers) F(product_sum8) F(add) F(rmsnorm) F(rmsnorm_grad) F(gate) F(gate_grad) \
    F(gelu_mul) F(gelu_mul_grad) F(gather) F(scatter_add) F(clear_rows) F(ple_mix) F(ple_mix_grad) \
    F(attention_work) F(attention) F(attention_grad) F(cross_entropy) F(route) F(route_grad) F(dot_scale_rows) F(scale) \
    F(finite) F(add_rows) F(sum_squares) F(adamw) F(momentum) F(blend)

struct k_set {
#define K_MEMBER(name) __typeof__(k_##name) *name;
    K_FUNCTIONS(K_MEMBER)
};
extern const struct k_set k_plain, k_library, k_avx2, k_avx512, k_neon; /* those that the build has */
#endif
