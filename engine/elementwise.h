/* elementwise.h: the steps of docs/numerics.md over whole vectors: quantising, norms, gates, rotations, sums of exp.
 * Compilers turn these loops into vectors, and may: no order of float operations is left open. */

static float quantise(const float *x, size_t n, size_t padded, int8_t *codes, int32_t *sums) {
    const chiplm_grid grid = chiplm_grid_of(x, n);
    if (grid.inverse == 0.0f) {
        memset(codes, 0, padded);
    } else {
        for (size_t i = 0; i < n; i++) {
            codes[i] = (int8_t)chiplm_code(x[i], grid.inverse);
        }
        memset(codes + n, 0, padded - n);
    }
    if (sums != NULL) {
        for (size_t c = 0; c < padded / CHIPLM_CHUNK; c++) {
            int32_t s = 0;
            for (size_t i = 0; i < CHIPLM_CHUNK; i++) {
                s += codes[c * CHIPLM_CHUNK + i];
            }
            sums[c] = s;
        }
    }
    return grid.scale;
}

static void rmsnorm(const float *x, const float *gain, size_t n, float eps, float *y) {
    const float r = 1.0f / sqrtf(chiplm_dot8(x, x, n) / (float)n + eps);
    if (gain == NULL) {
        for (size_t i = 0; i < n; i++) {
            y[i] = x[i] * r;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] * r) * gain[i];
    }
}

static void gate(float *gate, const float *up, size_t n, bool swiglu) {
    if (swiglu) {
        for (size_t i = 0; i < n; i++) {
            gate[i] = chiplm_silu(gate[i]) * up[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        gate[i] = chiplm_select(gate[i] > 0.0f, gate[i] * up[i], 0.0f);
    }
}

static void gelu_mix(float *x, const float *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = chiplm_gelu(x[i]) * e[i];
    }
}

static void rotate(float *x, uint32_t d, const float *cosine, const float *sine) {
    const uint32_t half = d / 2;
    float *first = x;
    float *second = x + half;
    for (uint32_t i = 0; i < half; i++) {
        const float a = first[i];
        const float b = second[i];
        first[i] = a * cosine[i] - b * sine[i];
        second[i] = a * sine[i] + b * cosine[i];
    }
}

static bool all_finite(const float *v, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = chiplm_bits(v[i]) & 0x7fffffffU;
        top = magnitude > top ? magnitude : top;
    }
    return top < 0x7f800000U;
}

static bool soft_sum(const float *v, size_t n, float *most, float *sum) {
    const float m = chiplm_largest(v, n);
    float p[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            p[j] += chiplm_exp(v[i + j] - m);
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        p[j] += chiplm_exp(v[i + j] - m);
    }
    *most = m;
    *sum = chiplm_join8(p);
    return all_finite(v, n);
}

static void dequantise(const chiplm_tensor *w, uint32_t row, float *y) {
    const uint32_t per_block = 128 / w->bits;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    for (uint32_t i = 0; i < w->columns; i += per_block) {
        int8_t block[64];
        unpack(codes + i / per_block * 16, 16, w->bits, block);
        for (uint32_t j = 0; j < per_block && i + j < w->columns; j++) {
            y[i + j] = (float)block[j] * scale_at(w, (size_t)row * w->groups + (i + j) / group);
        }
    }
}

static void product_floats(const chiplm_tensor *w, const float *x, float *y) {
    for (uint32_t r = 0; r < w->rows; r++) {
        y[r] = chiplm_dot8((const float *)(const void *)(w->codes.at + (size_t)r * w->stride), x, w->columns);
    }
}
