/* Lays a context out in the caller's memory, and binds its tensors. */
#include "context.h"

#include "image.h"
#include "numerics.h"

enum { MAX_BATCH = 1024, ALIGNMENT = 64 };

/* ------------------------------------------------------------------------------------------------------ the layout */

/* Where each part of the arena starts. One function computes it for both chiplm_arena_bytes and chiplm_start. */
typedef struct layout {
    uint64_t tensors, layers, x, h, y, wide, mix, table_row, routes, shares, chosen, all, which;
    uint64_t open, used, marks, counters, cluster_ids, cluster_bounds;
    uint64_t input_codes, input_sums, input_scales, scratch, scratch_bytes;
    uint64_t attention_weights, attention_shares, attention_sums, queries;
    uint64_t total;
    uint64_t wide_columns, input_stride, attention_columns;
} layout;

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t padded(uint64_t columns) { return (columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD; }

/* Takes count elements of bytes each from the arena. Sizes of a checked model keep every sum far below 2^63. */
static uint64_t take(uint64_t *total, uint64_t count, uint64_t bytes) {
    const uint64_t at = *total;
    *total += (count * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static uint32_t members_of(const chiplm_options *options) {
    return options->team.members > 1 ? options->team.members : 1;
}

static layout plan(const chiplm_image *image, const chiplm_options *options) {
    const uint64_t batch = options->batch;
    const uint64_t members = members_of(options);
    const chiplm_model *m = &image->model;
    const uint64_t d = m->d_model;
    const uint64_t width = d / m->n_heads;
    const uint64_t mix = (uint64_t)m->n_layers * m->ple_dim;
    uint64_t groups = 1;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        chiplm_tensor t;
        (void)chiplm_image_tensor(image, i, &t);
        groups = larger(groups, t.groups);
    }
    layout l = {0};
    uint64_t *at = &l.total;
    (void)take(at, 1, sizeof(chiplm));
    l.wide_columns = larger(3 * d, larger(2 * (uint64_t)m->d_ff, m->ple_dim));
    l.input_stride = padded(larger(d, larger(m->d_ff, m->ple_dim)));
    l.tensors = take(at, m->n_tensors, sizeof(chiplm_tensor));
    l.layers = take(at, m->n_layers, sizeof(chiplm_layer));
    l.x = take(at, batch * d, sizeof(float));
    l.h = take(at, batch * d, sizeof(float));
    l.y = take(at, batch * d, sizeof(float));
    l.wide = take(at, batch * l.wide_columns, sizeof(float));
    l.mix = take(at, batch * mix, sizeof(float));
    l.table_row = take(at, mix, sizeof(float));
    l.routes = take(at, m->experts, sizeof(float));
    l.shares = take(at, batch, sizeof(float));
    l.chosen = take(at, batch, sizeof(uint32_t));
    l.all = take(at, batch, sizeof(uint32_t));
    l.which = take(at, batch, sizeof(uint32_t));
    l.open = take(at, m->d_ff, sizeof(uint32_t));
    l.used = take(at, m->d_ff, sizeof(uint32_t));
    l.marks = take(at, m->d_ff, sizeof(uint8_t));
    l.counters = take(at, m->n_tensors + 4 * (uint64_t)m->n_layers, sizeof(uint64_t));
    l.cluster_ids = take(at, m->clusters, sizeof(int32_t));
    l.cluster_bounds = take(at, m->clusters, sizeof(float));
    l.input_codes = take(at, batch * l.input_stride, sizeof(int8_t));
    l.input_sums = take(at, batch * l.input_stride / CHIPLM_CHUNK, sizeof(int32_t));
    l.input_scales = take(at, batch, sizeof(float));
    const chiplm_kernels *kernels = chiplm_kernels_of(options->path);
    l.scratch_bytes = kernels->scratch_bytes(options->batch, l.input_stride, groups);
    l.scratch_bytes = (l.scratch_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l.scratch = take(at, members, l.scratch_bytes);
    l.attention_columns = (larger(m->context_length, width) + CHIPLM_TURN - 1) / CHIPLM_TURN * CHIPLM_TURN;
    const uint64_t queries = members * kernels->queries;
    l.attention_weights = take(at, members * l.attention_columns, sizeof(float));
    l.attention_shares = take(at, queries * l.attention_columns, sizeof(int16_t));
    l.attention_sums = take(at, queries * l.attention_columns, sizeof(int32_t));
    l.queries = take(at, queries * padded(width), sizeof(int8_t));
    return l;
}

/* Bytes of codes and of scales of one of keys and values, rounded up to the alignment. */
static void cache_parts(const chiplm_model *m, uint64_t *codes, uint64_t *scales) {
    *codes = 0;
    *scales = 0;
    const uint64_t positions = (uint64_t)m->n_layers * m->context_length;
    (void)take(codes, positions, m->d_model);
    (void)take(scales, positions * m->n_heads, sizeof(float));
}

static size_t to_size(uint64_t bytes) { return bytes > SIZE_MAX / 2 ? 0 : (size_t)bytes; }

static bool is_open(const chiplm_image *image) { return image != NULL && image->file.at != NULL; }

size_t chiplm_arena_bytes(const chiplm_image *image, const chiplm_options *options) {
    if (!is_open(image) || options == NULL || options->batch < 1 || options->batch > MAX_BATCH ||
        chiplm_kernels_of(options->path) == NULL || options->team.members > CHIPLM_MAX_MEMBERS ||
        (options->team.members > 1 && options->team.run == NULL)) {
        return 0;
    }
    return to_size(plan(image, options).total);
}

size_t chiplm_cache_bytes(const chiplm_image *image) {
    if (!is_open(image)) {
        return 0;
    }
    uint64_t codes, scales;
    cache_parts(&image->model, &codes, &scales);
    return to_size(2 * (codes + scales));
}

/* ------------------------------------------------------------------------------------------------------- the start */

/* Gives every tensor its place by name. */
static void name_tensors(chiplm *lm) {
    for (uint32_t i = 0; i < lm->image.model.n_tensors; i++) {
        chiplm_tensor *t = &lm->tensors[i];
        (void)chiplm_image_tensor(&lm->image, i, t);
        const chiplm_expected e = chiplm_expect(&lm->image.model, i);
        chiplm_layer *layer = &lm->layers[e.layer];
        const chiplm_tensor **place[] = {
            [CHIPLM_ATTENTION_NORM] = &layer->attention_norm,
            [CHIPLM_QKV] = &layer->qkv,
            [CHIPLM_ATTENTION_OUTPUT] = &layer->attention_output,
            [CHIPLM_FFN_NORM] = &layer->ffn_norm,
            [CHIPLM_ROUTER] = &layer->router,
            [CHIPLM_GATE] = &layer->gate,
            [CHIPLM_UP] = &layer->up,
            [CHIPLM_DOWN] = &layer->down,
            [CHIPLM_PLE_GATE] = &layer->ple_gate,
            [CHIPLM_PLE_OUTPUT] = &layer->ple_output,
            [CHIPLM_PLE_NORM] = &layer->ple_norm,
            [CHIPLM_TOKEN_EMBEDDING] = &lm->embedding,
            [CHIPLM_NGRAM_TABLE] = &lm->ngram_table,
            [CHIPLM_PLE_PROJECTION] = &lm->ple_projection,
            [CHIPLM_PLE_PROJECTION_NORM] = &lm->ple_projection_norm,
            [CHIPLM_PLE_TABLE] = &lm->ple_table,
            [CHIPLM_OUTPUT_NORM] = &lm->output_norm,
            [CHIPLM_HEAD] = &lm->head,
            [CHIPLM_HEAD_ROTATION] = &lm->head_rotation,
            [CHIPLM_HEAD_BOUNDS] = &lm->head_bounds,
            [CHIPLM_HEAD_BLOCKS_0] = &lm->head_blocks[0],
            [CHIPLM_HEAD_BLOCKS_1] = &lm->head_blocks[1],
            [CHIPLM_HEAD_ORDER] = &lm->head_order,
        };
        *place[e.part] = t;
    }
    if (lm->image.model.tied != 0) {
        lm->head = lm->embedding;
    }
}

chiplm_status chiplm_start(chiplm **out, const chiplm_image *image, const chiplm_options *options, void *arena,
                           size_t arena_bytes, void *cache, size_t cache_bytes) {
    if (out == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    *out = NULL;
    const size_t arena_need = chiplm_arena_bytes(image, options);
    const size_t cache_need = chiplm_cache_bytes(image);
    if (arena_need == 0 || cache_need == 0 || arena == NULL || cache == NULL) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if ((uintptr_t)arena % ALIGNMENT != 0 || (uintptr_t)cache % ALIGNMENT != 0) {
        return CHIPLM_ERR_ALIGNMENT;
    }
    if (arena_bytes < arena_need || cache_bytes < cache_need) {
        return CHIPLM_ERR_ARENA;
    }
    if (chiplm_kernels_of(options->path)->is_fused()) {
        return CHIPLM_ERR_FUSED;
    }
    const layout l = plan(image, options);
    uint8_t *base = arena;
    chiplm *lm = arena;
    memset(lm, 0, sizeof *lm);
    lm->image = *image;
    lm->batch = options->batch;
    lm->kernels = chiplm_kernels_of(options->path);
    lm->dense = options->dense;
    lm->team = options->team;
    lm->team.members = members_of(options);
    lm->tensors = (void *)(base + l.tensors);
    lm->layers = (void *)(base + l.layers);
    lm->x = (void *)(base + l.x);
    lm->h = (void *)(base + l.h);
    lm->y = (void *)(base + l.y);
    lm->wide = (void *)(base + l.wide);
    lm->wide_columns = (size_t)l.wide_columns;
    lm->mix = (void *)(base + l.mix);
    lm->table_row = (void *)(base + l.table_row);
    lm->routes = (void *)(base + l.routes);
    lm->shares = (void *)(base + l.shares);
    lm->chosen = (void *)(base + l.chosen);
    lm->all = (void *)(base + l.all);
    lm->which = (void *)(base + l.which);
    lm->inputs.codes = (void *)(base + l.input_codes);
    lm->inputs.scales = (void *)(base + l.input_scales);
    lm->inputs.stride = (size_t)l.input_stride;
    lm->inputs.sums = (void *)(base + l.input_sums);
    lm->open = (void *)(base + l.open);
    lm->used = (void *)(base + l.used);
    lm->marks = base + l.marks;
    lm->cluster_ids = (void *)(base + l.cluster_ids);
    lm->cluster_bounds = (void *)(base + l.cluster_bounds);
    lm->scratch = base + l.scratch;
    lm->scratch_bytes = (size_t)l.scratch_bytes;
    lm->queries = (void *)(base + l.queries);
    for (uint32_t i = 0; i < members_of(options); i++) {
        const size_t at = (size_t)i * (size_t)l.attention_columns;
        lm->attention[i].weights = (float *)(void *)(base + l.attention_weights) + at;
        lm->attention[i].shares = (int16_t *)(void *)(base + l.attention_shares) + at * lm->kernels->queries;
        lm->attention[i].sums = (int32_t *)(void *)(base + l.attention_sums) + at * lm->kernels->queries;
    }
    lm->counters = (void *)(base + l.counters);
    uint64_t *counters = lm->counters;
    lm->reads.tensors = counters;
    counters += image->model.n_tensors;
    const uint64_t **of_layers[] = {&lm->reads.open, &lm->reads.used, &lm->reads.up_rows, &lm->reads.down_columns};
    for (size_t i = 0; i < sizeof of_layers / sizeof of_layers[0]; i++) {
        *of_layers[i] = counters;
        counters += image->model.n_layers;
    }
    chiplm_clear_reads(lm);

    uint64_t codes, scales;
    cache_parts(&image->model, &codes, &scales);
    uint8_t *at = cache;
    lm->key_codes = (void *)at;
    lm->value_codes = (void *)(at + codes);
    lm->key_scales = (void *)(at + 2 * codes);
    lm->value_scales = (void *)(at + 2 * codes + scales);

    memset(lm->layers, 0, image->model.n_layers * sizeof *lm->layers);
    for (uint32_t i = 0; i < lm->batch; i++) {
        lm->all[i] = i;
    }
    name_tensors(lm);
    *out = lm;
    return CHIPLM_OK;
}

chiplm_status chiplm_bind_tensor(chiplm *lm, uint32_t index, chiplm_span codes, chiplm_span scales) {
    if (lm == NULL || index >= lm->image.model.n_tensors) {
        return CHIPLM_ERR_ARGUMENT;
    }
    chiplm_tensor *t = &lm->tensors[index];
    if (scales.at != NULL && t->scale_type == 0) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if ((uintptr_t)codes.at % 16 != 0 || (uintptr_t)scales.at % 16 != 0) {
        return CHIPLM_ERR_ALIGNMENT;
    }
    if ((codes.at != NULL && codes.bytes < t->codes.bytes) || (scales.at != NULL && scales.bytes < t->scales.bytes)) {
        return CHIPLM_ERR_ARENA;
    }
    if (codes.at != NULL) {
        t->codes.at = codes.at;
    }
    if (scales.at != NULL) {
        t->scales.at = scales.at;
    }
    return CHIPLM_OK;
}

const chiplm_reads *chiplm_reads_of(const chiplm *lm) { return &lm->reads; }

void chiplm_clear_reads(chiplm *lm) {
    const chiplm_model *m = &lm->image.model;
    memset(lm->counters, 0, (m->n_tensors + 4 * (size_t)m->n_layers) * sizeof *lm->counters);
    lm->reads.positions = lm->reads.blocks = lm->reads.logits = lm->reads.rope = lm->reads.cache = 0;
    lm->reads.searches = lm->reads.searched_rows = lm->reads.blocks_read[0] = lm->reads.blocks_read[1] = 0;
}

void chiplm_trace(chiplm *lm, chiplm_tracer tracer, void *self) {
    lm->tracer = tracer;
    lm->tracer_self = self;
}

void chiplm_reset(chiplm *lm) { lm->position = 0; }

uint32_t chiplm_position(const chiplm *lm) { return lm->position; }

const chiplm_fault *chiplm_last_fault(const chiplm *lm) { return &lm->fault; }
