/* entropy.h: softmax cross-entropy of rows of logits, with the gradient in place. */

static float row_max(const float *x, int64_t n) { return rule_max(x, n); }

static void row_exp(float *x, int64_t n, float max) {
    for (int64_t i = 0; i < n; i++) x[i] = rule_exp(x[i] - max);
}

/* sum8 of exp(x - max), 64 at a time so that x stays as it is. */

static float row_sum_exp(const float *x, int64_t n, float max) {
    float p[8] = {0}, e[64];
    for (int64_t i = 0; i < n; i += 64) {
        int64_t m = n - i < 64 ? n - i : 64;
        for (int64_t j = 0; j < m; j++) e[j] = rule_exp(x[i + j] - max);
        for (int64_t j = 0; j < m; j++) p[j & 7] += e[j];
    }
    return rule_join8(p);
}

static void cross_entropy(float *logits, const int32_t *targets, int64_t rows, int64_t n, int32_t grad, float weight,
                     float *nll) {
    for (int64_t r = 0; r < rows; r++, logits += n) {
        nll[r] = 0;
        if (targets[r] < 0) {
            if (grad) memset(logits, 0, (size_t)n * sizeof *logits);
            continue;
        }
        int good = finite(logits, n);
        float max = row_max(logits, n), at = logits[targets[r]] - max, sum;
        if (grad) {
            row_exp(logits, n, max);
            sum = rule_sum8(logits, n);
            float f = weight / sum;
            for (int64_t i = 0; i < n; i++) logits[i] *= f;
            logits[targets[r]] -= weight;
        } else {
            sum = row_sum_exp(logits, n, max);
        }
        nll[r] = good ? (float)(log((double)sum) - (double)at) : NAN;
    }
}
