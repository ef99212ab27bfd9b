/* avx2.c: for processors with AVX2 and FMA. */
#if defined(__x86_64__)
#define SIMD_PATH SIMD_AVX2
#define K_SET k_avx2
#include "path.h"
#endif
