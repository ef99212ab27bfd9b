/* norm.h: RMSNorm (Zhang and Sennrich 2019), the residual addition, and small vector loops. */

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void scale(float *x, int64_t n, float f) {
    for (int64_t i = 0; i < n; i++) x[i] *= f;
}

static int32_t finite(const float *x, int64_t n) { return rule_maxabs(x, n) < HUGE_VALF; }

/* sum8 of (x * f) * (x * f). */
SIMD_INLINE float norm_squares(const float *x, float f, int64_t n) {
    rule_lanes sums[RULE_HALVES] = {{0}}, u;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int h = 0; h < RULE_HALVES; h++) {
            memcpy(&u, x + i + 4 * h, sizeof u);
            sums[h] += (u * f) * (u * f);
        }
    float p[8];
    memcpy(p, sums, sizeof p);
    for (int j = 0; i + j < n; j++) p[j] += (x[i + j] * f) * (x[i + j] * f);
    return rule_join8(p);
}

static void rmsnorm(const float *x, const float *gain, int64_t rows, int64_t n, float eps, float *y, float *inv) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float s = 1.0f / sqrtf(norm_squares(x, 1, n) / (float)n + eps);
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] * s) * gain[i];
        inv[r] = s;
    }
}

/* The gradient of rows of y = ((x * ce) * inv) * gain * ch, plus add when that is not NULL. */
SIMD_INLINE void norm_grad(const float *x, float ce, const float *gain, const float *inv, const float *dy, float ch,
                           const float *add, int64_t rows, int64_t n, float *restrict dx, float *restrict dgain) {
    memset(dgain, 0, (size_t)n * sizeof *dgain);
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n) {
        rule_lanes sums[RULE_HALVES] = {{0}}, u, v, g;
        int64_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int h = 0; h < RULE_HALVES; h++) {
                memcpy(&u, x + i + 4 * h, sizeof u);
                memcpy(&v, dy + i + 4 * h, sizeof v);
                memcpy(&g, gain + i + 4 * h, sizeof g);
                sums[h] += (g * (v * ch)) * (u * ce);
            }
        float p[8];
        memcpy(p, sums, sizeof p);
        for (int j = 0; i + j < n; j++) p[j] += (gain[i + j] * (dy[i + j] * ch)) * (x[i + j] * ce);
        float s = inv[r], k = rule_join8(p) * s * s / (float)n;
        if (add) {
            for (int64_t j = 0; j < n; j++) {
                float a = x[j] * ce, d = dy[j] * ch;
                dgain[j] += d * (a * s);
                dx[j] = ce * (s * (gain[j] * d - a * k)) + add[j];
            }
            add += n;
        } else
            for (int64_t j = 0; j < n; j++) {
                float a = x[j] * ce, d = dy[j] * ch;
                dgain[j] += d * (a * s);
                dx[j] = ce * (s * (gain[j] * d - a * k));
            }
    }
}

static void rmsnorm_grad(const float *x, const float *gain, const float *inv, const float *dy, const float *add, int64_t rows,
                         int64_t n, float *dx, float *dgain) {
    norm_grad(x, 1, gain, inv, dy, 1, add, rows, n, dx, dgain);
}
