/* search_pie.h: search.h with the kernels of pie/pie.h. */

static void row_bounds(const uint8_t *blocks, uint32_t n, float prior, const chiplm_level *level, chiplm_bound *bounds) {
    chiplm_pie_bounds(blocks, n, chiplm_bits(prior), level, bounds);
}

#include "row_logit.h"

/* There is no scratch here: half-width scales go to the stack, or where they are too many, the row by the definition. */
CHIPLM_INLINE float row_logit_of(uint32_t bits, const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale) {
    float floats[32];
    if (w->scale_type != CHIPLM_F32 && w->groups > sizeof floats / sizeof floats[0]) {
        return row_logit_by_chunks(bits, w, row, x, scale);
    }
    float y;
    const float *scales = scales_from(w, (size_t)row * w->groups, w->groups, floats);
    multiply_rows(w, w->codes.at + (size_t)row * w->stride, scales, 1, x, scale, &y);
    return y;
}
