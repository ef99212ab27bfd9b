/* rules.h implements the float rules of docs/numerics.md in C11, header only, in forms that a compiler vectorises.
 *
 * Package qat holds the same rules in Go; a test compares the two bit for bit. Compile with -std=c11 (with it
 * gcc never contracts; cgo does not let -ffp-contract=off through) and without -ffast-math. Codes are written as floats that hold small integers, ready for a float product that is exact. */
#ifndef CHIPLM_RULES_H
#define CHIPLM_RULES_H

/* No code reads the floating-point exception flags or errno: without this, gcc turns every max, min and choice into a
 * branch and no such loop into vectors. The results are the same. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math", "no-math-errno")
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif !defined(__STRICT_ANSI__)
#error "compile with -std=c11: otherwise the compiler may contract a*b + c"
#endif

#if defined(__GNUC__)
#define RULE static inline __attribute__((always_inline))
#else
#define RULE static inline
#endif

RULE float rule_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

RULE uint32_t rule_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* c ? a : b on the bits, one instruction in a vector. Where b is a constant, a plain choice lets gcc compute what follows
 * from it ahead, on a path of its own: every lane then pays for both, and x * sigmoid(-86) is subnormal and slow. */
RULE float rule_choose(int c, float a, float b) {
    uint32_t mask = -(uint32_t)c;
    return rule_from_bits((rule_bits(a) & mask) | (rule_bits(b) & ~mask));
}

/* x, or 0 where it is nearer to 0 than 2^-100. What is carried on from step to step would else shrink into subnormals and
 * stay there, and many processors take a hundred times as long for these. */
RULE float rule_cut(float x) { return rule_choose((rule_bits(x) & 0x7fffffffu) >= 0x0d800000u, x, 0.0f); }

/* Nearest integer, ties to even, for |t| < 2^22. */
RULE float rule_rne(float t) { return (t + 0x1.8p23f) - 0x1.8p23f; }

/* x held between -q and q; a NaN becomes -q. */
RULE float rule_clamp(float x, float q) {
    x = x > -q ? x : -q;
    return x < q ? x : q;
}

RULE float rule_exp(float x) {
    x = rule_choose(x > -86.0f, x, -86.0f);
    x = rule_choose(x < 86.0f, x, 86.0f);
    float n = rule_rne(x * 0x1.715476p+0f);
    float r = (x - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
    float p = 0x1.a01a02p-13f;
    p = p * r + 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * rule_from_bits((uint32_t)((int32_t)n + 127) << 23);
}

RULE float rule_sigmoid(float x) { return 1.0f / (1.0f + rule_exp(-x)); }
RULE float rule_silu(float x) { return x * rule_sigmoid(x); }

/* The argument of the sigmoid in gelu. */
RULE float rule_gelu_z(float x) { return (x * 0x1.988454p+0f) * (1.0f + (x * x) * 0x1.6e4e26p-5f); }
RULE float rule_gelu(float x) { return x * rule_sigmoid(rule_gelu_z(x)); }

/* Sums in eight lanes are written with vectors, in one half of eight or two of four floats: from arrays, gcc vectorises
 * across the iterations, which is far slower. */
#if SIMD_LANES >= 8
enum { RULE_HALVES = 1 };
#else
enum { RULE_HALVES = 2 };
#endif
typedef float rule_lanes __attribute__((vector_size(32 / RULE_HALVES)));

/* Joins eight partial sums. */
RULE float rule_join8(const float p[8]) {
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

RULE float rule_sum8(const float *v, int64_t n) {
    rule_lanes sums[RULE_HALVES] = {{0}}, x;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int h = 0; h < RULE_HALVES; h++) {
            memcpy(&x, v + i + 4 * h, sizeof x);
            sums[h] += x;
        }
    float p[8];
    memcpy(p, sums, sizeof p);
    for (int j = 0; i + j < n; j++) p[j] += v[i + j];
    return rule_join8(p);
}

/* sum8 of products. */
RULE float rule_dot8(const float *a, const float *b, int64_t n) {
    rule_lanes sums[RULE_HALVES] = {{0}}, x, y;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int h = 0; h < RULE_HALVES; h++) {
            memcpy(&x, a + i + 4 * h, sizeof x);
            memcpy(&y, b + i + 4 * h, sizeof y);
            sums[h] += x * y;
        }
    float p[8];
    memcpy(p, sums, sizeof p);
    for (int j = 0; i + j < n; j++) p[j] += a[i + j] * b[i + j];
    return rule_join8(p);
}

/* The largest of n >= 1 floats, in eight lanes. */
RULE float rule_max(const float *x, int64_t n) {
    float m[8];
    for (int j = 0; j < 8; j++) m[j] = x[0];
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
    for (; i < n; i++) m[0] = x[i] > m[0] ? x[i] : m[0];
    for (int j = 1; j < 8; j++) m[0] = m[j] > m[0] ? m[j] : m[0];
    return m[0];
}

/* The largest magnitude, and a NaN if there is one: the bits of magnitudes are ordered as they are. */
RULE float rule_maxabs(const float *x, int64_t n) {
    int32_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t u = (int32_t)(rule_bits(x[i]) & 0x7fffffffu);
        m = u > m ? u : m;
    }
    return rule_from_bits((uint32_t)m);
}

/* Rounds a float that is not negative to binary16, nearest even, and widens it again. */
RULE float rule_half(float f) {
    if (!(f < 65520.0f)) return f > 0 ? HUGE_VALF : f;
    if (f < 0x1p-14f) return (f + 0.75f) - 0.75f; /* a multiple of 2^-24, the unit of 0.75 */
    uint32_t u = rule_bits(f);
    u += 0xfff + (u >> 13 & 1);
    return rule_from_bits(u & ~0x1fffu);
}

/* Quantises one group of n weights with largest code q (1, 7 or 127) and returns the scale, the largest magnitude over
 * divisor, which is q or, to cut large weights off, more. half: binary16 scale. */
RULE float rule_quantise_group(const float *w, int64_t n, float q, float divisor, int half, float *codes) {
    float m = rule_maxabs(w, n);
    float s = 0;
    if (!(m < 0x1p-100f)) {
        s = m / divisor;
        if (half) s = rule_half(s);
    }
    if (s == 0) {
        for (int64_t i = 0; i < n; i++) codes[i] = 0;
        return 0;
    }
    for (int64_t i = 0; i < n; i++) codes[i] = rule_clamp(rule_rne(rule_clamp(w[i] / s, 1000.0f)), q);
    return s;
}

/* The scale of a vector of n activations of 8 bits, and in *f what its elements are multiplied with; both 0 for a vector
 * that counts as zero. */
RULE float rule_vector_scale(const float *x, int64_t n, float *f) {
    float m = rule_maxabs(x, n);
    if (m < 0x1p-100f) return *f = 0;
    *f = 127.0f / m;
    return m / 127.0f;
}

/* The code of one of its elements. */
RULE float rule_vector_code(float x, float f) { return rule_clamp(rule_rne(rule_clamp(x * f, 1000.0f)), 127.0f); }

#endif
