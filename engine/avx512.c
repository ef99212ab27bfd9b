/* The kernels for x86-64 processors with AVX-512, its byte and its dot-product instructions. */
#include "kernels.h"
#if CHIPLM_X86
#define CHIPLM_PATH CHIPLM_AVX512
#define CHIPLM_TABLE chiplm_avx512
#define CHIPLM_NAME "avx512"
#include "path.h"
#endif
