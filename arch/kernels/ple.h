/* ple.h: rows of tables, and the mix of projection and table that makes the per-layer embeddings. */

static void gather(const float *table, const int32_t *ids, int64_t rows, int64_t cols, int64_t group, int32_t max_code,
              float divisor, int32_t half, float *y) {
    for (int64_t r = 0; r < rows; r++, y += cols) {
        const float *w = table + (int64_t)ids[r] * cols;
        if (!max_code) {
            memcpy(y, w, (size_t)cols * sizeof *y);
            continue;
        }
        for (int64_t c = 0; c < cols; c += group) {
            int64_t n = cols - c < group ? cols - c : group;
            float s = rule_quantise_group(w + c, n, (float)max_code, divisor, half, y + c);
            for (int64_t i = 0; i < n; i++) y[c + i] *= s;
        }
    }
}

static void scatter_add(const float *dy, const int32_t *ids, int64_t rows, int64_t cols, float scale, float *dtable) {
    for (int64_t r = 0; r < rows; r++, dy += cols) {
        float *d = dtable + (int64_t)ids[r] * cols;
        for (int64_t i = 0; i < cols; i++) d[i] += scale * dy[i];
    }
}

static void clear_rows(const int32_t *ids, int64_t rows, int64_t cols, float *dtable) {
    for (int64_t r = 0; r < rows; r++) memset(dtable + (int64_t)ids[r] * cols, 0, (size_t)cols * sizeof *dtable);
}

static void ple_mix(const float *x, const float *gain, const float *t, int64_t rows, int64_t layers, int64_t p, float ce,
                    float ct, float ch, float eps, float *inv, float *e) {
    for (int64_t i = 0; i < rows * layers; i++, x += p, t += p, e += p) {
        float s = 1.0f / sqrtf(norm_squares(x, ce, p) / (float)p + eps);
        for (int64_t j = 0; j < p; j++) e[j] = (((x[j] * ce) * s) * gain[j] + t[j] * ct) * ch;
        inv[i] = s;
    }
}

static void ple_mix_grad(const float *x, const float *gain, const float *inv, const float *de, int64_t rows, int64_t layers,
                         int64_t p, float ce, float ch, float *dx, float *dgain) {
    norm_grad(x, ce, gain, inv, de, ch, NULL, rows * layers, p, dx, dgain);
}
