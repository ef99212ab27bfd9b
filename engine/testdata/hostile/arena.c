/* The arena of a context is one block for a sanitizer. Here its parts are listed, each with the length that context.h gives
 * it. None may lie on another, and what lies behind the end of one, up to 63 bytes, is poisoned. */
#include "../../context.h"

#include "hostile.h"

/* HOSTILE_POISON tells files that are compiled without the sanitizer that the engine has it. */
#if defined(__SANITIZE_ADDRESS__) && !defined(HOSTILE_POISON)
#define HOSTILE_POISON
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(HOSTILE_POISON)
#define HOSTILE_POISON
#endif
#endif

#ifdef HOSTILE_POISON
#include <sanitizer/asan_interface.h>
static void poison(const void *at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
#else
static void poison(const void *at, size_t bytes) { (void)at, (void)bytes; }
#endif

void hostile_check_arena(const chiplm *lm) {
    const chiplm_model *m = &lm->image.model;
    const size_t batch = lm->batch;
    const size_t members = lm->team.members;
    const size_t mix = (size_t)m->n_layers * m->ple_dim;
    const size_t width = m->d_model / m->n_heads;
    const size_t larger = width > m->context_length ? width : m->context_length;
    const size_t attended = (larger + CHIPLM_TURN - 1) / CHIPLM_TURN * CHIPLM_TURN;
    const size_t together = lm->kernels->queries;
    const size_t last = members - 1;
    const struct {
        const void *at;
        size_t count, bytes;
    } parts[] = {
        {lm, 1, sizeof *lm},
        {lm->tensors, m->n_tensors, sizeof *lm->tensors},
        {lm->layers, m->n_layers, sizeof *lm->layers},
        {lm->x, batch * m->d_model, sizeof *lm->x},
        {lm->h, batch * m->d_model, sizeof *lm->h},
        {lm->y, batch * m->d_model, sizeof *lm->y},
        {lm->wide, batch * lm->wide_columns, sizeof *lm->wide},
        {lm->mix, batch * mix, sizeof *lm->mix},
        {lm->table_row, mix, sizeof *lm->table_row},
        {lm->routes, m->experts, sizeof *lm->routes},
        {lm->shares, batch, sizeof *lm->shares},
        {lm->chosen, batch, sizeof *lm->chosen},
        {lm->all, batch, sizeof *lm->all},
        {lm->which, batch, sizeof *lm->which},
        {lm->open, m->d_ff, sizeof *lm->open},
        {lm->used, m->d_ff, sizeof *lm->used},
        {lm->marks, m->d_ff, sizeof *lm->marks},
        {lm->counters, m->n_tensors + 4 * (size_t)m->n_layers, sizeof *lm->counters},
        {lm->cluster_ids, m->clusters, sizeof *lm->cluster_ids},
        {lm->cluster_bounds, m->clusters, sizeof *lm->cluster_bounds},
        {lm->inputs.codes, batch * lm->inputs.stride, sizeof *lm->inputs.codes},
        {lm->inputs.sums, batch * lm->inputs.stride / CHIPLM_CHUNK, sizeof *lm->inputs.sums},
        {lm->inputs.scales, batch, sizeof *lm->inputs.scales},
        {lm->scratch, members * lm->scratch_bytes, 1},
        {lm->attention[last].weights, attended, sizeof(float)},
        {lm->attention[last].shares, together * attended, sizeof(int16_t)},
        {lm->attention[last].sums, together * attended, sizeof(int32_t)},
        {lm->queries + last * together * ((width + 63) / 64 * 64), together * ((width + 63) / 64 * 64), sizeof *lm->queries},
    };
    enum { PARTS = sizeof parts / sizeof parts[0] };
    for (size_t i = 0; i < PARTS; i++) {
        const uint8_t *end = (const uint8_t *)parts[i].at + parts[i].count * parts[i].bytes;
        poison(end, (64 - (uintptr_t)end % 64) % 64);
        for (size_t j = 0; j < PARTS; j++) {
            WANT(i == j || parts[i].count == 0 || parts[j].count == 0 || (const uint8_t *)parts[j].at < (const uint8_t *)parts[i].at ||
                     (const uint8_t *)parts[j].at >= end,
                 "part %zu of the arena lies on part %zu", j, i);
        }
    }
}
