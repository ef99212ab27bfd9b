/* attention_vector.h: attention.h in vectors, for several queries at once. Dots and sums of values are the path's: dots,
 * mix. Lanes beyond the last position weigh nothing. */

/* The dots of queries and n keys, for widths that a path has no better way for. */
static void plain_dots(const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out, size_t columns) {
    for (uint32_t i = 0; i < q->n; i++) {
        const int8_t *query = q->codes + i * q->stride;
        for (uint32_t t = 0; t < n; t++) {
            const int8_t *key = keys + (size_t)t * d;
            int32_t sum = 0;
            for (uint32_t j = 0; j < d; j++) {
                sum += (int32_t)query[j] * key[j];
            }
            out[i * columns + t] = sum;
        }
    }
}

static void plain_mix(const int8_t *shares, uint32_t many, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                      size_t columns) {
    for (uint32_t i = 0; i < many; i++) {
        for (uint32_t j = 0; j < d; j++) {
            int32_t sum = 0;
            for (uint32_t t = 0; t < n; t++) {
                sum += (int32_t)shares[i * columns + t] * values[(size_t)t * d + j];
            }
            out[i * columns + j] = sum;
        }
    }
}

#if CHIPLM_PATH == CHIPLM_AVX512
#include "attention_avx512.h"
#elif CHIPLM_PATH == CHIPLM_AVX2
#include "attention_avx2.h"
#else
#include "attention_neon.h"
#endif

/* What a query gives its positions: codes of their weights, the scale of these, and the sum of the weights. */
typedef struct given {
    float scale, total;
} given;

/* From dots with n keys, in sums, to codes of shares; weights is scratch. */
static given softmax(const int32_t *sums, float query_scale, chiplm_head head, uint32_t n, float c, float *weights,
                     int8_t *shares) {
    vf top = v_set(((float)sums[0] * (query_scale * head.key_scales[0])) * c);
    for (size_t t = 0; t < n; t += STEP) {
        const vf scales = v_set(query_scale) * v_load_upto(head.key_scales + t, n - t);
        const vf score = (v_ints(sums + t) * scales) * v_set(c);
        v_store(weights + t, score);
        top = v_larger(n - t < STEP ? v_keep_first(score, n - t, top) : score, top);
    }
    const vf most = v_set(v_most(top));
    eight total = eight_zero();
    vi magnitude = top_zero();
    size_t done = 0;
    for (; done + SIDE_BY_SIDE * STEP <= n; done += SIDE_BY_SIDE * STEP) {
        vf a[SIDE_BY_SIDE];
        for (size_t j = 0; j < SIDE_BY_SIDE; j++) {
            a[j] = v_load(weights + done + j * STEP) - most;
        }
        v_exps(SIDE_BY_SIDE, a);
        for (size_t j = 0; j < SIDE_BY_SIDE; j++) {
            const size_t t = done + j * STEP;
            total = eight_add(total, a[j], t);
            a[j] = a[j] * v_load(head.value_scales + t);
            magnitude = top_of(magnitude, a[j]);
            v_store(weights + t, a[j]);
        }
    }
    for (size_t t = done; t < n; t += STEP) {
        vf a = v_exp(v_load(weights + t) - most);
        a = n - t < STEP ? v_keep_first(a, n - t, v_set(0.0f)) : a;
        total = eight_add(total, a, t);
        a = a * v_load_upto(head.value_scales + t, n - t);
        magnitude = top_of(magnitude, a);
        v_store(weights + t, a);
    }
    const chiplm_grid grid = chiplm_grid_of_top(top_most(magnitude));
    for (size_t t = 0; t < n; t += STEP) {
        v_store_codes(shares + t, STEP, v_code(v_load(weights + t), grid.inverse));
    }
    return (given){grid.scale, eight_join(total)};
}

static bool attend(chiplm_queries queries, chiplm_head head, uint32_t first, uint32_t d, float c, chiplm_attention scratch,
                   float *o, size_t ldo) {
    const uint32_t n = first + queries.n; /* of the last */
    const size_t columns = ((size_t)(n > d ? n : d) + CHIPLM_TURN - 1) / CHIPLM_TURN * CHIPLM_TURN;
    int8_t *shares = (int8_t *)scratch.shares; /* never negative */
    given gave[CHIPLM_MOST_QUERIES];
    bool finite = true;
    dots(&queries, head.keys, n, d, scratch.sums, columns);
    for (uint32_t i = 0; i < queries.n; i++) {
        const uint32_t own = first + i + 1;
        int8_t *codes = shares + i * columns;
        const size_t last = (size_t)(own - 1) / CHIPLM_TURN * CHIPLM_TURN;
        memset(codes + last, 0, (n - last + CHIPLM_TURN - 1) / CHIPLM_TURN * CHIPLM_TURN);
        gave[i] = softmax(scratch.sums + i * columns, queries.scales[i], head, own, c, scratch.weights, codes);
        finite = finite && !chiplm_is_nan(gave[i].scale);
    }
    mix(shares, queries.n, head.values, n, d, scratch.sums, columns);
    for (uint32_t i = 0; i < queries.n; i++) {
        const vf total = v_set(gave[i].total);
        for (size_t j = 0; j < d; j += STEP) {
            const vf sum = v_ints(scratch.sums + i * columns + j);
            v_store_upto(o + i * ldo + j, d - j, (sum * v_set(gave[i].scale)) / total);
        }
    }
    return finite;
}
