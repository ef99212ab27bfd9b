#include "adamw.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#include <math.h>
#endif

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF // GCC has it off under -std=c11
#endif

// Every operation below is element-wise and correctly rounded, and none is fused, so that each clone gives the same
// bits.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { BLOCK = 256 };

// square_roots replaces each x[i] by its root. Written out, since a compiler keeps the scalar call for errno's sake.
static void square_roots(float x[BLOCK]) {
    for (int i = 0; i < BLOCK; i += 4) {
#if defined(__SSE2__)
        _mm_storeu_ps(x + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
#elif defined(__aarch64__)
        vst1q_f32(x + i, vsqrtq_f32(vld1q_f32(x + i)));
#else
        for (int j = i; j < i + 4; j++) {
            x[j] = sqrtf(x[j]);
        }
#endif
    }
}

WIDE int chiplm_adamw(float *restrict w, float *restrict m, float *restrict v, const float *restrict g, int64_t n,
                      float grad_scale, float one_minus_beta1, float beta2, float one_minus_beta2,
                      float inv_sqrt_bias2, float eps, float decay, float step_size) {
    float root[BLOCK] = {0};
    int32_t bad = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        int64_t len = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t i = 0; i < len; i++) {
            float gi = g[start + i] * grad_scale;
            float mi = m[start + i];
            m[start + i] = mi + (gi - mi) * one_minus_beta1;
            root[i] = v[start + i] * beta2 + (gi * gi) * one_minus_beta2;
            v[start + i] = root[i];
        }
        square_roots(root);
        for (int64_t i = 0; i < len; i++) {
            float wi = w[start + i] * decay - step_size * (m[start + i] / (root[i] * inv_sqrt_bias2 + eps));
            w[start + i] = wi;
            // A finite number minus itself is zero; an infinity or NaN gives NaN, which differs from everything.
            bad |= (wi - wi) != 0.0f;
        }
    }
    return bad;
}

WIDE double chiplm_sum_squares(const float *g, int64_t n) {
    double p[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++) {
            double x = g[i + j];
            p[j] += x * x;
        }
    }
    for (int j = 0; i < n; i++, j++) {
        double x = g[i];
        p[j] += x * x;
    }
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

WIDE void chiplm_add(float *restrict dst, const float *restrict src, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}
