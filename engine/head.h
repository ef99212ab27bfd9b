/* head.h: the search for the best tokens, docs/numerics.md, section "The best tokens". Internal. */
#ifndef CHIPLM_HEAD_H
#define CHIPLM_HEAD_H

#include "context.h"

/* The k best candidates so far: a heap with the last in order on top, until chiplm_best_sort. */
typedef struct chiplm_best {
    int32_t *ids;
    float *logits;
    uint32_t n, k;
} chiplm_best;

/* Offers a candidate, which is kept if it is among the k best. */
void chiplm_best_offer(chiplm_best *best, int32_t id, float logit);

/* Orders the candidates by logit down, then id up. */
void chiplm_best_sort(chiplm_best *best);

/* Fills best with the best tokens for input b of lm->inputs, the quantised last hidden state of a position. Returns false
 * when a logit is not finite. */
bool chiplm_search_head(chiplm *lm, uint32_t b, const chiplm_search *search, chiplm_best *best);

/* Bytes of the tensor head_bounds. */
uint64_t chiplm_bounds_bytes(const chiplm_model *m);

/* Checks the values of the tensors of a clustered head, whose places were checked. */
chiplm_status chiplm_check_clusters(const chiplm_image *image, chiplm_fault *fault);

#endif
