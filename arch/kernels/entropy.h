/* entropy.h: softmax cross-entropy of rows of logits, with the gradient in place. */

/* rule_exp of numbers that are not positive, and of NaN. */
SIMD_INLINE vf v_exp(vf x) {
    x = v_max(x, v_all(-86.0f));
    vf n = (x * v_all(0x1.715476p+0f) + v_all(0x1.8p23f)) - v_all(0x1.8p23f);
    vf r = (x - n * v_all(0x1.63p-1f)) - n * v_all(-0x1.bd0106p-13f);
    vf p = v_all(0x1.a01a02p-13f);
    p = p * r + v_all(0x1.6c16c2p-10f);
    p = p * r + v_all(0x1.111112p-7f);
    p = p * r + v_all(0x1.555556p-5f);
    p = p * r + v_all(0x1.555556p-3f);
    p = p * r + v_all(0.5f);
    p = p * r + v_all(1.0f);
    p = p * r + v_all(1.0f);
    return p * v_power(n);
}

/* The largest of a row; *all_finite: whether it holds no NaN and no infinity. */
SIMD_APART float row_max(const float *x, int64_t n, int *all_finite) {
    enum { CHAINS = 4 };
    if (n < CHAINS * SIMD_LANES) {
        *all_finite = finite(x, n);
        return rule_max(x, n);
    }
    vf top[CHAINS], size[CHAINS];
    for (int c = 0; c < CHAINS; c++) top[c] = v_load(x), size[c] = v_all(0);
    for (int64_t i = 0; i < n; i += CHAINS * SIMD_LANES) {
        if (n - i < CHAINS * SIMD_LANES) i = n - CHAINS * SIMD_LANES; /* some are read twice, which changes nothing */
        for (int c = 0; c < CHAINS; c++) {
            vf y = v_load(x + i + c * SIMD_LANES);
            top[c] = v_max(y, top[c]);
            size[c] = v_maxabs(size[c], y);
        }
    }
    float tops[SIMD_LANES], sizes[SIMD_LANES];
    v_store(tops, v_max(v_max(top[0], top[1]), v_max(top[2], top[3])));
    v_store(sizes, v_maxabs(v_maxabs(size[0], size[1]), v_maxabs(size[2], size[3])));
    *all_finite = finite(sizes, SIMD_LANES);
    return rule_max(tops, SIMD_LANES);
}

/* sum8 of exp(x - max). The exponentials replace x when keep is set. */
SIMD_INLINE float row_exp(float *x, int64_t n, float max, int keep) {
    enum { SOME = 128 };
    float some[SOME], p[8];
    rule_lanes sums[RULE_HALVES] = {{0}}, part[RULE_HALVES];
    int64_t rest = n & 7;
    for (int64_t i = 0; i < n; i += SOME, x += SOME) {
        float *e = keep ? x : some;
        int64_t m = n - i < SOME ? n - i : SOME, j = 0;
        for (; j + SIMD_LANES <= m; j += SIMD_LANES) v_store(e + j, v_exp(v_load(x + j) - v_all(max)));
        for (; j < m; j++) e[j] = rule_exp(x[j] - max);
        for (j = 0; j + 8 <= m; j += 8) {
            memcpy(part, e + j, sizeof part);
            for (int h = 0; h < RULE_HALVES; h++) sums[h] += part[h];
        }
        if (i + m == n) {
            memcpy(p, sums, sizeof p);
            for (j = 0; j < rest; j++) p[j] += e[m - rest + j];
        }
    }
    return rule_join8(p);
}

SIMD_APART float row_sum_exp(float *x, int64_t n, float max) { return row_exp(x, n, max, 0); }
SIMD_APART float row_exp_kept(float *x, int64_t n, float max) { return row_exp(x, n, max, 1); }

static void cross_entropy(float *logits, int64_t ld, const int32_t *targets, int64_t rows, int64_t n, int32_t grad, float weight,
                          float *nll) {
    for (int64_t r = 0; r < rows; r++, logits += ld) {
        nll[r] = 0;
        if (targets[r] < 0) {
            if (grad) memset(logits, 0, (size_t)n * sizeof *logits);
            continue;
        }
        int good;
        float max = row_max(logits, n, &good), at = logits[targets[r]] - max;
        float sum = grad ? row_exp_kept(logits, n, max) : row_sum_exp(logits, n, max);
        if (grad) {
            scale(logits, n, weight / sum);
            logits[targets[r]] -= weight;
        }
        nll[r] = good ? (float)(log((double)sum) - (double)at) : NAN;
    }
}
