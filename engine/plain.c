/* The kernels in plain C, for every processor: the definition of what the others compute. */
#define CHIPLM_PATH CHIPLM_PLAIN
#define CHIPLM_TABLE chiplm_plain
#define CHIPLM_NAME "plain"
#include "path.h"
