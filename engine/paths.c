/* The choice of a path. */
#include "kernels.h"

/* GCC and clang know what the processor has. AVX-512 is taken with its byte and dot-product instructions alone. */
#if CHIPLM_X86
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
           __builtin_cpu_supports("avx512vnni") != 0;
}
#endif

const chiplm_kernels *chiplm_kernels_of(chiplm_path path) {
    switch (path) {
    case CHIPLM_PATH_BEST:
#if CHIPLM_X86
        if (has_avx512()) {
            return &chiplm_avx512;
        }
        if (has_avx2()) {
            return &chiplm_avx2;
        }
#endif
#if CHIPLM_HAS_NEON
        return &chiplm_neon;
#elif CHIPLM_HAS_PIE
        return &chiplm_pie;
#else
        return &chiplm_plain;
#endif
    case CHIPLM_PATH_PLAIN:
        return &chiplm_plain;
#if CHIPLM_X86
    case CHIPLM_PATH_AVX2:
        return has_avx2() ? &chiplm_avx2 : NULL;
    case CHIPLM_PATH_AVX512:
        return has_avx512() ? &chiplm_avx512 : NULL;
#endif
#if CHIPLM_HAS_NEON
    case CHIPLM_PATH_NEON:
        return &chiplm_neon;
#endif
    case CHIPLM_PATH_PIE:
        return &chiplm_pie;
    default:
        return NULL;
    }
}

const char *chiplm_path_name(chiplm_path path) {
    const chiplm_kernels *kernels = chiplm_kernels_of(path);
    return kernels == NULL ? NULL : kernels->name;
}
