/* Twins in plain C of the vector unit's kernels for attention and for steps over vectors: what engine/pie's assembly computes,
 * to the bit, for hosts. Written from the comments of pie.h and docs/numerics.md, without its tricks. */
#include "kernels.h"
#if !CHIPLM_HAS_PIE
#include "numerics.h"
#include "pie/pie.h"

#include "neurons.h"

uint32_t chiplm_pie_scores(const int8_t *query, const int8_t *keys, const float *key_scales, uint32_t n,
                           const chiplm_pie_scoring *how, float *scores) {
    const float scale = chiplm_from_bits(how->scale);
    const float c = chiplm_from_bits(how->c);
    for (uint32_t t = 0; t < n; t++) {
        int32_t dot = 0;
        for (uint32_t i = 0; i < how->width; i++) {
            dot += (int32_t)query[i] * keys[(size_t)t * how->width + i];
        }
        scores[t] = ((float)dot * (scale * key_scales[t])) * c;
    }
    return chiplm_bits(chiplm_largest(scores, n) + 0.0f);
}

void chiplm_pie_exp(float *v, uint32_t n, uint32_t most, const float *constants) {
    const float *k = constants;
    for (uint32_t i = 0; i < (n + 3) / 4 * 4; i++) {
        float x = v[i] - chiplm_from_bits(most);
        x = x > k[12] ? x : k[12];
        x = x < k[13] ? x : k[13];
        const float t = (x * k[1] + k[2]) - k[2];
        const float r = (x - t * k[3]) - t * k[4];
        float p = k[5];
        for (uint32_t j = 6; j < 12; j++) {
            p = p * r + k[j];
        }
        p = p * r + k[11];
        v[i] = p * chiplm_from_bits((uint32_t)((int32_t)t + 127) << 23);
    }
}

uint32_t chiplm_pie_weigh(float *weights, const float *scales, uint32_t n) {
    const float total = chiplm_sum8(weights, n);
    for (uint32_t i = 0; i < (n + 7) / 8 * 8; i++) {
        weights[i] = i < n ? weights[i] * scales[i] : 0.0f;
    }
    return chiplm_bits(total);
}

void chiplm_pie_mix(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *sums) {
    for (uint32_t j = 0; j < d; j++) {
        int32_t sum = 0;
        for (uint32_t t = 0; t < n; t++) {
            sum += (int32_t)shares[t] * values[(size_t)t * d + j];
        }
        sums[j] = sum;
    }
}

void chiplm_pie_divide(const int32_t *sums, uint32_t n, uint32_t scale, uint32_t total, uint32_t inverse, float *o) {
    (void)inverse;
    for (uint32_t j = 0; j < n; j++) {
        o[j] = ((float)sums[j] * chiplm_from_bits(scale)) / chiplm_from_bits(total);
    }
}

uint32_t chiplm_pie_top(const float *x, uint32_t n) {
    uint32_t top = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = chiplm_bits(x[i]) & 0x7fffffffU;
        top = a > top ? a : top;
    }
    return top;
}

void chiplm_pie_codes(const float *x, uint32_t n, uint32_t inverse, int8_t *codes, uint32_t padded) {
    for (uint32_t i = 0; i < padded; i++) {
        codes[i] = i < n ? (int8_t)chiplm_code(x[i], chiplm_from_bits(inverse)) : 0;
    }
}

void chiplm_pie_sums(const int8_t *codes, uint32_t chunks, int32_t *sums) {
    for (uint32_t c = 0; c < chunks; c++) {
        sums[c] = 0;
        for (uint32_t i = 0; i < CHIPLM_CHUNK; i++) {
            sums[c] += codes[(size_t)c * CHIPLM_CHUNK + i];
        }
    }
}

uint32_t chiplm_pie_squares(const float *x, uint32_t n) { return chiplm_bits(chiplm_dot8(x, x, n)); }

void chiplm_pie_gain(const float *x, uint32_t r, const float *gain, uint32_t n, float *y) {
    for (uint32_t i = 0; i < n; i++) {
        y[i] = (x[i] * chiplm_from_bits(r)) * gain[i];
    }
}

void chiplm_pie_add(float *x, const float *y, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        x[i] = x[i] + y[i];
    }
}

void chiplm_pie_blend(float *y, const float *x, uint32_t a, uint32_t b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        y[i] = (y[i] + x[i] * chiplm_from_bits(a)) * chiplm_from_bits(b);
    }
}

void chiplm_pie_gate(float *gate, const float *up, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        gate[i] = gate[i] > 0.0f ? gate[i] * up[i] : 0.0f;
    }
}

void chiplm_pie_rotate(float *x, uint32_t half, const float *cosines, const float *sines) {
    for (uint32_t i = 0; i < half; i++) {
        const float a = x[i];
        const float b = x[half + i];
        x[i] = a * cosines[i] - b * sines[i];
        x[half + i] = a * sines[i] + b * cosines[i];
    }
}

void chiplm_pie_gelu(const float *x, uint32_t n, float *z, const float *constants) {
    for (uint32_t i = 0; i < n; i++) {
        z[i] = (x[i] * constants[0]) * (1.0f + (x[i] * x[i]) * constants[1]);
    }
}

void chiplm_pie_negate(const float *x, uint32_t n, float *y) {
    for (uint32_t i = 0; i < n; i++) {
        y[i] = chiplm_from_bits(chiplm_bits(x[i]) ^ 0x80000000U);
    }
}

void chiplm_pie_sigmoid(const float *x, const float *exps, const float *by, uint32_t n, float *y, uint32_t guess) {
    (void)guess;
    for (uint32_t i = 0; i < n; i++) {
        y[i] = (x[i] * (1.0f / (1.0f + exps[i]))) * by[i];
    }
}

uint32_t chiplm_pie_open(const float *gate, uint32_t n, uint8_t *marks) { return mark_open(gate, n, marks); }

uint32_t chiplm_pie_used(const int8_t *codes, uint32_t n, uint8_t *marks) { return mark_used(codes, n, marks); }

void chiplm_pie_floats4(const uint8_t *codes, uint32_t blocks, uint32_t scale, float *y) {
    for (uint32_t b = 0; b < blocks; b++) {
        for (uint32_t j = 0; j < 16; j++) {
            const int32_t byte = codes[(size_t)b * 16 + j];
            y[(size_t)b * 32 + j] = (float)(((byte & 15) ^ 8) - 8) * chiplm_from_bits(scale);
            y[(size_t)b * 32 + 16 + j] = (float)((byte >> 4 ^ 8) - 8) * chiplm_from_bits(scale);
        }
    }
}
#endif
