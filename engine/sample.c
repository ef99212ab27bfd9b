/* From logits to an id or a score: docs/numerics.md, sections "Score" and "Sampling". */
#include "best.h"
#include "kernels.h"
#include "numerics.h"

static bool all_finite(const float *logits, uint32_t n) {
    return chiplm_kernels_of(CHIPLM_PATH_BEST)->all_finite(logits, n);
}

/* The first of the largest of finite logits. */
static uint32_t best_of(const float *logits, uint32_t n) {
    const float most = chiplm_largest(logits, n);
    uint32_t best = 0;
    while (best + 1 < n && logits[best] != most) {
        best++;
    }
    return best;
}

chiplm_status chiplm_arg_max(const float *logits, uint32_t n, int32_t *id) {
    if (logits == NULL || n == 0 || n > INT32_MAX || id == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (!all_finite(logits, n)) {
        return CHIPLM_ERR_NOT_FINITE;
    }
    *id = (int32_t)best_of(logits, n);
    return CHIPLM_OK;
}

/* --------------------------------------------------------------------------------------------------------- the best */

chiplm_status chiplm_top(const float *logits, uint32_t n, uint32_t k, int32_t *order) {
    if (logits == NULL || n > INT32_MAX || k == 0 || k > n || order == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (!all_finite(logits, n)) {
        return CHIPLM_ERR_NOT_FINITE;
    }
    chiplm_best best = {.ids = order, .all = logits, .k = k};
    for (uint32_t i = 0; i < n; i++) {
        if (i < k || logits[i] > logits[order[0]]) { /* ids ascend: an equal logit comes later in order */
            chiplm_best_take(&best, (int32_t)i, logits[i]);
        }
    }
    chiplm_best_sort(&best);
    return CHIPLM_OK;
}

/* --------------------------------------------------------------------------------------------------------- sampling */

uint64_t chiplm_random(uint64_t *random) {
    *random += 0x9e3779b97f4a7c15ULL;
    uint64_t z = *random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* The weight of place i: exp((logit_i - logit_0) / temperature). order is null when the logits are in order already. */
static float weight(const float *logits, const int32_t *order, uint32_t i, float temperature) {
    const float best = order == NULL ? logits[0] : logits[order[0]];
    return chiplm_exp(((order == NULL ? logits[i] : logits[order[i]]) - best) / temperature);
}

/* Draws a place among n. The weights are computed twice rather than kept, so that no scratch is needed. */
static uint32_t draw(const float *logits, const int32_t *order, uint32_t n, float temperature, uint64_t *random) {
    float lanes[8] = {0};
    for (uint32_t i = 0; i < n; i++) {
        lanes[i % 8] += weight(logits, order, i, temperature);
    }
    const float threshold = ((float)(chiplm_random(random) >> 40) * 0x1p-24f) * chiplm_join8(lanes);
    float running = 0.0f;
    uint32_t chosen = 0;
    for (; chosen + 1 < n; chosen++) {
        running += weight(logits, order, chosen, temperature);
        if (running > threshold) {
            break;
        }
    }
    return chosen;
}

/* 0, or positive and finite; by its bits, since a processor may take a negative subnormal for -0. */
static bool is_temperature(float t) { return chiplm_bits(t) < 0x7f800000U || chiplm_bits(t) == 0x80000000U; }

/* Whether a temperature leaves anything to draw. Below this bound, where a flushed subnormal could change a weight, it
 * counts as 0. */
static bool is_warm(float t) { return t >= 0x1p-100f; }

chiplm_status chiplm_draw(const float *logits, uint32_t n, float temperature, uint64_t *random, uint32_t *index) {
    if (!is_temperature(temperature)) {
        return CHIPLM_ERR_TEMPERATURE;
    }
    if (logits == NULL || n == 0 || index == NULL || (random == NULL && is_warm(temperature))) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (!all_finite(logits, n)) {
        return CHIPLM_ERR_NOT_FINITE;
    }
    *index = is_warm(temperature) ? draw(logits, NULL, n, temperature, random) : 0;
    return CHIPLM_OK;
}

chiplm_status chiplm_sample(const float *logits, uint32_t n, float temperature, uint32_t k, uint64_t *random,
                            int32_t *order, int32_t *id) {
    if (!is_temperature(temperature)) {
        return CHIPLM_ERR_TEMPERATURE;
    }
    if (!is_warm(temperature)) {
        return chiplm_arg_max(logits, n, id);
    }
    if (random == NULL || id == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (k == 0 || k > n) {
        k = n;
    }
    const chiplm_status status = chiplm_top(logits, n, k, order);
    if (status != CHIPLM_OK) {
        return status;
    }
    *id = order[draw(logits, order, k, temperature, random)];
    return CHIPLM_OK;
}

chiplm_status chiplm_score(const float *logits, uint32_t n, int32_t id, float *sum, float *shift) {
    if (logits == NULL || n == 0 || sum == NULL || shift == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if (id < 0 || (uint32_t)id >= n) {
        return CHIPLM_ERR_ID;
    }
    float most;
    if (!chiplm_kernels_of(CHIPLM_PATH_BEST)->soft_sum(logits, n, &most, sum)) {
        return CHIPLM_ERR_NOT_FINITE;
    }
    *shift = logits[id] - most;
    return CHIPLM_OK;
}
