/* The kernels for arm64, and for vectors that are like its own. */
#include "kernels.h"
#if CHIPLM_HAS_NEON
#define CHIPLM_PATH CHIPLM_NEON
#define CHIPLM_TABLE chiplm_neon
#define CHIPLM_NAME "neon"
#include "path.h"
#endif
