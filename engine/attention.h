/* attention.h: attention of one head over 8-bit keys and values: exact integer dots, softmax in eight lanes, exact integer
 * sum of the values. */

enum { QUERIES = 1 };

CHIPLM_INLINE void dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out) {
    for (uint32_t t = 0; t < n; t++) {
        const int8_t *key = keys + (size_t)t * d;
        int32_t s = 0;
        for (uint32_t i = 0; i < d; i++) {
            s += (int32_t)query[i] * key[i];
        }
        out[t] = s;
    }
}

/* out_i = sum over t of shares_t * values_ti: at most 127 * 127 * n, and n is at most 131,072. */
CHIPLM_INLINE void mix(const int16_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out) {
    memset(out, 0, d * sizeof *out);
    for (uint32_t t = 0; t < n; t++) {
        const int8_t *value = values + (size_t)t * d;
        const int32_t share = shares[t];
        for (uint32_t i = 0; i < d; i++) {
            out[i] += share * value[i];
        }
    }
}

/* The dots of a query with the keys of n positions. */
static void query_dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out) {
    switch (d) { /* constant widths unroll */
    case 16:
        dots(query, keys, n, 16, out);
        break;
    case 32:
        dots(query, keys, n, 32, out);
        break;
    case 64:
        dots(query, keys, n, 64, out);
        break;
    default:
        dots(query, keys, n, d, out);
        break;
    }
}

static void mix_values(const int16_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out) {
    switch (d) {
    case 16:
        mix(shares, values, n, 16, out);
        break;
    case 32:
        mix(shares, values, n, 32, out);
        break;
    case 64:
        mix(shares, values, n, 64, out);
        break;
    default:
        mix(shares, values, n, d, out);
        break;
    }
}

static bool attend(chiplm_queries queries, chiplm_head head, uint32_t first, uint32_t d, float c, chiplm_attention scratch,
                   float *o, size_t ldo) {
    float *weights = scratch.weights;
    int32_t *sums = scratch.sums;
    bool finite = true;
    for (uint32_t i = 0; i < queries.n; i++, o += ldo) {
        const uint32_t n = first + i + 1;
        query_dots(queries.codes + i * queries.stride, head.keys, n, d, sums);
        for (uint32_t t = 0; t < n; t++) {
            weights[t] = ((float)sums[t] * (queries.scales[i] * head.key_scales[t])) * c;
        }
        const float m = chiplm_largest(weights, n);
        for (uint32_t t = 0; t < n; t++) {
            weights[t] = chiplm_exp(weights[t] - m);
        }
        const float total = chiplm_sum8(weights, n);
        for (uint32_t t = 0; t < n; t++) {
            weights[t] = weights[t] * head.value_scales[t];
        }
        const chiplm_grid grid = chiplm_grid_of(weights, n);
        for (uint32_t t = 0; t < n; t++) {
            scratch.shares[t] = (int16_t)chiplm_code(weights[t], grid.inverse);
        }
        mix_values(scratch.shares, head.values, n, d, sums);
        for (uint32_t j = 0; j < d; j++) {
            o[j] = ((float)sums[j] * grid.scale) / total;
        }
        finite = finite && !chiplm_is_nan(grid.scale);
    }
    return finite;
}
