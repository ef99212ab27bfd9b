/* path.h is the body of plain.c, avx2.c, avx512.c, neon.c and pie.c: all kernels, compiled for one set of instructions, and the
 * table of them. A file sets CHIPLM_PATH to one of the numbers below and CHIPLM_TABLE to the table's name.
 *
 * elementwise.h, attention.h, product_rows.h and product_columns.h are the definition, in plain C. Paths with vectors have bodies
 * of their own: one of steps and softmax, over a few operations that vectors.h gives each, and products and dots for each
 * kind of instructions. Contraction is off everywhere: no path fuses a multiplication with an addition. */
#define CHIPLM_PLAIN 1
#define CHIPLM_AVX2 2
#define CHIPLM_AVX512 3
#define CHIPLM_NEON 4
#define CHIPLM_PIE 5

#if CHIPLM_PATH == CHIPLM_AVX2 || CHIPLM_PATH == CHIPLM_AVX512
#include <immintrin.h>
#elif CHIPLM_PATH == CHIPLM_NEON
#include <arm_neon.h>
#endif

#if CHIPLM_PATH == CHIPLM_AVX2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#elif CHIPLM_PATH == CHIPLM_AVX512
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")
#endif
#endif

#include "kernels.h"
#include "numerics.h"

#include "scales.h"
#if CHIPLM_PATH != CHIPLM_PIE
#include "neurons.h"
#include "additions.h"
#endif

#if CHIPLM_PATH != CHIPLM_NEON
#include "unpack.h"
#endif
#if CHIPLM_PATH != CHIPLM_NEON && CHIPLM_PATH != CHIPLM_PIE
#include "product_rows.h"
#endif

#if CHIPLM_PATH == CHIPLM_AVX512
#include "product_avx512.h"
#elif CHIPLM_PATH == CHIPLM_AVX2
#include "product_avx2.h"
#elif CHIPLM_PATH == CHIPLM_NEON
#include "product_neon.h"
#elif CHIPLM_PATH == CHIPLM_PIE
#include "product_pie.h"
#else
#include "product_plain.h"
#endif

#include "search.h"

#if CHIPLM_PATH == CHIPLM_PLAIN
#include "elementwise.h"
#include "attention.h"
#elif CHIPLM_PATH == CHIPLM_PIE
#include "elementwise_pie.h"
#include "attention_pie.h"
#else
#include "vectors.h"
#include "elementwise_vector.h"
#include "attention_vector.h"
#endif

/* (1 + 2^-12)^2 is 1 + 2^-11 + 2^-24: the last part is lost where the product is rounded before the sum. */
static bool is_fused(void) {
    volatile float x = 1.0f + 0x1p-12f;
    volatile float rounded = -(1.0f + 0x1p-11f);
    const float factor = x;
    const float sum = factor * factor + rounded;
    return sum != 0.0f;
}

const chiplm_kernels CHIPLM_TABLE = {
    .name = CHIPLM_NAME,
    .is_fused = is_fused,
    .scratch_bytes = scratch_bytes,
    .product = product,
    .product_transposed = product_transposed,
    .product_floats = product_floats,
    .dequantise = dequantise,
    .quantise = quantise,
    .rmsnorm = rmsnorm,
    .gate = gate,
    .add = add,
    .blend = blend,
    .gelu_mix = gelu_mix,
    .rotate = rotate,
    .attend = attend,
    .queries = QUERIES,
    .soft_sum = soft_sum,
    .all_finite = all_finite,
    .mark_open = mark_open,
    .mark_used = mark_used,
    .row_logit = row_logit,
    .row_bounds = row_bounds,
};

#if defined(__clang__) && (CHIPLM_PATH == CHIPLM_AVX2 || CHIPLM_PATH == CHIPLM_AVX512)
#pragma clang attribute pop
#endif
