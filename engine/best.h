/* best.h: the k best of many candidates, in a heap of k places. Internal. */
#ifndef CHIPLM_BEST_H
#define CHIPLM_BEST_H

#include "chiplm.h"

/* The k best candidates so far: a heap with the last in order on top, until chiplm_best_sort. */
typedef struct chiplm_best {
    int32_t *ids;
    float *logits;    /* of the places, or null: */
    const float *all; /* then of all candidates, by id */
    uint32_t n, k;
} chiplm_best;

/* The logit of a place. */
static inline float chiplm_best_logit(const chiplm_best *best, uint32_t at) {
    return best->logits != NULL ? best->logits[at] : best->all[best->ids[at]];
}

/* Whether a candidate is among the k best so far. */
static inline bool chiplm_best_takes(const chiplm_best *best, int32_t id, float logit) {
    if (best->n < best->k) {
        return true;
    }
    const float least = chiplm_best_logit(best, 0);
    return logit > least || (logit == least && id < best->ids[0]);
}

/* Keeps a candidate that is among the k best so far. */
void chiplm_best_take(chiplm_best *best, int32_t id, float logit);

/* Keeps a candidate if it is among the k best so far. */
static inline void chiplm_best_offer(chiplm_best *best, int32_t id, float logit) {
    if (chiplm_best_takes(best, id, logit)) {
        chiplm_best_take(best, id, logit);
    }
}

/* Takes the last in order out, and leaves it at place n. There is at least one. */
void chiplm_best_drop(chiplm_best *best);

/* Orders the candidates by logit down, then id up. */
void chiplm_best_sort(chiplm_best *best);

#endif
