/* ffn.h: the gate of the feed-forward (Shazeer 2020) and of the per-layer embeddings, with gradients. */

static void gate(const float *gu, int64_t rows, int64_t f, int32_t act, float *y) {
    for (int64_t r = 0; r < rows; r++, gu += 2 * f, y += f) {
        const float *g = gu, *u = gu + f;
        if (act)
            for (int64_t i = 0; i < f; i++) y[i] = rule_silu(g[i]) * u[i];
        else /* g - g is 0, but NaN for a gate that is not finite: max alone would hide it */
            for (int64_t i = 0; i < f; i++) y[i] = rule_choose(g[i] > 0, g[i] * u[i], 0.0f) + (g[i] - g[i]);
    }
}

/* The sigmoid in a gradient: 0 where the gate is as good as closed. The gradients behind it would be subnormal, and the
 * products that read them several times slower. */
RULE float open_sigmoid(float z) {
    float s = rule_sigmoid(z);
    return rule_choose(!(s < 0x1p-60f), s, 0.0f);
}

static void gate_grad(const float *gu, const float *dy, int64_t rows, int64_t f, int32_t act, float *dgu) {
    for (int64_t r = 0; r < rows; r++, gu += 2 * f, dgu += 2 * f, dy += f) {
        const float *g = gu, *u = gu + f;
        float *dg = dgu, *du = dgu + f;
        if (act)
            for (int64_t i = 0; i < f; i++) {
                float s = open_sigmoid(g[i]);
                dg[i] = dy[i] * u[i] * (s * (1.0f + g[i] * (1.0f - s)));
                du[i] = dy[i] * (g[i] * s);
            }
        else
            for (int64_t i = 0; i < f; i++) {
                dg[i] = rule_choose(g[i] > 0, dy[i] * u[i], 0.0f);
                du[i] = rule_choose(g[i] > 0, dy[i] * g[i], 0.0f);
            }
    }
}

static void gelu_mul(const float *g, const float *e, int64_t lde, int64_t rows, int64_t p, float *y) {
    for (int64_t r = 0; r < rows; r++, g += p, e += lde, y += p)
        for (int64_t i = 0; i < p; i++) y[i] = rule_gelu(g[i]) * e[i];
}

static void gelu_mul_grad(const float *g, const float *e, const float *dy, int64_t lde, int64_t rows, int64_t p, float *dg,
                     float *de) {
    for (int64_t r = 0; r < rows; r++, g += p, e += lde, dy += p, dg += p, de += lde)
        for (int64_t i = 0; i < p; i++) {
            float x = g[i], s = open_sigmoid(rule_gelu_z(x));
            float dz = 0x1.988454p+0f * (1.0f + (x * x) * (3 * 0x1.6e4e26p-5f));
            de[i] = dy[i] * (x * s);
            dg[i] = dy[i] * e[i] * (s + x * (s * (1.0f - s)) * dz);
        }
}
