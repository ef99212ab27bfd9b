/* Products cut between the members of a team, and counted. */
#include "parts.h"

void chiplm_run_parts(chiplm *lm, void (*part)(void *argument, uint32_t member), void *argument) {
    if (lm->team.members == 1) {
        part(argument, 0);
    } else {
        lm->team.run(lm->team.self, part, argument);
    }
}

typedef struct product_job {
    const chiplm *lm;
    chiplm_product product;
} product_job;

/* The first of count things that member has, of members that share them in runs of whole steps. */
static uint32_t share(uint32_t count, uint32_t step, uint32_t member, uint32_t members) {
    if (members == 1) {
        return member == 0 ? 0 : count;
    }
    const uint64_t steps = ((uint64_t)count + step - 1) / step;
    const uint64_t first = steps * member / members * step;
    return first < count ? (uint32_t)first : count;
}

static void product_part(void *argument, uint32_t member) {
    const product_job *job = argument;
    const chiplm *lm = job->lm;
    const uint32_t members = lm->team.members;
    chiplm_product p = job->product;
    p.scratch = lm->scratch + member * lm->scratch_bytes;
    if (p.w->block == 0 && p.list != NULL) {
        const uint32_t from = share(p.listed, 1, member, members);
        p.listed = share(p.listed, 1, member + 1, members) - from;
        p.list += from;
        if (p.listed == 0) {
            return;
        }
    } else {
        const uint32_t from = share(p.rows, CHIPLM_STEP, member, members);
        p.rows = share(p.rows, CHIPLM_STEP, member + 1, members) - from;
        p.first += from;
        p.y += from;
        if (p.rows == 0) {
            return;
        }
    }
    if (p.w->block == 0) {
        lm->kernels->product(&p);
    } else {
        lm->kernels->product_transposed(&p);
    }
}

static void count(chiplm *lm, const chiplm_tensor *w, uint64_t bytes) { lm->counters[w - lm->tensors] += bytes; }

static uint64_t scale_bytes(const chiplm_tensor *w) { return w->scale_type == CHIPLM_F16 ? 2 : 4; }

void chiplm_count_rows(chiplm *lm, const chiplm_tensor *w, uint64_t rows) {
    count(lm, w, rows * (w->stride + w->groups * scale_bytes(w)));
}

/* Counts columns of a block of a transposed tensor, and the scales of the groups they lie in: list, or all. */
static void count_columns(chiplm *lm, const chiplm_tensor *w, const uint32_t *list, uint32_t listed) {
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    uint64_t groups = w->groups;
    if (list != NULL) {
        groups = 0;
        for (uint64_t i = 0, end = 0; i < listed; i++) {
            if (list[i] >= end) { /* the first of its group */
                groups++;
                end = (list[i] / (uint64_t)group + 1) * group;
            }
        }
    }
    count(lm, w, (uint64_t)listed * w->stride + groups * w->block * scale_bytes(w));
}

void chiplm_multiply_listed(chiplm *lm, const chiplm_tensor *w, uint32_t first, uint32_t rows, const uint32_t *list,
                            uint32_t listed, const uint32_t *which, uint32_t n, float *y, size_t ldy) {
    product_job job = {
        .lm = lm,
        .product = {.w = w,
                    .first = first,
                    .rows = rows,
                    .list = list,
                    .listed = listed,
                    .x = lm->inputs,
                    .which = which,
                    .n = n,
                    .y = y,
                    .ldy = ldy},
    };
    if (w->block != 0) {
        count_columns(lm, w, list, list == NULL ? w->columns : listed);
    } else {
        chiplm_count_rows(lm, w, list == NULL ? rows : listed);
    }
    chiplm_run_parts(lm, product_part, &job);
}

void chiplm_multiply(chiplm *lm, const chiplm_tensor *w, uint32_t first, uint32_t rows, const uint32_t *which, uint32_t n,
                     float *y, size_t ldy) {
    chiplm_multiply_listed(lm, w, first, rows, NULL, 0, which, n, y, ldy);
}
