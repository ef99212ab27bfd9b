/* plain.c: C as the compiler takes it, the twin that the other paths are tested against. */
#define SIMD_PATH SIMD_PLAIN
#define FQ_SET fq_plain
#include "path.h"
