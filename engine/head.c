/* The search for the best tokens: three bounds of a row's logit, each tighter and dearer than the one before, decide which
 * rows of the head are read in full. docs/numerics.md says what is computed and why the bounds hold; docs/image.md how
 * their data lies. */
#include "head.h"

#include "image.h"
#include "numerics.h"
#include "parts.h"

enum { BOX = 3, LANES = 30, LEVELS = 2, BLOCK = 16, CORNERS = 8 };

/* ------------------------------------------------------------------------------------------------------- the data */

/* head_bounds, taken apart. */
typedef struct bounds {
    float row_norm, norm_step, box_steps[BOX];
    const float *weights; /* [d_model] */
    struct {
        float norm_step;
        const int32_t *dims; /* [LANES] */
        const float *steps;  /* [LANES] */
        const float *weights;
    } level[LEVELS];
    const int8_t *boxes;   /* [clusters, CORNERS]: low of each direction, high, norm (unsigned), 0 */
    const uint32_t *first; /* [clusters + 1] */
} bounds;

uint64_t chiplm_bounds_bytes(const chiplm_model *m) {
    const uint64_t level = 8 + 8 * LANES + 4 * (uint64_t)m->d_model;
    return 32 + 4 * (uint64_t)m->d_model + LEVELS * level + CORNERS * (uint64_t)m->clusters + 4 * ((uint64_t)m->clusters + 1);
}

static const float *floats(const uint8_t **at, size_t n) {
    const float *v = (const float *)(const void *)*at;
    *at += n * sizeof *v;
    return v;
}

static bounds take_apart(const chiplm_model *m, const uint8_t *at) {
    bounds b;
    const float *head = floats(&at, 8);
    b.row_norm = head[0];
    b.norm_step = head[1];
    memcpy(b.box_steps, head + 2, sizeof b.box_steps);
    b.weights = floats(&at, m->d_model);
    for (uint32_t l = 0; l < LEVELS; l++) {
        b.level[l].norm_step = floats(&at, 2)[0];
        b.level[l].dims = (const int32_t *)(const void *)at;
        at += LANES * sizeof *b.level[l].dims;
        b.level[l].steps = floats(&at, LANES);
        b.level[l].weights = floats(&at, m->d_model);
    }
    b.boxes = (const int8_t *)(const void *)at;
    at += CORNERS * (size_t)m->clusters;
    b.first = (const uint32_t *)(const void *)at;
    return b;
}

/* ------------------------------------------------------------------------------------------------------- the query */

/* What the bounds of one token are computed from, in units of the scale of its hidden state. */
typedef struct query {
    float box[BOX]; /* value of 1 in a box's low and high */
    float norm;     /* value of 1 in its norm */
    float slack;
    struct {
        _Alignas(16) int16_t lanes[32]; /* in units of step, by the columns of a block; those of the norm are 0 */
        float step, norm, slack;
    } level[LEVELS];
} query;

/* The norm of z times w; squares is scratch of n places. */
static float norm_of(const float *z, const float *w, size_t n, float *squares) {
    for (size_t j = 0; j < n; j++) {
        const float x = z[j] * w[j];
        squares[j] = x * x;
    }
    return sqrtf(chiplm_sum8(squares, n));
}

static float magnitude(float x) { return chiplm_from_bits(chiplm_bits(x) & 0x7fffffffU); }

/* z is the turned hidden state x, [d_model]; scratch as long. */
static query prepare(const chiplm_model *m, const bounds *data, const int8_t *x, const float *z, float margin,
                     float *scratch) {
    const uint32_t d = m->d_model;
    query q;
    int32_t squares = 0;
    for (uint32_t j = 0; j < d; j++) {
        squares += x[j] * x[j];
    }
    const float e = (float)(d + 128) * 0x1p-24f;
    const float whole = data->row_norm * sqrtf((float)squares);
    q.norm = (norm_of(z, data->weights, d, scratch) * data->norm_step) * margin;
    float sum = 0.0f;
    for (uint32_t j = 0; j < BOX; j++) {
        q.box[j] = j < d ? z[j] * data->box_steps[j] : 0.0f;
        sum += magnitude(q.box[j]);
    }
    q.slack = e * ((whole + 127.0f * sum) + 255.0f * q.norm);
    sum = 0.0f;
    float rounding = 0.0f;
    for (uint32_t l = 0; l < LEVELS; l++) {
        float y[LANES];
        float most = 0.0f;
        for (uint32_t i = 0; i < LANES; i++) {
            y[i] = z[data->level[l].dims[i]] * data->level[l].steps[i];
            sum += magnitude(y[i]);
            most = magnitude(y[i]) > most ? magnitude(y[i]) : most;
        }
        q.level[l].step = most / 32767.0f;
        const float inverse = most > 0.0f ? 32767.0f / most : 0.0f;
        memset(q.level[l].lanes, 0, sizeof q.level[l].lanes);
        for (uint32_t i = 0; i < LANES; i++) {
            q.level[l].lanes[i < LANES / 2 ? i : i + 1] = (int16_t)chiplm_rne(y[i] * inverse);
        }
        rounding += 108.0f * q.level[l].step;
        q.level[l].norm = (norm_of(z, data->level[l].weights, d, scratch) * data->level[l].norm_step) * margin;
        q.level[l].slack = e * ((whole + 7.0f * sum) + 255.0f * q.level[l].norm) + rounding;
    }
    return q;
}

/* The bound of every row of a cluster. */
static float cluster_bound(const query *q, const int8_t *box) {
    float s = 0.0f;
    for (uint32_t j = 0; j < BOX; j++) {
        s += (float)(q->box[j] > 0.0f ? box[BOX + j] : box[j]) * q->box[j];
    }
    return (s + (float)(uint8_t)box[2 * BOX] * q->norm) + q->slack;
}

/* The bound of a row by its block at a level. sum is what the levels before gave, and becomes what this one gives. */
static float row_bound(const chiplm_kernels *kernels, const query *q, uint32_t level, const uint8_t *block, float *sum) {
    const int32_t dot = kernels->block_dot(block, q->level[level].lanes);
    *sum = *sum + (float)dot * q->level[level].step;
    return (*sum + (float)block[BLOCK - 1] * q->level[level].norm) + q->level[level].slack;
}

/* ------------------------------------------------------------------------------------------------------ the search */

/* Whether a row or cluster of which this is the bound of the logit cannot be among the k best. An equal logit may still
 * win by its id. */
static bool is_out(const chiplm_best *best, float bound) { return best->n == best->k && bound < best->logits[0]; }

/* The logit of one row, read in full. */
static float read_row(chiplm *lm, uint32_t b, uint32_t id) {
    const float logit = lm->kernels->row_logit(lm->head, id, lm->inputs.codes + b * lm->inputs.stride, lm->inputs.scales[b]);
    chiplm_count_rows(lm, lm->head, 1);
    lm->reads.searched_rows++;
    return logit;
}

/* Reads the rows of a cluster whose bounds reach the k-th best logit so far. */
static bool search_cluster(chiplm *lm, uint32_t b, const query *q, const bounds *data, uint32_t cluster, chiplm_best *best) {
    const float scale = lm->inputs.scales[b];
    const uint32_t *order = (const uint32_t *)(const void *)lm->head_order->codes.at;
    bool finite = true;
    for (uint32_t at = data->first[cluster]; at < data->first[cluster + 1]; at++) {
        float sum = 0.0f;
        bool out = false;
        for (uint32_t l = 0; l < LEVELS && !out; l++) {
            const chiplm_tensor *blocks = lm->head_blocks[l];
            out = is_out(best, row_bound(lm->kernels, q, l, blocks->codes.at + (size_t)at * blocks->stride, &sum) * scale);
            chiplm_count_rows(lm, blocks, 1);
            lm->reads.blocks_read[l]++;
        }
        if (out) {
            continue;
        }
        const uint32_t id = order[at];
        const float logit = read_row(lm, b, id);
        chiplm_count_rows(lm, lm->head_order, 1);
        finite = finite && chiplm_finite(logit);
        chiplm_best_offer(best, (int32_t)id, logit);
    }
    return finite;
}

static bool search_clusters(chiplm *lm, uint32_t b, const chiplm_search *search, chiplm_best *best) {
    const chiplm_model *m = &lm->image.model;
    const uint32_t d = m->d_model;
    const bounds data = take_apart(m, lm->head_bounds->codes.at);
    const float scale = lm->inputs.scales[b];
    float *z = lm->wide; /* at least 3 * d_model, free by now */
    lm->inputs.scales[b] = 1.0f; /* bounds are in units of the scale */
    chiplm_multiply(lm, lm->head_rotation, 0, d, lm->all + b, 1, z, 0);
    lm->inputs.scales[b] = scale;
    chiplm_count_rows(lm, lm->head_bounds, 1);
    const query q = prepare(m, &data, lm->inputs.codes + b * lm->inputs.stride, z, search->margin, z + d);

    /* Clusters come out of a heap by bound down, then number up. */
    chiplm_best order = {.ids = lm->cluster_ids, .logits = lm->cluster_bounds, .k = m->clusters};
    for (uint32_t c = 0; c < m->clusters; c++) {
        chiplm_best_offer(&order, (int32_t)c, cluster_bound(&q, data.boxes + (size_t)c * CORNERS) * scale);
    }
    chiplm_best_sort(&order);
    const uint32_t limit = search->clusters == 0 || search->clusters > m->clusters ? m->clusters : search->clusters;
    bool finite = true;
    for (uint32_t i = 0; i < limit && !is_out(best, order.logits[i]); i++) {
        finite = search_cluster(lm, b, &q, &data, (uint32_t)order.ids[i], best) && finite;
    }
    return finite;
}

/* Reads every row, as many at a time as the buffer holds. */
static bool search_all(chiplm *lm, uint32_t b, chiplm_best *best) {
    const uint32_t vocabulary = lm->image.model.vocab_size;
    const size_t room = lm->wide_columns;
    bool finite = true;
    for (uint32_t first = 0; first < vocabulary;) {
        const uint32_t rows = vocabulary - first < room ? vocabulary - first : (uint32_t)room;
        chiplm_multiply(lm, lm->head, first, rows, lm->all + b, 1, lm->wide, 0);
        for (uint32_t r = 0; r < rows; r++) {
            finite = finite && chiplm_finite(lm->wide[r]);
            chiplm_best_offer(best, (int32_t)(first + r), lm->wide[r]);
        }
        first += rows;
    }
    lm->reads.searched_rows += vocabulary;
    return finite;
}

bool chiplm_search_head(chiplm *lm, uint32_t b, const chiplm_search *search, chiplm_best *best) {
    lm->reads.searches++;
    const bool finite = search->full ? search_all(lm, b, best) : search_clusters(lm, b, search, best);
    chiplm_best_sort(best);
    return finite;
}

chiplm_search chiplm_search_certified(const chiplm_image *image) {
    return (chiplm_search){.full = image->model.clusters == 0, .margin = 1.0f};
}

/* ------------------------------------------------------------------------------------------------------ the checks */

/* Zero, or between the bounds; never negative. */
static bool is_step(uint32_t bits, float least, float most) {
    const float x = chiplm_from_bits(bits);
    return bits == 0 || (bits < 0x7f800000U && x >= least && x <= most);
}

static chiplm_status check_bounds(const chiplm_image *image, const chiplm_tensor *t, chiplm_fault *fault) {
    const chiplm_model *m = &image->model;
    const uint8_t *p = t->codes.at;
    const uint32_t d = m->d_model;
    for (uint32_t i = 0; i < 8; i++, p += 4) {
        if (i < 5 ? !is_step(chiplm_get32(p), 0x1p-70f, 0x1p60f) : chiplm_get32(p) != 0) {
            return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: norms and steps", chiplm_get32(p), 0);
        }
    }
    for (uint32_t l = 0; l <= LEVELS; l++) { /* the weights of the boxes, then each level */
        if (l > 0) {
            if (!is_step(chiplm_get32(p), 0x1p-70f, 0x1p60f) || chiplm_get32(p + 4) != 0) {
                return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: step of a level's norms", chiplm_get32(p), 0);
            }
            p += 8;
            for (uint32_t i = 0; i < LANES; i++, p += 4) {
                if (chiplm_get32(p) >= d) {
                    return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: direction of a lane", chiplm_get32(p), d);
                }
            }
            for (uint32_t i = 0; i < LANES; i++, p += 4) {
                if (!is_step(chiplm_get32(p), 0x1p-70f, 0x1p60f)) {
                    return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: step of a lane", chiplm_get32(p), 0);
                }
            }
        }
        for (uint32_t j = 0; j < d; j++, p += 4) {
            if (!is_step(chiplm_get32(p), 0x1p-42f, 0x1p42f)) {
                return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: weight", chiplm_get32(p), 0);
            }
        }
    }
    p += CORNERS * (size_t)m->clusters; /* any corners will do */
    uint32_t before = 0;
    for (uint32_t c = 0; c <= m->clusters; c++, p += 4) {
        const uint32_t first = chiplm_get32(p);
        if ((c == 0 && first != 0) || first < before || first > m->vocab_size || (c == m->clusters && first != m->vocab_size)) {
            return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_bounds: first row of a cluster", first, before);
        }
        before = first;
    }
    return CHIPLM_OK;
}

/* The rotation's scales: between these, no step of a query overflows or is subnormal. */
static chiplm_status check_rotation(const chiplm_tensor *t, chiplm_fault *fault) {
    const size_t width = t->scale_type == CHIPLM_F32 ? 4 : 2;
    for (size_t i = 0; i < t->scales.bytes; i += width) {
        const uint8_t *p = t->scales.at + i;
        const float scale = width == 4 ? chiplm_getf(p) : chiplm_half(chiplm_get16(p));
        if (!is_step(chiplm_bits(scale), 0x1p-20f, 0x1p20f)) {
            return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_rotation: scale", chiplm_bits(scale), 0);
        }
    }
    return CHIPLM_OK;
}

/* Every id once: they are below the vocabulary, and random numbers made of them add up to what those of 0, 1, 2, ... do. Sums
 * of the ids themselves, or of their squares, would not tell 1, 2, 6 from 0, 4, 5. */
static chiplm_status check_order(const chiplm_image *image, const chiplm_tensor *t, chiplm_fault *fault) {
    const uint32_t n = image->model.vocab_size;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = chiplm_get32(t->codes.at + (size_t)4 * i);
        if (id >= n) {
            return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_order: id", id, n - 1);
        }
        uint64_t found = id;
        uint64_t wanted = i;
        sum += chiplm_random(&found) - chiplm_random(&wanted);
    }
    if (sum != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_CLUSTERS, "head_order: an id is there twice", sum, 0);
    }
    return CHIPLM_OK;
}

chiplm_status chiplm_check_clusters(const chiplm_image *image, chiplm_fault *fault) {
    chiplm_status status = CHIPLM_OK;
    for (uint32_t i = 0; i < image->model.n_tensors && status == CHIPLM_OK; i++) {
        const chiplm_part part = chiplm_expect(&image->model, i).part;
        chiplm_tensor t;
        (void)chiplm_image_tensor(image, i, &t);
        if (part == CHIPLM_HEAD_ROTATION) {
            status = check_rotation(&t, fault);
        } else if (part == CHIPLM_HEAD_BOUNDS) {
            status = check_bounds(image, &t, fault);
        } else if (part == CHIPLM_HEAD_ORDER) {
            status = check_order(image, &t, fault);
        }
    }
    return status;
}
