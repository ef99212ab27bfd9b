/* route.h: top-1 routing of experts (Fedus, Zoph and Shazeer 2021). */

static void route(const float *z, int64_t rows, int64_t n, int32_t *choice, float *p, float *prob) {
    for (int64_t r = 0; r < rows; r++, z += n, prob += n) {
        int64_t best = 0;
        for (int64_t j = 1; j < n; j++)
            if (z[j] > z[best]) best = j;
        for (int64_t j = 0; j < n; j++) prob[j] = rule_exp(z[j] - z[best]);
        float w = 1.0f / rule_sum8(prob, n);
        for (int64_t j = 0; j < n; j++) w += z[j] - z[j]; /* 0, but NaN for a score that is not finite */
        for (int64_t j = 0; j < n; j++) prob[j] *= w;
        choice[r] = (int32_t)best;
        p[r] = w;
    }
}

static void route_grad(const float *prob, const int32_t *choice, const float *dp, const float *bias, int64_t rows, int64_t n,
                  float *dz) {
    for (int64_t r = 0; r < rows; r++, prob += n, dz += n) {
        float mean = prob[choice[r]] * dp[r];
        for (int64_t j = 0; j < n; j++) mean += prob[j] * bias[j];
        for (int64_t j = 0; j < n; j++) dz[j] = prob[j] * ((j == choice[r] ? dp[r] : 0.0f) + bias[j] - mean);
    }
}

static void dot_scale_rows(float *a, const float *b, const float *s, int64_t rows, int64_t n, float *dot) {
    for (int64_t r = 0; r < rows; r++, a += n, b += n) {
        if (dot) dot[r] = rule_dot8(a, b, n);
        for (int64_t i = 0; i < n; i++) a[i] *= s[r];
    }
}
