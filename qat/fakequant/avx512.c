/* avx512.c: for processors with AVX-512. */
#if defined(__x86_64__)
#define SIMD_PATH SIMD_AVX512
#define FQ_SET fq_avx512
#include "path.h"
#endif
