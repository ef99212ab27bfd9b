/* simd.h compiles one body of C loops for several instruction sets.
 *
 * A file per set, such as avx2.c, sets SIMD_PATH, includes this header, then the body: functions that are static, and a
 * table of pointers to them. All code after the include is compiled for the set. Vectors are for the loops that a
 * compiler does not turn into good ones by itself: SIMD_LANES floats of type vf, with the operations below.
 *
 * Fused multiply-add happens only where v_fma says so: every path computes the same bits. */
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

#if SIMD_PATH == SIMD_AVX512
#define SIMD_LANES 16
typedef __m512 vf;
SIMD_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
SIMD_INLINE vf v_all(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD_INLINE vf v_ints(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
#elif SIMD_PATH == SIMD_AVX2
#define SIMD_LANES 8
typedef __m256 vf;
SIMD_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
SIMD_INLINE vf v_all(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD_INLINE vf v_ints(const int32_t *p) { return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
#elif SIMD_PATH == SIMD_NEON
#define SIMD_LANES 4
typedef float32x4_t vf;
SIMD_INLINE vf v_load(const float *p) { return vld1q_f32(p); }
SIMD_INLINE void v_store(float *p, vf x) { vst1q_f32(p, x); }
SIMD_INLINE vf v_all(float x) { return vdupq_n_f32(x); }
SIMD_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
SIMD_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
SIMD_INLINE vf v_ints(const int32_t *p) { return vcvtq_f32_s32(vld1q_s32(p)); }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
#else
#define SIMD_LANES 1
typedef float vf;
SIMD_INLINE vf v_load(const float *p) { return *p; }
SIMD_INLINE void v_store(float *p, vf x) { *p = x; }
SIMD_INLINE vf v_all(float x) { return x; }
SIMD_INLINE vf v_add(vf a, vf b) { return a + b; }
SIMD_INLINE vf v_mul(vf a, vf b) { return a * b; }
SIMD_INLINE vf v_ints(const int32_t *p) { return (float)*p; }
SIMD_INLINE vf v_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
#endif
#endif
#endif
