/* parts.h: products cut between the members of a team, and counted. Internal. */
#ifndef CHIPLM_PARTS_H
#define CHIPLM_PARTS_H

#include "context.h"

/* Has every member of the team run part, and returns when all have. */
void chiplm_run_parts(chiplm *lm, void (*part)(void *argument, uint32_t member), void *argument);

/* y[which[i] * ldy + r] = row first + r of W times input which[i], for r < rows and i < n. */
void chiplm_multiply(chiplm *lm, const chiplm_tensor *w, uint32_t first, uint32_t rows, const uint32_t *which, uint32_t n,
                     float *y, size_t ldy);

/* The same reading only what list names: rows of W, the others of y being left as they are; or for a W that is stored
 * transposed its columns, all other columns meeting zeros. */
void chiplm_multiply_listed(chiplm *lm, const chiplm_tensor *w, uint32_t first, uint32_t rows, const uint32_t *list,
                            uint32_t listed, const uint32_t *which, uint32_t n, float *y, size_t ldy);

/* Counts rows of a tensor that is stored by rows as read. */
void chiplm_count_rows(chiplm *lm, const chiplm_tensor *w, uint64_t rows);

#endif
