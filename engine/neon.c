/* The kernels for arm64. */
#include "kernels.h"
#if CHIPLM_ARM64
#define CHIPLM_PATH CHIPLM_NEON
#define CHIPLM_TABLE chiplm_neon
#define CHIPLM_NAME "neon"
#include "path.h"
#endif
