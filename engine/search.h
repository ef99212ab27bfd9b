/* search.h: what a search of the head computes: the bounds of some rows, and the logit of one. */

#if CHIPLM_PATH == CHIPLM_AVX2 || CHIPLM_PATH == CHIPLM_AVX512
#include "search_x86.h"
#elif CHIPLM_PATH == CHIPLM_PIE
#include "search_pie.h"
#else
#include "search_plain.h"
#endif

#if CHIPLM_PATH != CHIPLM_PIE
static void row_bounds(const uint8_t *blocks, uint32_t n, float prior, const chiplm_level *level, chiplm_bound *bounds) {
    for (uint32_t i = 0; i < n; i++, blocks += 16) {
        const float sum = prior + (float)block_dot(blocks, level->lanes) * level->unit;
        bounds[i].sum = sum;
        bounds[i].bound = ((sum + (float)blocks[15] * level->norm) + level->slack) * level->scale;
    }
}
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
