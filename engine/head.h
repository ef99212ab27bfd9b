/* head.h: the search for the best tokens, docs/numerics.md, section "The best tokens". Internal. */
#ifndef CHIPLM_HEAD_H
#define CHIPLM_HEAD_H

#include "best.h"
#include "context.h"

/* Fills best with the best tokens for input b of lm->inputs, the quantised last hidden state of a position. Returns false
 * when a logit is not finite. */
bool chiplm_search_head(chiplm *lm, uint32_t b, const chiplm_search *search, chiplm_best *best);

/* Bytes of the tensor head_bounds. */
uint64_t chiplm_bounds_bytes(const chiplm_model *m);

/* Checks the values of the tensors of a clustered head, whose places were checked. */
chiplm_status chiplm_check_clusters(const chiplm_image *image, chiplm_fault *fault);

#endif
