/* The search for the best tokens: three bounds of a row's logit, each tighter and dearer than the one before, decide which
 * rows of the head are read in full. docs/numerics.md says what is computed and why the bounds hold; docs/image.md how
 * their data lies. */
#include "head.h"

#include "image.h"
#include "numerics.h"
#include "parts.h"

enum { BOX = 3, LANES = 30, LEVELS = 2, BLOCK = 16, CORNERS = 8, RUN = 32 /* rows whose bounds are computed at once */ };

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
    chiplm_level level[LEVELS];
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

/* z is the turned hidden state x, [d_model], whose scale is given; scratch as long as z. */
static query prepare(const chiplm_model *m, const bounds *data, const int8_t *x, float scale, const float *z, float margin,
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
        q.level[l].unit = most / 32767.0f;
        const float inverse = most > 0.0f ? 32767.0f / most : 0.0f;
        memset(q.level[l].lanes, 0, sizeof q.level[l].lanes);
        for (uint32_t i = 0; i < LANES; i++) {
            q.level[l].lanes[i < LANES / 2 ? i : i + 1] = (int16_t)chiplm_rne(y[i] * inverse);
        }
        rounding += 108.0f * q.level[l].unit;
        q.level[l].norm = (norm_of(z, data->level[l].weights, d, scratch) * data->level[l].norm_step) * margin;
        q.level[l].slack = e * ((whole + 7.0f * sum) + 255.0f * q.level[l].norm) + rounding;
        q.level[l].scale = scale;
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

/* ------------------------------------------------------------------------------------------------------ the search */

/* Whether a row or cluster of which this is the bound of the logit cannot be among the k best. An equal logit may still
 * win by its id. */
static bool is_out(const chiplm_best *best, float bound) { return best->n == best->k && bound < best->logits[0]; }

/* What a search has read. It is counted for good once, at its end: counters are of 64 bits, which cost some processors as much
 * as a bound. */
typedef struct tally {
    uint32_t rows, blocks[LEVELS];
} tally;

static void count(chiplm *lm, const tally *t) {
    for (uint32_t l = 0; l < LEVELS; l++) {
        chiplm_count_rows(lm, lm->head_blocks[l], t->blocks[l]);
        lm->reads.blocks_read[l] += t->blocks[l];
    }
    chiplm_count_rows(lm, lm->head, t->rows);
    chiplm_count_rows(lm, lm->head_order, t->rows);
    lm->reads.searched_rows += t->rows;
}

/* Reads the rows of a cluster whose bounds reach the k-th best logit so far. First bounds do not depend on it, and come in
 * runs; the second of a row is asked for only when its turn has come. */
static bool search_cluster(chiplm *lm, uint32_t b, const query *q, const bounds *data, uint32_t cluster, tally *read,
                           chiplm_best *best) {
    const chiplm_kernels *kernels = lm->kernels;
    const uint32_t *order = (const uint32_t *)(const void *)lm->head_order->codes.at;
    const uint8_t *blocks[LEVELS] = {lm->head_blocks[0]->codes.at, lm->head_blocks[1]->codes.at};
    const int8_t *x = lm->inputs.codes + b * lm->inputs.stride;
    const float scale = lm->inputs.scales[b];
    const uint32_t end = data->first[cluster + 1];
    bool finite = true;
    for (uint32_t first = data->first[cluster], n; first < end; first += n) {
        chiplm_bound run[RUN];
        n = end - first < RUN ? end - first : RUN;
        kernels->row_bounds(blocks[0] + (size_t)first * BLOCK, n, 0.0f, &q->level[0], run);
        read->blocks[0] += n;
        for (uint32_t i = 0; i < n; i++) {
            if (is_out(best, run[i].bound)) {
                continue;
            }
            const uint32_t at = first + i;
            chiplm_bound second;
            kernels->row_bounds(blocks[1] + (size_t)at * BLOCK, 1, run[i].sum, &q->level[1], &second);
            read->blocks[1]++;
            if (is_out(best, second.bound)) {
                continue;
            }
            const uint32_t id = order[at];
            const float logit = kernels->row_logit(lm->head, id, x, scale);
            read->rows++;
            finite = finite && chiplm_finite(logit);
            chiplm_best_offer(best, (int32_t)id, logit);
        }
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
    const query q = prepare(m, &data, lm->inputs.codes + b * lm->inputs.stride, scale, z, search->margin, z + d);

    /* Clusters come out of a heap by bound down, then number up, as far as they are asked for. What comes out first is the
     * last in order of the best, so bounds have their sign turned, and numbers run backwards. */
    chiplm_best left = {.ids = lm->cluster_ids, .logits = lm->cluster_bounds, .k = m->clusters};
    for (uint32_t c = 0; c < m->clusters; c++) {
        const float bound = cluster_bound(&q, data.boxes + (size_t)c * CORNERS) * scale;
        chiplm_best_take(&left, (int32_t)(m->clusters - 1 - c), -bound);
    }
    const uint32_t limit = search->clusters == 0 || search->clusters > m->clusters ? m->clusters : search->clusters;
    tally read = {0};
    bool finite = true;
    for (uint32_t i = 0; i < limit && !is_out(best, -left.logits[0]); i++) {
        const uint32_t cluster = m->clusters - 1 - (uint32_t)left.ids[0];
        chiplm_best_drop(&left);
        finite = search_cluster(lm, b, &q, &data, cluster, &read, best) && finite;
    }
    count(lm, &read);
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
