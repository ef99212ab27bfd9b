#include "detect.h"
#include "simd.h"

int simd_has(int path) {
    switch (path) {
#if SIMD_X86
    case SIMD_AVX2:
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case SIMD_AVX512:
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni");
#endif
#if SIMD_ARM64
    case SIMD_NEON:
        return 1;
#endif
    default:
        return path == SIMD_PLAIN;
    }
}

int simd_has_library(void) {
#ifdef CHIPLM_NO_BLAS
    return 0;
#else
    return 1;
#endif
}

int simd_prefers_library(void) {
#if defined(__APPLE__) && !defined(CHIPLM_NO_BLAS)
    return 1;
#else
    return 0;
#endif
}
