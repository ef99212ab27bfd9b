/* math.h - the one function of the mathematics library that the engine takes: an instruction here. */
#ifndef CHIPLM_WASM_MATH_H
#define CHIPLM_WASM_MATH_H

static inline float sqrtf(float x) { return __builtin_sqrtf(x); }

#endif
