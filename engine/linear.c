/* Unpacking of codes, and the product of quantised matrices with quantised vectors. */
#include "linear.h"

#include "across.h"
#include "numerics.h"

CHIPLM_CLONES void chiplm_unpack(const uint8_t *codes, size_t stride, uint32_t bits, int16_t *out) {
    /* (v ^ 8) - 8 extends the sign of a 4-bit code without leaving defined behaviour; the others alike. */
    switch (bits) {
    case 2:
        for (size_t i = 0; i < stride; i += 16, out += 64) {
            for (size_t j = 0; j < 16; j++) {
                const int32_t c = codes[i + j];
                out[j] = (int16_t)(((c & 3) ^ 2) - 2);
                out[j + 16] = (int16_t)((((c >> 2) & 3) ^ 2) - 2);
                out[j + 32] = (int16_t)((((c >> 4) & 3) ^ 2) - 2);
                out[j + 48] = (int16_t)((((c >> 6) & 3) ^ 2) - 2);
            }
        }
        break;
    case 4:
        for (size_t i = 0; i < stride; i += 16, out += 32) {
            for (size_t j = 0; j < 16; j++) {
                const int32_t c = codes[i + j];
                out[j] = (int16_t)(((c & 15) ^ 8) - 8);
                out[j + 16] = (int16_t)(((c >> 4) ^ 8) - 8);
            }
        }
        break;
    default: /* 8 */
        for (size_t i = 0; i < stride; i++) {
            out[i] = (int16_t)((codes[i] ^ 128) - 128);
        }
        break;
    }
}

void chiplm_unpack_scales(const chiplm_tensor *w, uint32_t row, float *out) {
    const size_t first = (size_t)row * w->groups;
    if (w->scale_type == CHIPLM_F32) {
        memcpy(out, w->scales.at + first * sizeof(float), w->groups * sizeof(float));
        return;
    }
    const uint8_t *at = w->scales.at + first * 2;
    for (uint32_t g = 0; g < w->groups; g++) {
        out[g] = chiplm_half((uint16_t)(at[2 * g] | ((uint32_t)at[2 * g + 1] << 8)));
    }
}

void chiplm_dequantise_row(const chiplm_tensor *w, uint32_t row, int16_t *unpacked, float *scales, float *out) {
    chiplm_unpack(w->codes.at + (size_t)row * w->stride, w->stride, w->bits, unpacked);
    chiplm_unpack_scales(w, row, scales);
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    for (uint32_t g = 0, i = 0; g < w->groups; g++) {
        for (uint32_t end = w->columns - i < group ? w->columns : i + group; i < end; i++) {
            out[i] = (float)unpacked[i] * scales[g];
        }
    }
}

/* The exact dot product of n codes; n is a multiple of 16 (the padding is zero). */
CHIPLM_INLINE int32_t dot(const int16_t *w, const int16_t *x, uint32_t n) {
    int32_t s = 0;
    for (uint32_t i = 0; i < n; i++) {
        s += (int32_t)w[i] * x[i];
    }
    return s;
}

/* One row times one vector: group sums met by their scales in ascending order. group is a constant in every caller, so
 * that the compiler unrolls the dot product. */
CHIPLM_INLINE float row_times(const int16_t *w, const int16_t *x, const float *scales, uint32_t columns,
                              uint32_t group) {
    float acc = -0.0f; /* adding to it changes no bit, not even the sign of a zero */
    uint32_t g = 0;
    uint32_t i = 0;
    for (; i + group <= columns; i += group, g++) {
        acc = acc + (float)dot(w + i, x + i, group) * scales[g];
    }
    if (i < columns) {
        acc = acc + (float)dot(w + i, x + i, (columns - i + 15U) & ~15U) * scales[g];
    }
    return acc;
}

/* A tile of rows times one vector. */
CHIPLM_CLONES static void tile_times(const int16_t *w, size_t ldw, const float *scales, uint32_t groups, uint32_t rows,
                                     uint32_t columns, uint32_t group, const int16_t *x, float x_scale, float *y) {
    switch (group) {
    case 32:
        for (uint32_t r = 0; r < rows; r++) {
            y[r] = row_times(w + r * ldw, x, scales + r * groups, columns, 32) * x_scale;
        }
        break;
    case 64:
        for (uint32_t r = 0; r < rows; r++) {
            y[r] = row_times(w + r * ldw, x, scales + r * groups, columns, 64) * x_scale;
        }
        break;
    case 128:
        for (uint32_t r = 0; r < rows; r++) {
            y[r] = row_times(w + r * ldw, x, scales + r * groups, columns, 128) * x_scale;
        }
        break;
    default: /* one group a row */
        for (uint32_t r = 0; r < rows; r++) {
            y[r] = (float)dot(w + r * ldw, x, (columns + 15U) & ~15U) * scales[r] * x_scale;
        }
        break;
    }
}

uint64_t chiplm_strips_bytes(uint32_t batch, uint64_t padded) {
    if (!CHIPLM_ACROSS || batch < CHIPLM_LEAST) {
        return 0;
    }
    return (batch + CHIPLM_STRIP - 1U) / CHIPLM_STRIP * padded * CHIPLM_STRIP * sizeof(int16_t);
}

/* How many of n positions go across: all whole strips, and the rest if it is worth it. */
static size_t count_across(const chiplm_tensor *w, chiplm_tile tile, size_t n) {
    if (tile.strips == NULL || w->bits > 4) {
        return 0;
    }
    return n % CHIPLM_STRIP < CHIPLM_LEAST ? n - n % CHIPLM_STRIP : n;
}

void chiplm_product(const chiplm_tensor *w, uint32_t first, uint32_t rows, chiplm_inputs x, const uint32_t *which,
                    size_t n, chiplm_tile tile, float *y, size_t ldy) {
    const size_t ldw = ((size_t)w->columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    const size_t across = count_across(w, tile, n);
#if CHIPLM_ACROSS
    for (size_t i = 0; i < across; i += CHIPLM_STRIP) {
        const uint32_t count = across - i < CHIPLM_STRIP ? (uint32_t)(across - i) : CHIPLM_STRIP;
        chiplm_lay_across(x, which + i, count, (uint32_t)ldw, tile.strips + i * ldw);
    }
#endif
    for (uint32_t r = 0; r < rows; r += CHIPLM_TILE) {
        const uint32_t height = rows - r < CHIPLM_TILE ? rows - r : CHIPLM_TILE;
        for (uint32_t i = 0; i < height; i++) {
            const uint32_t row = first + r + i;
            chiplm_unpack(w->codes.at + (size_t)row * w->stride, w->stride, w->bits, tile.codes + i * ldw);
            chiplm_unpack_scales(w, row, tile.scales + i * w->groups);
        }
#if CHIPLM_ACROSS
        for (size_t i = 0; i < across; i += CHIPLM_STRIP) {
            const uint32_t count = across - i < CHIPLM_STRIP ? (uint32_t)(across - i) : CHIPLM_STRIP;
            chiplm_tile_across(w, tile, height, tile.strips + i * ldw, x.scales, which + i, count, y + r, ldy);
        }
#endif
        for (size_t i = across; i < n; i++) {
            const size_t b = which[i];
            tile_times(tile.codes, ldw, tile.scales, w->groups, height, w->columns, w->group, x.codes + b * x.stride,
                       x.scales[b], y + b * ldy + r);
        }
    }
}

void chiplm_float_product(const chiplm_tensor *w, const float *x, float *y) {
    for (uint32_t r = 0; r < w->rows; r++) {
        y[r] = chiplm_dot8((const float *)(const void *)(w->codes.at + (size_t)r * w->stride), x, w->columns);
    }
}
