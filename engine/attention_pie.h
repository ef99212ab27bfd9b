/* attention_pie.h: attention on the kernels for the vector unit, query by query, for heads whose width is a multiple of 16.
 * Others go the way of the definition. */
#define attend attend_anywhere
#include "attention.h"
#undef attend

/* o_j = ((float)sums_j * scale) / total, with the division of C where chiplm_pie_divide would leave the range of floats. */
static void divide_sums(const int32_t *sums, uint32_t d, float scale, float total, float *o) {
    if (scale >= 0x1p-60f && scale <= 0x1p60f) {
        chiplm_pie_divide(sums, d, chiplm_bits(scale), chiplm_bits(total), chiplm_bits(1.0f / total), o);
        return;
    }
    for (uint32_t j = 0; j < d; j++) {
        o[j] = ((float)sums[j] * scale) / total;
    }
}

static bool attend(chiplm_queries queries, chiplm_head head, uint32_t first, uint32_t d, float c, chiplm_attention scratch,
                   float *o, size_t ldo) {
    const uintptr_t places = (uintptr_t)queries.codes | queries.stride | (uintptr_t)head.keys | (uintptr_t)head.values |
                             (uintptr_t)o | ldo * sizeof *o | d;
    if (places % 16 != 0) {
        return attend_anywhere(queries, head, first, d, c, scratch, o, ldo);
    }
    float *weights = scratch.weights;
    int8_t *shares = (int8_t *)scratch.shares;
    bool finite = true;
    for (uint32_t i = 0; i < queries.n; i++, o += ldo) {
        const uint32_t n = first + i + 1;
        const uint32_t padded = (n + CHIPLM_TURN - 1) / CHIPLM_TURN * CHIPLM_TURN;
        const uint32_t whole = (n + 7) / 8 * 8;
        const chiplm_pie_scoring how = {d, chiplm_bits(queries.scales[i]), chiplm_bits(c)};
        const uint32_t most =
            chiplm_pie_scores(queries.codes + i * queries.stride, head.keys, head.key_scales, n, &how, weights);
        chiplm_pie_exp(weights, n, most, exp_constants);
        const float total = chiplm_from_bits(chiplm_pie_weigh(weights, head.value_scales, n));
        const chiplm_grid grid = chiplm_grid_of_top((int32_t)chiplm_pie_top(weights, whole));
        if (grid.inverse == 0.0f) {
            memset(scratch.sums, 0, d * sizeof *scratch.sums);
        } else {
            chiplm_pie_codes(weights, whole, chiplm_bits(grid.inverse), shares, padded);
            chiplm_pie_mix(shares, head.values, n, d, scratch.sums);
        }
        divide_sums(scratch.sums, d, grid.scale, total, o);
        finite = finite && !chiplm_is_nan(grid.scale);
    }
    return finite;
}
