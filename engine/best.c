/* The k best of many candidates, in a heap of k places. */
#include "best.h"

/* Whether the candidate at a comes before that at b: logit down, id up. */
static bool before(const chiplm_best *best, uint32_t a, uint32_t b) {
    const float x = chiplm_best_logit(best, a);
    const float y = chiplm_best_logit(best, b);
    return x > y || (x == y && best->ids[a] < best->ids[b]);
}

static void swap(chiplm_best *best, uint32_t a, uint32_t b) {
    const int32_t id = best->ids[a];
    best->ids[a] = best->ids[b];
    best->ids[b] = id;
    if (best->logits != NULL) {
        const float logit = best->logits[a];
        best->logits[a] = best->logits[b];
        best->logits[b] = logit;
    }
}

static void put(chiplm_best *best, uint32_t at, int32_t id, float logit) {
    best->ids[at] = id;
    if (best->logits != NULL) {
        best->logits[at] = logit;
    }
}

/* Restores the heap of the first n candidates, of which the first may be misplaced. */
static void sift(chiplm_best *best, uint32_t n) {
    for (uint32_t at = 0;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && before(best, child, child + 1)) {
            child++;
        }
        if (!before(best, at, child)) {
            return;
        }
        swap(best, at, child);
        at = child;
    }
}

void chiplm_best_take(chiplm_best *best, int32_t id, float logit) {
    if (best->n == best->k) { /* in place of the last in order */
        put(best, 0, id, logit);
        sift(best, best->n);
        return;
    }
    uint32_t at = best->n++; /* rises from the end */
    put(best, at, id, logit);
    while (at > 0 && before(best, (at - 1) / 2, at)) {
        swap(best, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

void chiplm_best_sort(chiplm_best *best) {
    for (uint32_t end = best->n; end-- > 1;) { /* the last in order goes to the end */
        swap(best, 0, end);
        sift(best, end);
    }
}
