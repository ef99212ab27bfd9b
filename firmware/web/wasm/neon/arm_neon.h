/* arm_neon.h - the operations of NEON that the engine's path neon takes, on the vectors of WebAssembly, which have 128 bits
 * too. Each gives in every lane what NEON gives, so that path's kernels run in a browser as they are, with the same bits. It
 * is no more than that path wants: what is missing here, the compiler names.
 *
 * Types and functions have the names that Arm gave them, and mean what Arm's documentation says. */
#ifndef CHIPLM_WASM_ARM_NEON_H
#define CHIPLM_WASM_ARM_NEON_H

#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

typedef float float32x4_t __attribute__((vector_size(16)));
typedef int32_t int32x4_t __attribute__((vector_size(16)));
typedef uint32_t uint32x4_t __attribute__((vector_size(16)));
typedef int16_t int16x8_t __attribute__((vector_size(16)));
typedef int8_t int8x16_t __attribute__((vector_size(16)));
typedef uint8_t uint8x16_t __attribute__((vector_size(16)));
typedef int16_t int16x4_t __attribute__((vector_size(8)));
typedef int8_t int8x8_t __attribute__((vector_size(8)));

#define NEON static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------------------------------- from and to memory */

NEON float32x4_t vld1q_f32(const float *at) { return (float32x4_t)wasm_v128_load(at); }
NEON int32x4_t vld1q_s32(const int32_t *at) { return (int32x4_t)wasm_v128_load(at); }
NEON uint32x4_t vld1q_u32(const uint32_t *at) { return (uint32x4_t)wasm_v128_load(at); }
NEON int8x16_t vld1q_s8(const int8_t *at) { return (int8x16_t)wasm_v128_load(at); }
NEON uint8x16_t vld1q_u8(const uint8_t *at) { return (uint8x16_t)wasm_v128_load(at); }

NEON int8x8_t vld1_s8(const int8_t *at) {
    int8x8_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

NEON void vst1q_f32(float *at, float32x4_t v) { wasm_v128_store(at, (v128_t)v); }
NEON void vst1q_s32(int32_t *at, int32x4_t v) { wasm_v128_store(at, (v128_t)v); }
NEON void vst1q_s8(int8_t *at, int8x16_t v) { wasm_v128_store(at, (v128_t)v); }
NEON void vst1_s8(int8_t *at, int8x8_t v) { memcpy(at, &v, sizeof v); }

NEON float32x4_t vdupq_n_f32(float x) { return (float32x4_t){x, x, x, x}; }
NEON int32x4_t vdupq_n_s32(int32_t x) { return (int32x4_t){x, x, x, x}; }
NEON uint32x4_t vdupq_n_u32(uint32_t x) { return (uint32x4_t){x, x, x, x}; }
NEON int16x8_t vdupq_n_s16(int16_t x) { return (int16x8_t){x, x, x, x, x, x, x, x}; }
NEON int8x8_t vdup_n_s8(int8_t x) { return (int8x8_t){x, x, x, x, x, x, x, x}; }

/* ------------------------------------------------------------------------------------------------------------- floats */

NEON float32x4_t vaddq_f32(float32x4_t a, float32x4_t b) { return a + b; }
NEON float32x4_t vmulq_f32(float32x4_t a, float32x4_t b) { return a * b; }
NEON float32x4_t vmulq_n_f32(float32x4_t a, float b) { return a * vdupq_n_f32(b); }
NEON uint32x4_t vcgtq_f32(float32x4_t a, float32x4_t b) { return (uint32x4_t)(a > b); }
NEON uint32x4_t vcltq_f32(float32x4_t a, float32x4_t b) { return (uint32x4_t)(a < b); }

NEON float32x4_t vbslq_f32(uint32x4_t mask, float32x4_t a, float32x4_t b) {
    return (float32x4_t)wasm_v128_bitselect((v128_t)a, (v128_t)b, (v128_t)mask);
}

/* Of lanes that are all NaN, or none of which is. */
NEON float vmaxvq_f32(float32x4_t v) {
    const float32x4_t others = __builtin_shufflevector(v, v, 2, 3, 0, 1);
    const float32x4_t larger = vbslq_f32(vcgtq_f32(v, others), v, others);
    return larger[0] > larger[1] ? larger[0] : larger[1];
}

NEON float32x4_t vcvtq_f32_s32(int32x4_t v) { return __builtin_convertvector(v, float32x4_t); }
NEON int32x4_t vcvtq_s32_f32(float32x4_t v) { return (int32x4_t)wasm_i32x4_trunc_sat_f32x4((v128_t)v); }
NEON float32x4_t vreinterpretq_f32_s32(int32x4_t v) { return (float32x4_t)v; }
NEON int32x4_t vreinterpretq_s32_f32(float32x4_t v) { return (int32x4_t)v; }

/* ---------------------------------------------------------------------------------------------------- integers, a width */

NEON int32x4_t vaddq_s32(int32x4_t a, int32x4_t b) { return a + b; }
NEON int16x8_t vaddq_s16(int16x8_t a, int16x8_t b) { return a + b; }
NEON int32x4_t vandq_s32(int32x4_t a, int32x4_t b) { return a & b; }
NEON uint32x4_t vcltq_u32(uint32x4_t a, uint32x4_t b) { return (uint32x4_t)(a < b); }
NEON int32x4_t vmaxq_s32(int32x4_t a, int32x4_t b) { return (int32x4_t)wasm_i32x4_max((v128_t)a, (v128_t)b); }

NEON int32x4_t vpaddq_s32(int32x4_t a, int32x4_t b) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

NEON int32_t vaddvq_s32(int32x4_t v) { return (v[0] + v[2]) + (v[1] + v[3]); }

NEON int32_t vmaxvq_s32(int32x4_t v) {
    const int32x4_t larger = vmaxq_s32(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
    return larger[0] > larger[1] ? larger[0] : larger[1];
}

/* The number of bits is a constant of the instruction. */
#define vshlq_n_s8(v, bits) ((int8x16_t)wasm_i8x16_shl((v128_t)(v), bits))
#define vshrq_n_s8(v, bits) ((int8x16_t)wasm_i8x16_shr((v128_t)(v), bits))
#define vshlq_n_s32(v, bits) ((int32x4_t)wasm_i32x4_shl((v128_t)(v), bits))

NEON int8x16_t vreinterpretq_s8_u8(uint8x16_t v) { return (int8x16_t)v; }

/* ----------------------------------------------------------------------------------------------- integers, other widths */

NEON int8x8_t vget_low_s8(int8x16_t v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
NEON int8x8_t vget_high_s8(int8x16_t v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); }
NEON int16x4_t vget_low_s16(int16x8_t v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
NEON int16x4_t vget_high_s16(int16x8_t v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }
NEON int16x8_t vcombine_s16(int16x4_t a, int16x4_t b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }

NEON int16x8_t vmovl_s8(int8x8_t v) { return __builtin_convertvector(v, int16x8_t); }
NEON int32x4_t vmovl_s16(int16x4_t v) { return __builtin_convertvector(v, int32x4_t); }
NEON int16x4_t vmovn_s32(int32x4_t v) { return __builtin_convertvector(v, int16x4_t); }
NEON int8x8_t vmovn_s16(int16x8_t v) { return __builtin_convertvector(v, int8x8_t); }

NEON int32x4_t vaddw_s16(int32x4_t sums, int16x4_t v) { return sums + vmovl_s16(v); }
NEON int16x8_t vmull_s8(int8x8_t a, int8x8_t b) { return vmovl_s8(a) * vmovl_s8(b); }
NEON int16x8_t vmlal_s8(int16x8_t sums, int8x8_t a, int8x8_t b) { return sums + vmull_s8(a, b); }

NEON int16x8_t vpaddlq_s8(int8x16_t v) { return (int16x8_t)wasm_i16x8_extadd_pairwise_i8x16((v128_t)v); }
NEON int32x4_t vpaddlq_s16(int16x8_t v) { return (int32x4_t)wasm_i32x4_extadd_pairwise_i16x8((v128_t)v); }
NEON int32x4_t vpadalq_s16(int32x4_t sums, int16x8_t v) { return sums + vpaddlq_s16(v); }

#endif
