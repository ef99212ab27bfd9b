/* simd.h compiles one body of C loops for several instruction sets.
 *
 * A file per set, such as avx2.c, sets SIMD_PATH, includes this header, then the body: functions that are static, and a
 * table of pointers to them. All code after the include is compiled for the set. Vectors are for the loops that a
 * compiler does not turn into good ones by itself: SIMD_LANES floats of type vf, with the operations below.
 *
 * Fused multiply-add happens only where v_fma says so: every path computes the same bits. Vectors are also added,
 * multiplied and so on by the operators of the language. v_max(a, b) is a > b ? a : b; v_maxabs(a, b), for a that is not
 * negative, the larger of a and the magnitude of b by their bits, where a NaN is largest; v_power(n) is 2^n for whole n in
 * the range of floats; v_transpose turns a square of SIMD_LANES vectors. */
#ifndef CHIPLM_SIMD_H
#define CHIPLM_SIMD_H

/* The paths, as package simd numbers them. */
#define SIMD_PLAIN 0
#define SIMD_LIBRARY 1
#define SIMD_AVX2 2
#define SIMD_AVX512 3
#define SIMD_NEON 4

#if defined(__x86_64__) && defined(__GNUC__)
#define SIMD_X86 1
#else
#define SIMD_X86 0
#endif
#if defined(__aarch64__)
#define SIMD_ARM64 1
#else
#define SIMD_ARM64 0
#endif

#ifdef SIMD_PATH
#if SIMD_PATH == SIMD_AVX2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#elif SIMD_PATH == SIMD_AVX512
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,prefer-vector-width=512")
#endif
#endif

#include <math.h>
#include <stdint.h>
#if SIMD_X86
#include <immintrin.h>
#elif SIMD_ARM64
#include <arm_neon.h>
#endif

#define SIMD_INLINE static inline __attribute__((always_inline))
/* A function of its own: loops inlined into one large function get few registers. */
#define SIMD_APART static __attribute__((noinline))
/* Has the next loop, whose length is a constant, written out, so that what it keeps in arrays stays in registers. */
#ifdef __clang__
#define SIMD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 32")
#endif

#if SIMD_PATH == SIMD_AVX512
#define SIMD_LANES 16
typedef __m512 vf;
SIMD_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
SIMD_INLINE vf v_all(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vf v_ints(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD_INLINE vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
SIMD_INLINE vf v_maxabs(vf a, vf b) {
    __m512i x = _mm512_and_si512(_mm512_castps_si512(b), _mm512_set1_epi32(0x7fffffff));
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), x));
}
SIMD_INLINE vf v_power(vf n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvttps_epi32(n + v_all(127)), 23));
}
/* Transposes SIMD_LANES vectors: shuffling the first half with the second as often as halving gives one. */
SIMD_INLINE void v_transpose(vf x[16]) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    for (int stage = 0; stage < 4; stage++) {
        vf y[16];
        for (int i = 0; i < 8; i++) {
            y[2 * i] = _mm512_permutex2var_ps(x[i], low, x[i + 8]);
            y[2 * i + 1] = _mm512_permutex2var_ps(x[i], high, x[i + 8]);
        }
        for (int i = 0; i < 16; i++) x[i] = y[i];
    }
}
#elif SIMD_PATH == SIMD_AVX2
#define SIMD_LANES 8
typedef __m256 vf;
SIMD_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
SIMD_INLINE vf v_all(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vf v_ints(const int32_t *p) { return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD_INLINE vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
SIMD_INLINE vf v_maxabs(vf a, vf b) {
    __m256i x = _mm256_and_si256(_mm256_castps_si256(b), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), x));
}
SIMD_INLINE vf v_power(vf n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvttps_epi32(n + v_all(127)), 23));
}
SIMD_INLINE void v_transpose(vf x[8]) {
    vf a[8], b[8];
    for (int i = 0; i < 8; i += 2) { /* pairs of elements, then fours, then eights */
        a[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0x44);
            b[i + 2 * j + 1] = _mm256_shuffle_ps(a[i + j], a[i + j + 2], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        x[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}
#elif SIMD_PATH == SIMD_NEON || (SIMD_PATH == SIMD_LIBRARY && SIMD_ARM64)
#define SIMD_LANES 4
typedef float32x4_t vf;
SIMD_INLINE vf v_load(const float *p) { return vld1q_f32(p); }
SIMD_INLINE void v_store(float *p, vf x) { vst1q_f32(p, x); }
SIMD_INLINE vf v_all(float x) { return vdupq_n_f32(x); }
SIMD_INLINE vf v_ints(const int32_t *p) { return vcvtq_f32_s32(vld1q_s32(p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
SIMD_INLINE vf v_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
SIMD_INLINE vf v_sqrt(vf a) { return vsqrtq_f32(a); }
SIMD_INLINE vf v_maxabs(vf a, vf b) {
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(vabsq_f32(b))));
}
SIMD_INLINE vf v_power(vf n) { return vreinterpretq_f32_s32(vshlq_n_s32(vcvtq_s32_f32(n + v_all(127)), 23)); }
SIMD_INLINE void v_transpose(vf x[4]) {
    vf a = vzip1q_f32(x[0], x[2]), b = vzip2q_f32(x[0], x[2]), c = vzip1q_f32(x[1], x[3]), d = vzip2q_f32(x[1], x[3]);
    x[0] = vzip1q_f32(a, c), x[1] = vzip2q_f32(a, c), x[2] = vzip1q_f32(b, d), x[3] = vzip2q_f32(b, d);
}
#elif SIMD_PATH == SIMD_LIBRARY && SIMD_X86
#define SIMD_LANES 4
typedef __m128 vf;
SIMD_INLINE vf v_load(const float *p) { return _mm_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm_storeu_ps(p, x); }
SIMD_INLINE vf v_all(float x) { return _mm_set1_ps(x); }
SIMD_INLINE vf v_ints(const int32_t *p) { return _mm_cvtepi32_ps(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return a * b + c; } /* rounds twice: this path's products have bits of their own */
SIMD_INLINE vf v_max(vf a, vf b) { return _mm_max_ps(a, b); }
SIMD_INLINE vf v_sqrt(vf a) { return _mm_sqrt_ps(a); }
SIMD_INLINE vf v_maxabs(vf a, vf b) {
    __m128i x = _mm_castps_si128(a), y = _mm_and_si128(_mm_castps_si128(b), _mm_set1_epi32(0x7fffffff));
    __m128i more = _mm_cmpgt_epi32(y, x);
    return _mm_castsi128_ps(_mm_or_si128(_mm_and_si128(more, y), _mm_andnot_si128(more, x)));
}
SIMD_INLINE vf v_power(vf n) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvttps_epi32(n + v_all(127)), 23)); }
SIMD_INLINE void v_transpose(vf x[4]) { _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]); }
#else
#define SIMD_LANES 1
typedef float vf;
SIMD_INLINE vf v_load(const float *p) { return *p; }
SIMD_INLINE void v_store(float *p, vf x) { *p = x; }
SIMD_INLINE vf v_all(float x) { return x; }
SIMD_INLINE vf v_ints(const int32_t *p) { return (float)*p; }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
SIMD_INLINE vf v_max(vf a, vf b) { return a > b ? a : b; }
SIMD_INLINE vf v_sqrt(vf a) { return sqrtf(a); }
union v_bits {
    int32_t i;
    float f;
};
SIMD_INLINE vf v_maxabs(vf a, vf b) {
    union v_bits x = {.f = a}, y = {.f = b};
    y.i &= 0x7fffffff;
    return y.i > x.i ? y.f : a;
}
SIMD_INLINE vf v_power(vf n) {
    union v_bits x = {.i = ((int32_t)n + 127) * (1 << 23)};
    return x.f;
}
SIMD_INLINE void v_transpose(vf x[1]) { (void)x; }
#endif
#endif
#endif
