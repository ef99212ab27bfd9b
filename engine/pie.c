/* The kernels for the vector unit of the ESP32-S3. Elsewhere they run on the twins of its assembly, in plain C: with the same
 * bits, and slower than the path plain. */
#include "kernels.h"
#define CHIPLM_PATH CHIPLM_PIE
#define CHIPLM_TABLE chiplm_pie
#define CHIPLM_NAME "pie"
#include "path.h"
