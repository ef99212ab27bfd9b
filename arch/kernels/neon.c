/* neon.c: for processors with arm64. */
#if defined(__aarch64__)
#define SIMD_PATH SIMD_NEON
#define K_SET k_neon
#include "path.h"
#endif
