/* kernel_times.h - cycles of the kernels that the fastest path uses, on data in SRAM. Internal. */
#ifndef CHIPLM_BOARD_KERNEL_TIMES_H
#define CHIPLM_BOARD_KERNEL_TIMES_H

#include "board.h"

/* Writes an object for each kernel and shape that this model's buffers have room for, with commas between them. The
 * context's buffers are overwritten: it is at position 0 afterwards. */
void board_kernel_times(board *b);

#endif
