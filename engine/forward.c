/* Feeding ids to a context: the checks, the cutting into blocks, and the golden run. */
#include "context.h"

#include "head.h"
#include "image.h"
#include "numerics.h"

/* Checks everything that can be checked before computing. */
static chiplm_status check(chiplm *lm, const int32_t *ids, size_t n) {
    const chiplm_model *m = &lm->image.model;
    if (ids == NULL && n > 0) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_ARGUMENT, "ids", 0, 0);
    }
    if (n > m->context_length - lm->position) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_CONTEXT, "position", (uint64_t)lm->position + n, m->context_length);
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->vocab_size) {
            return chiplm_fail(&lm->fault, CHIPLM_ERR_ID, "token id", (uint64_t)(int64_t)ids[i], m->vocab_size - 1U);
        }
    }
    return CHIPLM_OK;
}

/* What is wanted of the ids fed: nothing, the logits of all, of the last, or the best tokens after the last. */
typedef struct wanted {
    enum { NONE, ALL, LAST, BEST } kind;
    float *logits; /* ALL: row after row; LAST: one row */
    const chiplm_search *search;
    chiplm_best *best;
} wanted;

/* Reads of the head what is wanted of a block of n positions; last says that it is the last of the call. */
static chiplm_status finish_block(chiplm *lm, uint32_t n, bool last, const wanted *want, float *logits) {
    if (want->kind == ALL) {
        return chiplm_run_head(lm, 0, n, logits);
    }
    if (want->kind == NONE || !last) {
        return CHIPLM_OK;
    }
    if (want->kind == LAST) {
        return chiplm_run_head(lm, n - 1, n, logits);
    }
    chiplm_prepare_head(lm, n - 1, n);
    return lm->finite && chiplm_search_head(lm, 0, want->search, want->best) ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
}

static chiplm_status feed(chiplm *lm, const int32_t *ids, size_t n, const wanted *want) {
    chiplm_status status = check(lm, ids, n);
    if (status != CHIPLM_OK) {
        return status;
    }
    const uint32_t start = lm->position;
    const uint32_t last = lm->last;
    float *logits = want->logits;
    for (size_t done = 0; done < n;) {
        const uint32_t block = n - done < lm->batch ? (uint32_t)(n - done) : lm->batch;
        status = chiplm_run_block(lm, ids + done, block);
        if (status == CHIPLM_OK) {
            status = finish_block(lm, block, done + block == n, want, logits);
        }
        if (status != CHIPLM_OK) {
            const uint32_t at = lm->position;
            lm->position = start;
            lm->last = last;
            return chiplm_fail(&lm->fault, status, "positions from", at, 0);
        }
        lm->position += block;
        done += block;
        lm->last = (uint32_t)ids[done - 1];
        if (want->kind == ALL) {
            logits += (size_t)block * lm->image.model.vocab_size;
        }
    }
    return CHIPLM_OK;
}

chiplm_status chiplm_forward(chiplm *lm, const int32_t *ids, size_t n, float *logits) {
    if (lm == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    return feed(lm, ids, n, &(wanted){.kind = logits == NULL ? NONE : ALL, .logits = logits});
}

chiplm_status chiplm_forward_last(chiplm *lm, const int32_t *ids, size_t n, float *logits) {
    if (lm == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (n == 0 || logits == NULL) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_ARGUMENT, n == 0 ? "number of ids" : "logits", 0, 1);
    }
    return feed(lm, ids, n, &(wanted){.kind = LAST, .logits = logits});
}

chiplm_status chiplm_forward_best(chiplm *lm, const int32_t *ids, size_t n, const chiplm_search *search, uint32_t k,
                                  int32_t *best, float *logits, uint32_t *found) {
    if (lm == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (n == 0 || search == NULL || best == NULL || logits == NULL || found == NULL) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_ARGUMENT, n == 0 ? "number of ids" : "search or room for its result", 0, 1);
    }
    if (k < 1 || k > lm->image.model.vocab_size) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_ARGUMENT, "number of best tokens", k, lm->image.model.vocab_size);
    }
    if (!search->full && lm->image.model.clusters == 0) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_CLUSTERS, "clusters", 0, 1);
    }
    if (!search->full && !(search->margin >= 0.0f && search->margin <= 1.0f)) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_ARGUMENT, "margin of the search, as its bits", chiplm_bits(search->margin), 0);
    }
    chiplm_best heap = {.ids = best, .logits = logits, .k = k};
    const chiplm_status status = feed(lm, ids, n, &(wanted){.kind = BEST, .search = search, .best = &heap});
    *found = heap.n;
    return status;
}

static chiplm_status verify(chiplm *lm, float *logits) {
    const uint32_t vocabulary = lm->image.model.vocab_size;
    const chiplm_golden golden = chiplm_image_golden(&lm->image);
    uint64_t digest = chiplm_digest_start();
    for (uint32_t i = 0; i < golden.n_prompt; i++) {
        const chiplm_status status = chiplm_forward(lm, golden.prompt + i, 1, logits);
        if (status != CHIPLM_OK) {
            return status;
        }
        digest = chiplm_digest_add(digest, i, golden.prompt[i], logits, vocabulary);
    }
    if (digest != golden.digest) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_DIGEST, "golden: digest", digest, golden.digest);
    }
    /* The stored best tokens are the best: each has its logit, and they are in order (checked when the image was
     * opened), so it is enough that no other token comes before the last of them. */
    const uint32_t *last = golden.top + 2 * ((size_t)golden.n_top - 1);
    const float least = chiplm_from_bits(last[1]);
    uint32_t as_good = 0;
    for (uint32_t id = 0; id < vocabulary; id++) {
        as_good += logits[id] > least || (logits[id] == least && id <= last[0]) ? 1U : 0U;
    }
    if (as_good != golden.n_top) {
        return chiplm_fail(&lm->fault, CHIPLM_ERR_DIGEST, "golden: number of best tokens", as_good, golden.n_top);
    }
    for (uint32_t i = 0; i < golden.n_top; i++) {
        const uint32_t id = golden.top[2 * (size_t)i];
        const uint32_t bits = golden.top[2 * (size_t)i + 1];
        if (chiplm_bits(logits[id]) != bits) {
            return chiplm_fail(&lm->fault, CHIPLM_ERR_DIGEST, "golden: logit", chiplm_bits(logits[id]), bits);
        }
    }
    return CHIPLM_OK;
}

chiplm_status chiplm_verify(chiplm *lm, float *logits) {
    if (lm == NULL || logits == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    chiplm_reset(lm);
    const chiplm_status status = verify(lm, logits);
    chiplm_reset(lm);
    return status;
}
