/* The twins of the assembly in pie/: the same functions in plain C, for processors without the vector unit. They say what
 * the kernels compute, and nothing of how. */
#include "kernels.h"
#if !CHIPLM_HAS_PIE
#include "numerics.h"
#include "pie/pie.h"

/* ------------------------------------------------------------------------------------------------ products by rows */

/* The code of a column in a row of codes of so many bits. */
static int32_t code_at(const uint8_t *row, uint32_t bits, uint32_t column) {
    const uint32_t per_block = 128 / bits;
    const uint32_t byte = row[column / per_block * 16 + column % 16];
    const int32_t sign = 1 << (bits - 1);
    return (int32_t)(((byte >> column % per_block / 16 * bits) & ((1U << bits) - 1)) ^ (uint32_t)sign) - sign;
}

/* Columns run to the end of the last block: beyond the last one codes are 0. */
static void rows(uint32_t bits, const uint8_t *codes, const float *scales, const int8_t *x, float *y,
                 const chiplm_pie_rows *shape) {
    const uint32_t columns = shape->blocks * (128 / bits);
    const uint32_t group = shape->group == 0 ? columns : shape->group;
    for (uint32_t r = 0; r < shape->rows; r++, codes += (size_t)shape->blocks * 16, scales += shape->groups) {
        float acc = 0.0f;
        for (uint32_t g = 0, c = 0; g < shape->groups; g++) {
            int32_t sum = 0;
            for (const uint32_t end = columns - c < group ? columns : c + group; c < end; c++) {
                sum += code_at(codes, bits, c) * x[c];
            }
            acc = acc + (float)sum * scales[g];
        }
        y[r] = acc * chiplm_from_bits(shape->scale);
    }
}

void chiplm_pie_rows2(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape) {
    rows(2, codes, scales, x, y, shape);
}

void chiplm_pie_rows4(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape) {
    rows(4, codes, scales, x, y, shape);
}

void chiplm_pie_rows8(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape) {
    rows(8, codes, scales, x, y, shape);
}

static chiplm_pie_rows fixed(uint32_t count, uint32_t columns, uint32_t group, uint32_t scale) {
    return (chiplm_pie_rows){.rows = count, .blocks = columns / 32, .group = group, .groups = columns / group, .scale = scale};
}

void chiplm_pie_rows4_c64g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t count, uint32_t scale) {
    const chiplm_pie_rows shape = fixed(count, 64, 64, scale);
    rows(4, codes, scales, x, y, &shape);
}

void chiplm_pie_rows4_c128g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t count,
                              uint32_t scale) {
    const chiplm_pie_rows shape = fixed(count, 128, 64, scale);
    rows(4, codes, scales, x, y, &shape);
}

void chiplm_pie_rows4_c128g128(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t count,
                               uint32_t scale) {
    const chiplm_pie_rows shape = fixed(count, 128, 128, scale);
    rows(4, codes, scales, x, y, &shape);
}

void chiplm_pie_listed4_c128g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const uint32_t *list,
                                const chiplm_pie_listed *shape) {
    const chiplm_pie_rows one = fixed(1, 128, 64, shape->scale);
    for (uint32_t k = 0; k < shape->count; k++) {
        const size_t r = list[k];
        rows(4, codes + r * 64, scales + r * 2, x, y + r, &one);
    }
}

void chiplm_pie_widen(const uint16_t *halves, float *floats, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        floats[i] = chiplm_half(halves[i]);
    }
}

/* --------------------------------------------------------------------------------- products of transposed matrices */

void chiplm_pie_columns4(const uint8_t *codes, const uint32_t *list, const int8_t *x, uint8_t *scratch, int32_t *sums,
                         const chiplm_pie_columns *shape) {
    (void)scratch;
    for (uint32_t r = 0; r < 32 * shape->blocks; r++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < shape->count; k++) {
            sum += code_at(codes + (size_t)list[k] * shape->stride, 4, r) * x[list[k]];
        }
        sums[r] = sum;
    }
}

void chiplm_pie_add_columns4(const uint8_t *codes, const uint32_t *list, const int8_t *x, const float *scales, float *y,
                             chiplm_pie_work *work) {
    for (uint32_t r = 0; r < 32 * work->blocks; r++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < work->count; k++) {
            sum += code_at(codes + (size_t)list[k] * work->stride, 4, r) * x[list[k]];
        }
        y[r] = y[r] + (float)sum * scales[r];
    }
}

void chiplm_pie_add_sums(int32_t *sums, const int32_t *more, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        sums[r] += more[r];
    }
}

void chiplm_pie_add_group(const int32_t *sums, const float *scales, float *y, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        y[r] = y[r] + (float)sums[r] * scales[r];
    }
}

void chiplm_pie_scale(float *y, uint32_t n, uint32_t scale) {
    for (uint32_t r = 0; r < n; r++) {
        y[r] = y[r] * chiplm_from_bits(scale);
    }
}

/* ------------------------------------------------------------------------------------------- the search of the head */

void chiplm_pie_bounds(const uint8_t *blocks, uint32_t n, uint32_t prior, const chiplm_level *level, chiplm_bound *bounds) {
    for (uint32_t i = 0; i < n; i++, blocks += 16) {
        int32_t dot = 0;
        for (uint32_t c = 0; c < 32; c++) {
            dot += code_at(blocks, 4, c) * level->lanes[c];
        }
        const float sum = chiplm_from_bits(prior) + (float)dot * level->unit;
        bounds[i].sum = sum;
        bounds[i].bound = ((sum + (float)blocks[15] * level->norm) + level->slack) * level->scale;
    }
}
#endif
