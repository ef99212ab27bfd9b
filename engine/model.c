/* The forward pass, block by block: docs/numerics.md, section "The model", for up to batch positions at once.
 *
 * Every position is computed from its own row and the cache alone, so how a sequence is cut into blocks changes nothing
 * but how often a row of weights is read. */
#include "context.h"

#include "numerics.h"
#include "parts.h"

static const float *floats(const chiplm_tensor *t) { return (const float *)(const void *)t->codes.at; }

/* Shows the rows of v that which names, each of count values, to the tracer. */
static void trace_some(chiplm *lm, int32_t layer, const char *name, const float *v, size_t ldv, uint32_t count,
                       const uint32_t *which, uint32_t n) {
    for (uint32_t i = 0; lm->tracer != NULL && i < n; i++) {
        const chiplm_step step = {.layer = layer,
                                  .name = name,
                                  .position = lm->position + which[i],
                                  .values = v + which[i] * ldv,
                                  .count = count};
        lm->tracer(lm->tracer_self, &step);
    }
}

/* Shows a row for each position of the block. */
static void trace(chiplm *lm, int32_t layer, const char *name, const float *v, size_t ldv, uint32_t count, uint32_t n) {
    trace_some(lm, layer, name, v, ldv, count, lm->all, n);
}

/* Quantises the rows of v that which names, each as one vector, as inputs of the products that follow. */
static void quantise(chiplm *lm, const float *v, size_t ldv, uint32_t columns, const uint32_t *which, uint32_t n) {
    const size_t stride = lm->inputs.stride;
    const size_t padded = ((size_t)columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    for (uint32_t i = 0; i < n; i++) {
        const size_t b = which[i];
        lm->inputs.scales[b] = lm->kernels->quantise(v + b * ldv, columns, padded, lm->inputs.codes + b * stride,
                                                     lm->inputs.sums + b * stride / CHIPLM_CHUNK);
        lm->finite = lm->finite && !chiplm_is_nan(lm->inputs.scales[b]);
    }
}

/* x = x + y over the block. */
static void add(chiplm *lm, uint32_t n) {
    lm->kernels->add(lm->x, lm->y, (size_t)n * lm->image.model.d_model);
}

/* The gain of a norm, which is counted as read once for a block. */
static const float *gain(chiplm *lm, const chiplm_tensor *norm) {
    chiplm_count_rows(lm, norm, norm->rows);
    return floats(norm);
}

/* h = rmsnorm(x, norm) for the positions first..n-1 of the block. */
static void normalise(chiplm *lm, const chiplm_tensor *norm, uint32_t first, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const float *g = gain(lm, norm);
    for (uint32_t b = first; b < n; b++) {
        const size_t at = (size_t)b * m->d_model;
        lm->kernels->rmsnorm(lm->x + at, g, m->d_model, m->norm_eps, lm->h + at);
    }
}

/* Adds to x, for each position of the block, the row of the bigram table for its id and the one before it. */
static void add_pairs(chiplm *lm, const int32_t *ids, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    uint32_t previous = lm->position > 0 ? lm->last : m->vocab_size;
    for (uint32_t b = 0; b < n; b++) {
        const uint32_t id = (uint32_t)ids[b];
        lm->kernels->dequantise(lm->ngram_table, chiplm_ngram_row(previous, id, m->ngram_rows), lm->y + (size_t)b * m->d_model);
        previous = id;
    }
    add(lm, n);
    chiplm_count_rows(lm, lm->ngram_table, n);
}

/* x and the per-layer inputs of the block. */
static void embed(chiplm *lm, const int32_t *ids, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const uint32_t d = m->d_model;
    const uint32_t p = m->ple_dim;
    for (uint32_t b = 0; b < n; b++) {
        lm->kernels->dequantise(lm->embedding, (uint32_t)ids[b], lm->x + (size_t)b * d);
    }
    chiplm_count_rows(lm, lm->embedding, n);
    if (m->ngram_rows > 0) {
        add_pairs(lm, ids, n);
    }
    trace(lm, -1, "token_embedding", lm->x, d, d, n);
    if (p == 0) {
        return;
    }
    const uint32_t columns = m->n_layers * p;
    quantise(lm, lm->x, d, d, lm->all, n);
    chiplm_multiply(lm, lm->ple_projection, 0, columns, lm->all, n, lm->mix, columns);
    trace(lm, -1, "ple_projection", lm->mix, columns, columns, n);
    const float *g = gain(lm, lm->ple_projection_norm);
    chiplm_count_rows(lm, lm->ple_table, n);
    for (uint32_t b = 0; b < n; b++) {
        float *mix = lm->mix + (size_t)b * columns;
        const float *row = lm->table_row;
        lm->kernels->dequantise(lm->ple_table, (uint32_t)ids[b], lm->table_row);
        for (uint32_t i = 0; i < columns; i++) {
            mix[i] = mix[i] * m->ple_scale;
        }
        for (uint32_t l = 0; l < m->n_layers; l++) {
            float *e = mix + (size_t)l * p;
            lm->kernels->rmsnorm(e, g, p, m->norm_eps, e);
        }
        lm->kernels->blend(mix, row, m->table_scale, m->mix_scale, columns);
    }
    trace(lm, -1, "mix", lm->mix, columns, columns, n);
}

/* One head of one position: turns its query, key and value; caches the latter two. Returns the scale of the query, whose
 * codes go to query. */
static float prepare(chiplm *lm, uint32_t head, uint32_t position, size_t here, float *qkv, int8_t *query) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_kernels *kernels = lm->kernels;
    const uint32_t width = m->d_model / m->n_heads;
    const size_t half = width / 2;
    const float *cosines = (const float *)(const void *)lm->image.rope.at + position * half;
    const float *sines = cosines + m->context_length * half;
    float *q = qkv + (size_t)head * width;
    float *k = q + m->d_model;
    const float *v = k + m->d_model;
    if (m->qk_norm != 0) {
        kernels->rmsnorm(q, NULL, width, m->norm_eps, q);
        kernels->rmsnorm(k, NULL, width, m->norm_eps, k);
    }
    kernels->rotate(q, width, cosines, sines);
    kernels->rotate(k, width, cosines, sines);
    lm->key_scales[here] = kernels->quantise(k, width, width, lm->key_codes + here * width, NULL);
    lm->value_scales[here] = kernels->quantise(v, width, width, lm->value_codes + here * width, NULL);
    return kernels->quantise(q, width, width, query, NULL);
}

typedef struct attention_job {
    chiplm *lm;
    uint32_t layer, n;
} attention_job;

/* One head over some positions of the block, as many as the kernels take at a time. */
static bool attend(const attention_job *job, uint32_t member, uint32_t head, uint32_t from, uint32_t n) {
    chiplm *lm = job->lm;
    const chiplm_model *m = &lm->image.model;
    const uint32_t width = m->d_model / m->n_heads;
    const size_t stride = ((size_t)width + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    const size_t first = ((size_t)job->layer * m->n_heads + head) * m->context_length; /* position 0 in the cache */
    const uint32_t position = lm->position + from;
    int8_t *codes = lm->queries + member * lm->kernels->queries * stride;
    float scales[CHIPLM_MOST_QUERIES];
    bool finite = true;
    for (uint32_t i = 0; i < n; i++) {
        const size_t here = first + position + i;
        float *qkv = lm->wide + (from + i) * lm->wide_columns;
        scales[i] = prepare(lm, head, position + i, here, qkv, codes + i * stride);
        finite = finite && !chiplm_is_nan(scales[i]) && !chiplm_is_nan(lm->key_scales[here]);
    }
    const chiplm_queries queries = {.codes = codes, .stride = stride, .scales = scales, .n = n};
    const chiplm_head cached = {
        .keys = lm->key_codes + first * width,
        .key_scales = lm->key_scales + first,
        .values = lm->value_codes + first * width,
        .value_scales = lm->value_scales + first,
    };
    float *o = lm->h + (size_t)from * m->d_model + (size_t)head * width;
    return lm->kernels->attend(queries, cached, position, width, m->score_scale, lm->attention[member], o, m->d_model) &&
           finite;
}

/* Some heads, over the positions of the block in their order. */
static void attention_part(void *argument, uint32_t member) {
    const attention_job *job = argument;
    chiplm *lm = job->lm;
    const uint32_t most = lm->kernels->queries;
    bool finite = true;
    for (uint32_t head = member; head < lm->image.model.n_heads; head += lm->team.members) {
        for (uint32_t b = 0; b < job->n; b += most) {
            finite = attend(job, member, head, b, job->n - b < most ? job->n - b : most) && finite;
        }
    }
    lm->member_finite[member] = finite;
}

static void attention(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_layer *layer = &lm->layers[l];
    const uint32_t d = m->d_model;
    normalise(lm, layer->attention_norm, 0, n);
    quantise(lm, lm->h, d, d, lm->all, n);
    chiplm_multiply(lm, layer->qkv, 0, 3 * d, lm->all, n, lm->wide, lm->wide_columns);
    trace(lm, (int32_t)l, "qkv", lm->wide, lm->wide_columns, 3 * d, n);
    attention_job job = {.lm = lm, .layer = l, .n = n};
    chiplm_run_parts(lm, attention_part, &job);
    for (uint32_t i = 0; i < lm->team.members; i++) {
        lm->finite = lm->finite && lm->member_finite[i];
    }
    for (uint32_t b = 0; b < n; b++) { /* the position itself included */
        lm->reads.cache += ((uint64_t)lm->position + b + 1) * (2 * (uint64_t)d + 8 * (uint64_t)m->n_heads);
    }
    trace(lm, (int32_t)l, "attention", lm->h, d, d, n);
    quantise(lm, lm->h, d, d, lm->all, n);
    chiplm_multiply(lm, layer->attention_output, 0, d, lm->all, n, lm->y, d);
    trace(lm, (int32_t)l, "attention_output", lm->y, d, d, n);
    add(lm, n);
}

void chiplm_prepare_head(chiplm *lm, uint32_t first, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    normalise(lm, lm->output_norm, first, n);
    trace_some(lm, -1, "output_norm", lm->h, m->d_model, m->d_model, lm->all + first, n - first);
    quantise(lm, lm->h, m->d_model, m->d_model, lm->all + first, n - first);
    /* Row b of a product's output belongs to position b of the block, row b - first of logits. Inputs are moved down
     * rather than pointing before the caller's buffer. */
    const size_t stride = lm->inputs.stride;
    for (uint32_t b = first; first > 0 && b < n; b++) {
        memcpy(lm->inputs.codes + (b - first) * stride, lm->inputs.codes + b * stride, stride);
        memcpy(lm->inputs.sums + (b - first) * stride / CHIPLM_CHUNK, lm->inputs.sums + b * stride / CHIPLM_CHUNK,
               stride / CHIPLM_CHUNK * sizeof *lm->inputs.sums);
        lm->inputs.scales[b - first] = lm->inputs.scales[b];
    }
}

chiplm_status chiplm_run_head(chiplm *lm, uint32_t first, uint32_t n, float *logits) {
    const size_t vocabulary = lm->image.model.vocab_size;
    chiplm_prepare_head(lm, first, n);
    chiplm_multiply(lm, lm->head, 0, lm->image.model.vocab_size, lm->all, n - first, logits, vocabulary);
    lm->reads.logits += n - first;
    for (uint32_t b = first; b < n; b++) {
        trace_some(lm, -1, "head", logits + (b - first) * vocabulary, 0, lm->image.model.vocab_size, lm->all + b, 1);
    }
    lm->finite = lm->kernels->all_finite(logits, (n - first) * vocabulary) && lm->finite;
    return lm->finite ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
}

static void per_layer_embedding(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_layer *layer = &lm->layers[l];
    const uint32_t d = m->d_model;
    const uint32_t p = m->ple_dim;
    quantise(lm, lm->x, d, d, lm->all, n);
    chiplm_multiply(lm, layer->ple_gate, 0, p, lm->all, n, lm->wide, lm->wide_columns);
    trace(lm, (int32_t)l, "ple_gate", lm->wide, lm->wide_columns, p, n);
    for (uint32_t b = 0; b < n; b++) {
        lm->kernels->gelu_mix(lm->wide + b * lm->wide_columns, lm->mix + ((size_t)b * m->n_layers + l) * p, p);
    }
    trace(lm, (int32_t)l, "ple_mix", lm->wide, lm->wide_columns, p, n);
    quantise(lm, lm->wide, lm->wide_columns, p, lm->all, n);
    chiplm_multiply(lm, layer->ple_output, 0, d, lm->all, n, lm->y, d);
    trace(lm, (int32_t)l, "ple_output", lm->y, d, d, n);
    const float *g = gain(lm, layer->ple_norm);
    for (uint32_t b = 0; b < n; b++) {
        float *y = lm->y + (size_t)b * d;
        lm->kernels->rmsnorm(y, g, d, m->norm_eps, y);
    }
    add(lm, n);
}

/* ----------------------------------------------------------------------------------------------- the feed-forward */

/* Lists the neurons of which a position of which has a value that is not zero (marks holds 1 for them). */
static uint32_t list_marked(const chiplm *lm, uint32_t *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lm->image.model.d_ff; i++) {
        list[count] = i;
        count += lm->marks[i];
    }
    return count;
}

/* Lists the neurons whose gate is open at one of the positions, and counts them. */
static uint32_t list_open(chiplm *lm, uint32_t l, const uint32_t *which, uint32_t n) {
    const uint32_t f = lm->image.model.d_ff;
    uint32_t open = 0;
    memset(lm->marks, 0, f);
    for (uint32_t i = 0; i < n; i++) {
        open += lm->kernels->mark_open(lm->wide + which[i] * lm->wide_columns, f, lm->marks);
    }
    lm->counters[lm->image.model.n_tensors + l] += open;
    return list_marked(lm, lm->open);
}

/* Lists the neurons whose code is not 0 at one of the positions, and counts them. */
static uint32_t list_used(chiplm *lm, uint32_t l, const uint32_t *which, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    uint32_t used = 0;
    memset(lm->marks, 0, m->d_ff);
    for (uint32_t i = 0; i < n; i++) {
        used += lm->kernels->mark_used(lm->inputs.codes + which[i] * lm->inputs.stride, m->d_ff, lm->marks);
    }
    lm->counters[m->n_tensors + m->n_layers + l] += used;
    return list_marked(lm, lm->used);
}

/* y = ffn_e(h) for the positions that which names, whose h is quantised already. */
static void expert(chiplm *lm, uint32_t l, uint32_t e, const uint32_t *which, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_layer *layer = &lm->layers[l];
    const uint32_t f = m->d_ff;
    const bool relu = m->swiglu == 0;
    const bool sparse = relu && !lm->dense && n <= CHIPLM_SPARSE_MOST;
    uint64_t *up_rows = lm->counters + m->n_tensors + 2 * (size_t)m->n_layers + l;
    uint64_t *down_columns = up_rows + m->n_layers;
    chiplm_multiply(lm, layer->gate, e * f, f, which, n, lm->wide, lm->wide_columns);
    trace_some(lm, (int32_t)l, "gate", lm->wide, lm->wide_columns, f, which, n);
    const uint32_t open = relu ? list_open(lm, l, which, n) : f;
    if (sparse) {
        chiplm_multiply_listed(lm, layer->up, e * f, f, lm->open, open, which, n, lm->wide + f, lm->wide_columns);
    } else {
        chiplm_multiply(lm, layer->up, e * f, f, which, n, lm->wide + f, lm->wide_columns);
    }
    *up_rows += sparse ? open : f;
    for (uint32_t i = 0; i < n; i++) {
        float *gate = lm->wide + which[i] * lm->wide_columns;
        lm->kernels->gate(gate, gate + f, f, !relu);
    }
    trace_some(lm, (int32_t)l, "ffn", lm->wide, lm->wide_columns, f, which, n);
    quantise(lm, lm->wide, lm->wide_columns, f, which, n);
    const uint32_t used = relu ? list_used(lm, l, which, n) : f;
    if (sparse && layer->down->block != 0) {
        chiplm_multiply_listed(lm, layer->down, e * m->d_model, m->d_model, lm->used, used, which, n, lm->y, m->d_model);
        *down_columns += used;
    } else {
        chiplm_multiply(lm, layer->down, e * m->d_model, m->d_model, which, n, lm->y, m->d_model);
        *down_columns += f;
    }
    trace_some(lm, (int32_t)l, "down", lm->y, m->d_model, m->d_model, which, n);
}

/* Chooses the expert of every position, and its weight. */
static void route(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_tensor *router = lm->layers[l].router;
    float *z = lm->routes;
    chiplm_count_rows(lm, router, router->rows);
    for (uint32_t b = 0; b < n; b++) {
        lm->kernels->product_floats(router, lm->h + (size_t)b * m->d_model, z);
        trace_some(lm, (int32_t)l, "router", z, 0, m->experts, lm->all + b, 1);
        uint32_t best = 0;
        for (uint32_t e = 0; e < m->experts; e++) {
            lm->finite = lm->finite && chiplm_finite(z[e]);
            best = z[e] > z[best] ? e : best;
        }
        const float top = z[best];
        for (uint32_t e = 0; e < m->experts; e++) {
            z[e] = chiplm_exp(z[e] - top);
        }
        lm->chosen[b] = best;
        lm->shares[b] = 1.0f / chiplm_sum8(z, m->experts);
    }
}

static void feed_forward(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    normalise(lm, lm->layers[l].ffn_norm, 0, n);
    quantise(lm, lm->h, m->d_model, m->d_model, lm->all, n);
    if (m->experts == 1) {
        expert(lm, l, 0, lm->all, n);
        add(lm, n);
        return;
    }
    route(lm, l, n);
    for (uint32_t e = 0; e < m->experts; e++) { /* together, so that an expert's rows are read once a block */
        uint32_t count = 0;
        for (uint32_t b = 0; b < n; b++) {
            if (lm->chosen[b] == e) {
                lm->which[count++] = b;
            }
        }
        if (count > 0) {
            expert(lm, l, e, lm->which, count);
        }
    }
    for (uint32_t b = 0; b < n; b++) {
        const size_t at = (size_t)b * m->d_model;
        for (uint32_t i = 0; i < m->d_model; i++) {
            lm->x[at + i] = lm->x[at + i] + lm->shares[b] * lm->y[at + i];
        }
    }
}

chiplm_status chiplm_run_block(chiplm *lm, const int32_t *ids, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    lm->finite = true;
    lm->reads.positions += n;
    lm->reads.blocks++;
    lm->reads.rope += (uint64_t)n * (m->d_model / m->n_heads) * sizeof(float);
    embed(lm, ids, n);
    for (uint32_t l = 0; l < m->n_layers; l++) {
        attention(lm, l, n);
        feed_forward(lm, l, n);
        if (m->ple_dim > 0) {
            per_layer_embedding(lm, l, n);
        }
        trace(lm, (int32_t)l, "x", lm->x, m->d_model, m->d_model, n);
    }
    return lm->finite ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
}
