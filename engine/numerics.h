/* The building blocks of docs/numerics.md: rounding, exp and its kin, sums in eight lanes, quantisation of activations.
 *
 * They are inline so that the compiler can vectorise the loops around them. Every result is fixed to the bit: integers
 * are exact, and no loop here or in the callers leaves the compiler a choice of the order of float operations. */
#ifndef CHIPLM_NUMERICS_H
#define CHIPLM_NUMERICS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "chiplm: -ffast-math changes results; build without it"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "chiplm: floats are computed with excess precision; on 32-bit x86 add -msse2 -mfpmath=sse"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "chiplm: images are little endian and so must the machine be"
#endif

#define CHIPLM_INLINE static inline __attribute__((always_inline))

CHIPLM_INLINE uint32_t chiplm_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

CHIPLM_INLINE float chiplm_from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

CHIPLM_INLINE bool chiplm_finite(float x) { return (chiplm_bits(x) & 0x7fffffffU) < 0x7f800000U; }

/* c ? a : b without a branch: compilers then vectorise the loops around it. */
CHIPLM_INLINE float chiplm_select(bool c, float a, float b) {
    const uint32_t mask = 0U - (uint32_t)c;
    return chiplm_from_bits((chiplm_bits(a) & mask) | (chiplm_bits(b) & ~mask));
}

/* The row of a hashed bigram table for a token and the one before it; previous is vocab_size at the first position. */
CHIPLM_INLINE uint32_t chiplm_ngram_row(uint32_t previous, uint32_t id, uint32_t rows) {
    uint32_t k = previous * 0x9e3779b1U + id;
    k = (k ^ k >> 15) * 0x6a09e667U;
    k = (k ^ k >> 13) * 0xbb67ae85U;
    return (k ^ k >> 16) % rows;
}

/* Rounds to the nearest integer, ties to even, for abs(t) < 2^22. */
CHIPLM_INLINE float chiplm_rne(float t) { return (t + 0x1.8p23f) - 0x1.8p23f; }

/* e to the x, for x clamped to -86..86: a reduction to abs(r) <= ln(2)/2 in two steps, then a polynomial. */
CHIPLM_INLINE float chiplm_exp(float x) {
    x = chiplm_select(x > -86.0f, x, -86.0f);
    x = chiplm_select(x < 86.0f, x, 86.0f);
    const float n = chiplm_rne(x * 0x1.715476p+0f);
    const float r = (x - n * 0x1.63p-1f) - n * (-0x1.bd0106p-13f);
    float p = 0x1.a01a02p-13f;
    p = p * r + 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * chiplm_from_bits((uint32_t)((int32_t)n + 127) << 23);
}

CHIPLM_INLINE float chiplm_sigmoid(float x) { return 1.0f / (1.0f + chiplm_exp(-x)); }
CHIPLM_INLINE float chiplm_silu(float x) { return x * chiplm_sigmoid(x); }

CHIPLM_INLINE float chiplm_gelu(float x) {
    const float z = (x * 0x1.988454p+0f) * (1.0f + (x * x) * 0x1.6e4e26p-5f);
    return x * chiplm_sigmoid(z);
}

/* The last step of a sum in eight lanes. */
CHIPLM_INLINE float chiplm_join8(const float p[8]) {
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

CHIPLM_INLINE float chiplm_sum8(const float *v, size_t n) {
    float p[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            p[j] += v[i + j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        p[j] += v[i + j];
    }
    return chiplm_join8(p);
}

/* sum8 of a_i * b_i. */
CHIPLM_INLINE float chiplm_dot8(const float *a, const float *b, size_t n) {
    float p[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            p[j] += a[i + j] * b[i + j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        p[j] += a[i + j] * b[i + j];
    }
    return chiplm_join8(p);
}

/* The largest of n floats, n >= 1. Which of several equal ones is taken makes no difference. */
CHIPLM_INLINE float chiplm_largest(const float *v, size_t n) {
    float lane[8];
    for (size_t j = 0; j < 8; j++) {
        lane[j] = v[0];
    }
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            lane[j] = v[i + j] > lane[j] ? v[i + j] : lane[j];
        }
    }
    float m = lane[0];
    for (size_t j = 1; j < 8; j++) {
        m = lane[j] > m ? lane[j] : m;
    }
    for (; i < n; i++) {
        m = v[i] > m ? v[i] : m;
    }
    return m;
}

/* How a vector of activations is quantised: code = rne(x * inverse), x = code * scale. The zero vector has both 0. A
 * vector that is not finite has the scale NaN and codes 0, so that the fault is seen and reaches the logits. */
typedef struct chiplm_grid {
    float scale;
    float inverse;
} chiplm_grid;

/* The grid of a vector whose largest abs(x) has the bits top: NaN and infinity come out above every number. */
CHIPLM_INLINE chiplm_grid chiplm_grid_of_top(int32_t top) {
    if (top >= 0x7f800000) {
        return (chiplm_grid){.scale = chiplm_from_bits(0x7fc00000U), .inverse = 0.0f};
    }
    const float m = chiplm_from_bits((uint32_t)top);
    if (m < 0x1p-100f) {
        return (chiplm_grid){0.0f, 0.0f};
    }
    return (chiplm_grid){.scale = m / 127.0f, .inverse = 127.0f / m};
}

CHIPLM_INLINE chiplm_grid chiplm_grid_of(const float *x, size_t n) {
    int32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t a = (int32_t)(chiplm_bits(x[i]) & 0x7fffffffU);
        top = a > top ? a : top;
    }
    return chiplm_grid_of_top(top);
}

CHIPLM_INLINE int32_t chiplm_code(float x, float inverse) {
    float t = chiplm_rne(x * inverse);
    t = t > -127.0f ? t : -127.0f; /* also what a NaN becomes, so that the conversion is defined */
    t = t < 127.0f ? t : 127.0f;
    return (int32_t)t;
}

CHIPLM_INLINE bool chiplm_is_nan(float x) { return (chiplm_bits(x) & 0x7fffffffU) > 0x7f800000U; }

/* The float of an IEEE half, exactly. */
CHIPLM_INLINE float chiplm_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000U) << 16;
    const uint32_t exponent = (h >> 10) & 31U;
    const uint32_t fraction = h & 0x3ffU;
    if (exponent == 31) {
        return chiplm_from_bits(sign | 0x7f800000U | (fraction << 13));
    }
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f; /* exact, and never subnormal as a float */
        return sign != 0 ? -magnitude : magnitude;
    }
    return chiplm_from_bits(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

#endif
