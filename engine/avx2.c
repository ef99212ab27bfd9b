/* The kernels for x86-64 processors with AVX2. */
#include "kernels.h"
#if CHIPLM_X86
#define CHIPLM_PATH CHIPLM_AVX2
#define CHIPLM_TABLE chiplm_avx2
#define CHIPLM_NAME "avx2"
#include "path.h"
#endif
