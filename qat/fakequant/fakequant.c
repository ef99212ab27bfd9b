#include "fakequant.h"
#include "../rules.h"

RULE_CLONES
void fq_matrix(const float *w, int64_t rows, int64_t cols, int64_t group, int32_t max_code, int32_t half, int32_t values,
               float *out, float *scales) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c += group) {
            int64_t n = cols - c < group ? cols - c : group;
            float *o = out + r * cols + c;
            float s = rule_quantise_group(w + r * cols + c, n, (float)max_code, half, o);
            if (values)
                for (int64_t i = 0; i < n; i++) o[i] *= s;
            if (scales) *scales++ = s;
        }
    }
}

RULE_CLONES
void fq_vectors(const float *x, int64_t rows, int64_t cols, int32_t values, float *out, float *scales) {
    for (int64_t r = 0; r < rows; r++) {
        float *o = out + r * cols;
        float s = rule_quantise_vector(x + r * cols, cols, o);
        if (values)
            for (int64_t i = 0; i < cols; i++) o[i] *= s;
        if (scales) scales[r] = s;
    }
}

RULE_CLONES
void fq_map(int32_t rule, const float *src, float *dst, int64_t n) {
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

RULE_CLONES
float fq_sum8(const float *v, int64_t n) { return rule_sum8(v, n); }
