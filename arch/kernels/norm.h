/* norm.h: RMSNorm (Zhang and Sennrich 2019), the residual addition, and small vector loops. */

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void scale(float *x, int64_t n, float f) {
    for (int64_t i = 0; i < n; i++) x[i] *= f;
}

static int32_t finite(const float *x, int64_t n) { return rule_maxabs(x, n) < HUGE_VALF; }

static void rmsnorm(const float *x, const float *gain, int64_t rows, int64_t n, float eps, float *y, float *inv) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float v = rule_dot8(x, x, n) / (float)n;
        float s = 1.0f / sqrtf(v + eps);
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] * s) * gain[i];
        inv[r] = s;
    }
}

static void rmsnorm_grad(const float *x, const float *gain, const float *inv, const float *dy, const float *add, int64_t rows,
                    int64_t n, float *dx, float *dgain) {
    for (int64_t i = 0; i < n; i++) dgain[i] = 0;
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n) {
        float s = inv[r];
        for (int64_t i = 0; i < n; i++) dx[i] = gain[i] * dy[i];
        float k = rule_dot8(dx, x, n) * s * s / (float)n;
        for (int64_t i = 0; i < n; i++) {
            dgain[i] += dy[i] * (x[i] * s);
            dx[i] = s * (dx[i] - x[i] * k);
        }
        if (add) {
            for (int64_t i = 0; i < n; i++) dx[i] += add[i];
            add += n;
        }
    }
}
