/* avx2.c: for processors with AVX2. */
#if defined(__x86_64__)
#define SIMD_PATH SIMD_AVX2
#define FQ_SET fq_avx2
#include "path.h"
#endif
