/* search_pie.h: search.h with the kernels of pie/pie.h. */

static int32_t block_dot(const uint8_t *block, const int16_t *lanes) { return chiplm_pie_block_dot(block, lanes); }

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
