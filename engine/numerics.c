/* The elementwise steps of docs/numerics.md over whole vectors. */
#include "numerics.h"

CHIPLM_CLONES float chiplm_quantise(const float *x, size_t n, int8_t *codes) {
    const chiplm_step step = chiplm_step_of(x, n);
    if (step.inverse == 0.0f) {
        memset(codes, 0, n);
        return step.scale;
    }
    for (size_t i = 0; i < n; i++) {
        codes[i] = (int8_t)chiplm_code(x[i], step.inverse);
    }
    return step.scale;
}

CHIPLM_CLONES float chiplm_quantise_wide(const float *x, size_t n, int16_t *codes, size_t padded) {
    const chiplm_step step = chiplm_step_of(x, n);
    if (step.inverse == 0.0f) {
        memset(codes, 0, padded * sizeof *codes);
        return step.scale;
    }
    for (size_t i = 0; i < n; i++) {
        codes[i] = (int16_t)chiplm_code(x[i], step.inverse);
    }
    memset(codes + n, 0, (padded - n) * sizeof *codes);
    return step.scale;
}

CHIPLM_CLONES void chiplm_rmsnorm(const float *x, const float *g, size_t n, float eps, float *y) {
    const float r = chiplm_rms_factor(x, n, eps);
    if (g == NULL) {
        for (size_t i = 0; i < n; i++) {
            y[i] = x[i] * r;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] * r) * g[i];
    }
}

CHIPLM_CLONES void chiplm_gate(float *gate, const float *up, size_t n, bool swiglu) {
    if (swiglu) {
        for (size_t i = 0; i < n; i++) {
            gate[i] = chiplm_silu(gate[i]) * up[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        gate[i] = (gate[i] > 0.0f ? gate[i] : 0.0f) * up[i];
    }
}

CHIPLM_CLONES void chiplm_gelu_mix(float *x, const float *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = chiplm_gelu(x[i]) * e[i];
    }
}

float chiplm_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000U) << 16;
    const uint32_t exponent = (h >> 10) & 31U;
    const uint32_t fraction = h & 0x3ffU;
    if (exponent == 31) {
        return chiplm_from_bits(sign | 0x7f800000U | (fraction << 13));
    }
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f; /* exact, and never subnormal as a float */
        return sign != 0 ? -magnitude : magnitude;
    }
    return chiplm_from_bits(sign | ((exponent + 112U) << 23) | (fraction << 13));
}
