/* plain.c: C as the compiler takes it, the twin that the other paths are tested against. */
#define SIMD_PATH SIMD_PLAIN
#define K_SET k_plain
#include "path.h"
