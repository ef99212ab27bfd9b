/* The product of a tile of rows with a strip of positions, lanes across the positions: no sum along a lane is needed,
 * and every code of a row is loaded once for up to 32 positions. */
#include "across.h"

#include "numerics.h"

#if CHIPLM_ACROSS

/* 16-bit values of 16 positions; and of 8 positions, 16 and 32 bits and float. */
typedef int16_t lanes __attribute__((vector_size(32)));
typedef int16_t half __attribute__((vector_size(16)));
typedef int32_t sums __attribute__((vector_size(32)));
typedef float values __attribute__((vector_size(32)));

void chiplm_lay_across(chiplm_inputs x, const uint32_t *which, uint32_t count, uint32_t padded, int16_t *out) {
    if (count < CHIPLM_STRIP) {
        memset(out, 0, (size_t)padded * CHIPLM_STRIP * sizeof *out);
    }
    for (uint32_t i = 0; i < count; i++) {
        const int16_t *codes = x.codes + which[i] * x.stride;
        for (uint32_t c = 0; c < padded; c++) {
            out[(size_t)c * CHIPLM_STRIP + i] = codes[c];
        }
    }
}

/* One row times a strip of 16 * vectors positions. vectors is a constant in every caller. */
CHIPLM_INLINE void row_across(const int16_t *w, const int16_t *strip, const float *scales, uint32_t columns,
                              uint32_t group, const float *x_scales, const uint32_t vectors, float *y) {
    values acc[4];
    for (uint32_t v = 0; v < 2 * vectors; v++) {
        acc[v] = -(values){0}; /* -0: adding to it changes no bit */
    }
    for (uint32_t g = 0, c = 0; c < columns; g++) {
        const uint32_t end = columns - c < group ? columns : c + group;
        sums sum[4] = {{0}, {0}, {0}, {0}};
        for (; c < end; c += CHIPLM_ACROSS_COLUMNS) {
            lanes part[2] = {{0}, {0}};
            const int16_t *x = strip + (size_t)c * CHIPLM_STRIP;
#pragma GCC unroll 4
            for (uint32_t i = 0; i < CHIPLM_ACROSS_COLUMNS; i++, x += CHIPLM_STRIP) {
                for (uint32_t v = 0; v < vectors; v++) {
                    lanes codes;
                    memcpy(&codes, x + v * CHIPLM_LANES, sizeof codes);
                    part[v] += codes * w[c + i];
                }
            }
            for (uint32_t v = 0; v < vectors; v++) {
                half halves[2];
                memcpy(halves, &part[v], sizeof halves);
                sum[2 * v] += __builtin_convertvector(halves[0], sums);
                sum[2 * v + 1] += __builtin_convertvector(halves[1], sums);
            }
        }
        c = end;
        for (uint32_t v = 0; v < 2 * vectors; v++) {
            acc[v] += __builtin_convertvector(sum[v], values) * scales[g];
        }
    }
    for (uint32_t v = 0; v < 2 * vectors; v++) {
        values scale;
        memcpy(&scale, x_scales + v * 8, sizeof scale);
        acc[v] *= scale;
        memcpy(y + v * 8, &acc[v], sizeof acc[v]);
    }
}

CHIPLM_CLONES void chiplm_tile_across(const chiplm_tensor *w, chiplm_tile tile, uint32_t rows, const int16_t *strip,
                                      const float *x_scales, const uint32_t *which, uint32_t count, float *y,
                                      size_t ldy) {
    const size_t ldw = ((size_t)w->columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    float scales[CHIPLM_STRIP] = {0};
    float out[CHIPLM_TILE][CHIPLM_STRIP]; /* rows that are not computed are not read */
    for (uint32_t i = 0; i < count; i++) {
        scales[i] = x_scales[which[i]];
    }
    for (uint32_t r = 0; r < rows; r++) {
        const int16_t *row = tile.codes + r * ldw;
        const float *row_scales = tile.scales + (size_t)r * w->groups;
        if (count > CHIPLM_LANES) {
            row_across(row, strip, row_scales, w->columns, group, scales, 2, out[r]);
        } else {
            row_across(row, strip, row_scales, w->columns, group, scales, 1, out[r]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        float *to = y + which[i] * ldy;
        if (rows == CHIPLM_TILE) { /* a constant number of rows unrolls */
            for (uint32_t r = 0; r < CHIPLM_TILE; r++) {
                to[r] = out[r][i];
            }
        } else {
            for (uint32_t r = 0; r < rows; r++) {
                to[r] = out[r][i];
            }
        }
    }
}

#endif
