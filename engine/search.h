/* search.h: what a search of the head computes for single rows: a bound's dot product, and a logit. */

#if CHIPLM_PATH == CHIPLM_AVX2 || CHIPLM_PATH == CHIPLM_AVX512
#include "search_x86.h"
#elif CHIPLM_PATH == CHIPLM_PIE
#include "search_pie.h"
#else
#include "search_plain.h"
#endif

static float row_logit(const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale) {
    switch (w->bits) { /* constant widths make plain loops */
    case 2:
        return row_logit_of(2, w, row, x, scale);
    case 4:
        return row_logit_of(4, w, row, x, scale);
    default:
        return row_logit_of(8, w, row, x, scale);
    }
}
