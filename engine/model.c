/* The forward pass, block by block: docs/numerics.md, section "The model", for up to batch positions at once.
 *
 * Every position is computed from its own row and the cache alone, so how a sequence is cut into blocks changes nothing
 * but the number of times a row of weights is unpacked. */
#include "context.h"

#include "numerics.h"

static const float *floats(const chiplm_tensor *t) { return (const float *)(const void *)t->codes.at; }

/* Quantises the rows of v that which names, each as one vector, as inputs of the products that follow. */
static void quantise(chiplm *lm, const float *v, size_t ldv, uint32_t columns, const uint32_t *which, uint32_t n) {
    const size_t padded = ((size_t)columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    for (uint32_t i = 0; i < n; i++) {
        const size_t b = which[i];
        lm->inputs.scales[b] =
            chiplm_quantise_wide(v + b * ldv, columns, lm->inputs.codes + b * lm->inputs.stride, padded);
        lm->finite = lm->finite && !chiplm_is_nan(lm->inputs.scales[b]);
    }
}

static void product(chiplm *lm, const chiplm_tensor *w, uint32_t first, uint32_t rows, const uint32_t *which,
                    uint32_t n, float *y, size_t ldy) {
    chiplm_product(w, first, rows, lm->inputs, which, n, lm->tile, y, ldy);
}

/* x = x + y over the block. */
static void add(chiplm *lm, uint32_t n) {
    const size_t count = (size_t)n * lm->image.model.d_model;
    for (size_t i = 0; i < count; i++) {
        lm->x[i] = lm->x[i] + lm->y[i];
    }
}

/* h = rmsnorm(x, norm) over the block. */
static void normalise(chiplm *lm, const chiplm_tensor *norm, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    for (uint32_t b = 0; b < n; b++) {
        const size_t at = (size_t)b * m->d_model;
        chiplm_rmsnorm(lm->x + at, floats(norm), m->d_model, m->norm_eps, lm->h + at);
    }
}

/* x and the per-layer inputs of the block. */
static void embed(chiplm *lm, const int32_t *ids, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const uint32_t d = m->d_model;
    const uint32_t p = m->ple_dim;
    for (uint32_t b = 0; b < n; b++) {
        chiplm_dequantise_row(lm->embedding, (uint32_t)ids[b], lm->tile.codes, lm->tile.scales, lm->x + (size_t)b * d);
    }
    if (p == 0) {
        return;
    }
    const uint32_t columns = m->n_layers * p;
    quantise(lm, lm->x, d, d, lm->all, n);
    product(lm, lm->ple_projection, 0, columns, lm->all, n, lm->mix, columns);
    for (uint32_t b = 0; b < n; b++) {
        float *mix = lm->mix + (size_t)b * columns;
        const float *row = lm->table_row;
        chiplm_dequantise_row(lm->ple_table, (uint32_t)ids[b], lm->tile.codes, lm->tile.scales, lm->table_row);
        for (uint32_t i = 0; i < columns; i++) {
            mix[i] = mix[i] * m->ple_scale;
        }
        for (uint32_t l = 0; l < m->n_layers; l++) {
            float *e = mix + (size_t)l * p;
            chiplm_rmsnorm(e, floats(lm->ple_projection_norm), p, m->norm_eps, e);
        }
        for (uint32_t i = 0; i < columns; i++) {
            mix[i] = (mix[i] + row[i] * m->table_scale) * m->mix_scale;
        }
    }
}

/* One position: turns its queries, keys and values, caches the latter two, and attends. */
static void attend_position(chiplm *lm, uint32_t layer, uint32_t position, float *qkv, float *o) {
    const chiplm_model *m = &lm->image.model;
    const uint32_t width = m->d_model / m->n_heads;
    const size_t half = width / 2;
    const float *cosines = (const float *)(const void *)lm->image.rope.at + position * half;
    const float *sines = cosines + m->context_length * half;
    for (uint32_t head = 0; head < m->n_heads; head++) {
        const size_t first = ((size_t)layer * m->n_heads + head) * m->context_length; /* position 0 in the cache */
        const size_t here = first + position;
        float *q = qkv + (size_t)head * width;
        float *k = q + m->d_model;
        const float *v = k + m->d_model;
        if (m->qk_norm != 0) {
            chiplm_rmsnorm(q, NULL, width, m->norm_eps, q);
            chiplm_rmsnorm(k, NULL, width, m->norm_eps, k);
        }
        chiplm_rotate(q, width, cosines, sines);
        chiplm_rotate(k, width, cosines, sines);
        const float query_scale = chiplm_quantise(q, width, lm->query);
        lm->key_scales[here] = chiplm_quantise(k, width, lm->key_codes + here * width);
        lm->value_scales[here] = chiplm_quantise(v, width, lm->value_codes + here * width);
        const chiplm_head cached = {
            .keys = lm->key_codes + first * width,
            .key_scales = lm->key_scales + first,
            .values = lm->value_codes + first * width,
            .value_scales = lm->value_scales + first,
        };
        const bool finite = chiplm_attend(lm->query, query_scale, cached, position + 1, width, m->score_scale,
                                          lm->attention, o + (size_t)head * width);
        lm->finite = lm->finite && finite && !chiplm_is_nan(query_scale) && !chiplm_is_nan(lm->key_scales[here]);
    }
}

static void attention(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_layer *layer = &lm->layers[l];
    const uint32_t d = m->d_model;
    normalise(lm, layer->attention_norm, n);
    quantise(lm, lm->h, d, d, lm->all, n);
    product(lm, layer->qkv, 0, 3 * d, lm->all, n, lm->wide, lm->wide_columns);
    for (uint32_t b = 0; b < n; b++) {
        attend_position(lm, l, lm->position + b, lm->wide + b * lm->wide_columns, lm->h + (size_t)b * d);
    }
    quantise(lm, lm->h, d, d, lm->all, n);
    product(lm, layer->attention_output, 0, d, lm->all, n, lm->y, d);
    add(lm, n);
}

/* y = ffn_e(h) for the positions that which names, whose h is quantised already. */
static void expert(chiplm *lm, const chiplm_layer *layer, uint32_t e, const uint32_t *which, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const uint32_t f = m->d_ff;
    product(lm, layer->gate, e * f, f, which, n, lm->wide, lm->wide_columns);
    product(lm, layer->up, e * f, f, which, n, lm->wide + f, lm->wide_columns);
    for (uint32_t i = 0; i < n; i++) {
        float *gate = lm->wide + which[i] * lm->wide_columns;
        chiplm_gate(gate, gate + f, f, m->swiglu != 0);
    }
    quantise(lm, lm->wide, lm->wide_columns, f, which, n);
    product(lm, layer->down, e * m->d_model, m->d_model, which, n, lm->y, m->d_model);
}

/* Chooses the expert of every position, and its weight. */
static void route(chiplm *lm, const chiplm_layer *layer, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    float *z = lm->routes;
    for (uint32_t b = 0; b < n; b++) {
        chiplm_float_product(layer->router, lm->h + (size_t)b * m->d_model, z);
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

static void feed_forward(chiplm *lm, const chiplm_layer *layer, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    normalise(lm, layer->ffn_norm, n);
    quantise(lm, lm->h, m->d_model, m->d_model, lm->all, n);
    if (m->experts == 1) {
        expert(lm, layer, 0, lm->all, n);
        add(lm, n);
        return;
    }
    route(lm, layer, n);
    for (uint32_t e = 0; e < m->experts; e++) { /* together, so that an expert's rows are unpacked once a block */
        uint32_t count = 0;
        for (uint32_t b = 0; b < n; b++) {
            if (lm->chosen[b] == e) {
                lm->which[count++] = b;
            }
        }
        if (count > 0) {
            expert(lm, layer, e, lm->which, count);
        }
    }
    for (uint32_t b = 0; b < n; b++) {
        const size_t at = (size_t)b * m->d_model;
        for (uint32_t i = 0; i < m->d_model; i++) {
            lm->x[at + i] = lm->x[at + i] + lm->shares[b] * lm->y[at + i];
        }
    }
}

static void per_layer_embedding(chiplm *lm, uint32_t l, uint32_t n) {
    const chiplm_model *m = &lm->image.model;
    const chiplm_layer *layer = &lm->layers[l];
    const uint32_t d = m->d_model;
    const uint32_t p = m->ple_dim;
    quantise(lm, lm->x, d, d, lm->all, n);
    product(lm, layer->ple_gate, 0, p, lm->all, n, lm->wide, lm->wide_columns);
    for (uint32_t b = 0; b < n; b++) {
        chiplm_gelu_mix(lm->wide + b * lm->wide_columns, lm->mix + ((size_t)b * m->n_layers + l) * p, p);
    }
    quantise(lm, lm->wide, lm->wide_columns, p, lm->all, n);
    product(lm, layer->ple_output, 0, d, lm->all, n, lm->y, d);
    for (uint32_t b = 0; b < n; b++) {
        float *y = lm->y + (size_t)b * d;
        chiplm_rmsnorm(y, floats(layer->ple_norm), d, m->norm_eps, y);
    }
    add(lm, n);
}

static void output(chiplm *lm, uint32_t first, uint32_t n, float *logits) {
    const chiplm_model *m = &lm->image.model;
    const size_t vocabulary = m->vocab_size;
    normalise(lm, lm->output_norm, n);
    quantise(lm, lm->h, m->d_model, m->d_model, lm->all + first, n - first);
    /* Row b of the product's output belongs to position b of the block, row b - first of logits. Inputs are moved down
     * rather than pointing before the caller's buffer. */
    for (uint32_t b = first; first > 0 && b < n; b++) {
        memcpy(lm->inputs.codes + (b - first) * lm->inputs.stride, lm->inputs.codes + b * lm->inputs.stride,
               lm->inputs.stride * sizeof *lm->inputs.codes);
        lm->inputs.scales[b - first] = lm->inputs.scales[b];
    }
    product(lm, lm->head, 0, m->vocab_size, lm->all, n - first, logits, vocabulary);
    uint32_t top = 0;
    for (size_t i = 0; i < (n - first) * vocabulary; i++) {
        const uint32_t magnitude = chiplm_bits(logits[i]) & 0x7fffffffU;
        top = magnitude > top ? magnitude : top;
    }
    lm->finite = lm->finite && top < 0x7f800000U;
}

chiplm_status chiplm_run_block(chiplm *lm, const int32_t *ids, uint32_t n, uint32_t first_wanted, float *logits) {
    lm->finite = true;
    embed(lm, ids, n);
    for (uint32_t l = 0; l < lm->image.model.n_layers; l++) {
        attention(lm, l, n);
        feed_forward(lm, &lm->layers[l], n);
        if (lm->image.model.ple_dim > 0) {
            per_layer_embedding(lm, l, n);
        }
    }
    if (first_wanted < n) {
        output(lm, first_wanted, n, logits);
    }
    return lm->finite ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
}
