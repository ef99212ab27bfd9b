/* attention_vector.h: attention.h in vectors. Dots and sums of values are the path's: dots, mix. Lanes beyond the last position
 * weigh nothing. */

/* Adds to dots, or to sums of values, the elements from .. d: those beyond the blocks that dots and mix take. */
static void add_dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t from, uint32_t d, int32_t *out) {
    for (uint32_t t = 0; from < d && t < n; t++) {
        for (uint32_t i = from; i < d; i++) {
            out[t] += (int32_t)query[i] * keys[(size_t)t * d + i];
        }
    }
}

static void add_values(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t from, uint32_t d, int32_t *out) {
    for (uint32_t i = from; i < d; i++) {
        int32_t sum = 0;
        for (uint32_t t = 0; t < n; t++) {
            sum += (int32_t)shares[t] * values[(size_t)t * d + i];
        }
        out[i] = sum;
    }
}

#if CHIPLM_PATH == CHIPLM_AVX512
#include "attention_avx512.h"
#elif CHIPLM_PATH == CHIPLM_AVX2
#include "attention_avx2.h"
#else
#include "attention_neon.h"
#endif

static bool attend(const int8_t *query, float query_scale, chiplm_head head, uint32_t n, uint32_t d, float c,
                   chiplm_attention scratch, float *o) {
    float *weights = scratch.weights;
    int32_t *sums = scratch.sums;
    int8_t *shares = (int8_t *)scratch.shares; /* never negative */

    dots(query, head.keys, n, d, sums);
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
    memset(shares + (n - 1) / CHIPLM_TURN * CHIPLM_TURN, 0, CHIPLM_TURN);
    for (size_t t = 0; t < n; t += STEP) {
        v_store_codes(shares + t, STEP, v_code(v_load(weights + t), grid.inverse));
    }
    mix(shares, head.values, n, d, sums);
    const vf sum = v_set(eight_join(total));
    for (size_t i = 0; i < d; i += STEP) {
        v_store_upto(o + i, d - i, (v_ints(sums + i) * v_set(grid.scale)) / sum);
    }
    return !chiplm_is_nan(grid.scale);
}
