/* path.h is the body of plain.c, avx2.c, avx512.c: all functions, compiled for SIMD_PATH, and the table FQ_SET of them. */
#include "../simd/simd.h"

#include "../rules.h"
#include "fakequant.h"

/* Puts n codes of a row where they belong in its block, `to` being the first quad, and returns the bias of their group. */
static int32_t put_codes(const float *code, int64_t n, int8_t *to) {
    enum { CHUNK = 64 };
    int32_t sum = 0;
    for (int64_t c = 0; c < n; c += CHUNK) {
        int64_t m = n - c < CHUNK ? n - c : CHUNK;
        int8_t bytes[CHUNK] = {0};
        for (int64_t i = 0; i < m; i++) {
            sum += (int32_t)code[c + i];
            bytes[i] = (int8_t)(int32_t)code[c + i];
        }
        for (int64_t i = 0; i < m; i += 4) memcpy(to + (c + i) * FQ_BLOCK, bytes + i, 4);
    }
    return -128 * sum;
}

static void weights(const float *w, int64_t rows, int64_t cols, int64_t group, int32_t max_code, float divisor, int32_t half,
                    float *values, int8_t *codes, float *scales, int32_t *bias) {
    int64_t groups = (cols + group - 1) / group, quads = (cols + 3) / 4, blocks = (rows + FQ_BLOCK - 1) / FQ_BLOCK;
    for (int64_t r = 0; r < rows; r++) {
        int64_t block = r / FQ_BLOCK, lane = r % FQ_BLOCK;
        for (int64_t g = 0; g < groups; g++) {
            int64_t c = g * group, n = cols - c < group ? cols - c : group;
            float *v = values + r * cols + c;
            float s = rule_quantise_group(w + r * cols + c, n, (float)max_code, divisor, half, v);
            if (codes) {
                int64_t at = (block * groups + g) * FQ_BLOCK + lane;
                bias[at] = put_codes(v, n, codes + ((block * quads + c / 4) * FQ_BLOCK + lane) * 4);
                scales[at] = s;
            }
            for (int64_t i = 0; i < n; i++) v[i] *= s;
        }
    }
    if (!codes) return;
    for (int64_t r = rows; r < blocks * FQ_BLOCK; r++) {
        int64_t block = r / FQ_BLOCK, lane = r % FQ_BLOCK;
        for (int64_t q = 0; q < quads; q++) memset(codes + ((block * quads + q) * FQ_BLOCK + lane) * 4, 0, 4);
        for (int64_t g = 0; g < groups; g++) {
            scales[(block * groups + g) * FQ_BLOCK + lane] = 0;
            bias[(block * groups + g) * FQ_BLOCK + lane] = 0;
        }
    }
}

/* A block of codes at a time, so that they stay in registers or the nearest cache. */
static void activations(const float *x, int64_t rows, int64_t cols, float *values, uint8_t *codes, float *scales) {
    enum { CHUNK = 256 };
    int64_t stride = (cols + 3) / 4 * 4;
    for (int64_t r = 0; r < rows; r++, x += cols, codes += stride) {
        float f, s = rule_vector_scale(x, cols, &f);
        int finite = s < HUGE_VALF; /* then no element comes out of bounds */
        for (int64_t c = 0; c < cols; c += CHUNK) {
            int64_t n = cols - c < CHUNK ? cols - c : CHUNK;
            _Alignas(64) float q[CHUNK];
            if (finite)
                for (int64_t i = 0; i < n; i++) q[i] = rule_rne(x[c + i] * f);
            else
                for (int64_t i = 0; i < n; i++) q[i] = rule_vector_code(x[c + i], f);
            for (int64_t i = 0; i < n; i++) codes[c + i] = (uint8_t)((int32_t)q[i] + 128);
            if (values)
                for (int64_t i = 0; i < n; i++) values[c + i] = q[i] * s;
        }
        for (int64_t i = cols; i < stride; i++) codes[i] = 128;
        if (values) values += cols;
        scales[r] = s;
    }
}

static void map(int32_t rule, const float *src, float *dst, int64_t n) {
    switch (rule) {
    case FQ_RNE:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_rne(src[i]);
        break;
    case FQ_EXP:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_exp(src[i]);
        break;
    case FQ_SIGMOID:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_sigmoid(src[i]);
        break;
    case FQ_SILU:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_silu(src[i]);
        break;
    case FQ_GELU:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_gelu(src[i]);
        break;
    case FQ_HALF:
        for (int64_t i = 0; i < n; i++) dst[i] = rule_half(src[i]);
        break;
    }
}

static float sum8(const float *v, int64_t n) { return rule_sum8(v, n); }

const struct fq_set FQ_SET = {weights, activations, map, sum8};

#if defined(__clang__) && (SIMD_PATH == SIMD_AVX2 || SIMD_PATH == SIMD_AVX512)
#pragma clang attribute pop
#endif
