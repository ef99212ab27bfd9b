/* The k best of many candidates, in a heap of k places. */
#include "best.h"

/* Whether a candidate comes before the one at a place: logit down, id up. */
static bool is_before(const chiplm_best *best, int32_t id, float logit, uint32_t at) {
    const float other = chiplm_best_logit(best, at);
    return logit > other || (logit == other && id < best->ids[at]);
}

static void put(chiplm_best *best, uint32_t at, int32_t id, float logit) {
    best->ids[at] = id;
    if (best->logits != NULL) {
        best->logits[at] = logit;
    }
}

static void move(chiplm_best *best, uint32_t to, uint32_t from) {
    put(best, to, best->ids[from], best->logits != NULL ? best->logits[from] : 0.0f);
}

/* Puts a candidate into the heap of n places whose first is free: what comes after it rises, until it has found its place. */
static void sift(chiplm_best *best, uint32_t n, int32_t id, float logit) {
    uint32_t at = 0;
    for (uint32_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && is_before(best, best->ids[child], chiplm_best_logit(best, child), child + 1)) {
            child++;
        }
        if (!is_before(best, id, logit, child)) {
            break;
        }
        move(best, at, child);
        at = child;
    }
    put(best, at, id, logit);
}

void chiplm_best_take(chiplm_best *best, int32_t id, float logit) {
    if (best->n == best->k) { /* in place of the last in order */
        sift(best, best->n, id, logit);
        return;
    }
    uint32_t at = best->n++; /* rises from the end */
    while (at > 0 && !is_before(best, id, logit, (at - 1) / 2)) {
        move(best, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
    put(best, at, id, logit);
}

void chiplm_best_drop(chiplm_best *best) {
    const uint32_t end = --best->n;
    const int32_t last = best->ids[0], id = best->ids[end];
    const float least = chiplm_best_logit(best, 0), logit = chiplm_best_logit(best, end);
    if (end > 0) {
        sift(best, end, id, logit);
    }
    put(best, end, last, least);
}

void chiplm_best_sort(chiplm_best *best) {
    const uint32_t n = best->n;
    while (best->n > 0) { /* the last in order goes to the end */
        chiplm_best_drop(best);
    }
    best->n = n;
}
