/* Products of quantised matrices with quantised vectors, in plain C.
 *
 * A matrix is walked in tiles of a few rows. The codes of a tile are unpacked once to 16 bits and then meet every
 * position of the block, so the cost of unpacking is shared. Group sums are exact integers; floats only ever touch them
 * in the order of docs/numerics.md. abs(code) <= 127 and at most 131,072 columns keep every sum under 2^31. */
#ifndef CHIPLM_LINEAR_H
#define CHIPLM_LINEAR_H

#include "chiplm.h"

enum {
    CHIPLM_TILE = 16,            /* rows unpacked together */
    CHIPLM_PAD = 64,             /* columns of unpacked rows and wide codes are padded to this with zeros */
    CHIPLM_MAX_COLUMNS = 131072, /* 127 * 127 * 131072 < 2^31 */
};

/* Positions of a block, quantised as inputs of a product: row b holds codes[b * stride ..] and has scale scales[b]. */
typedef struct chiplm_inputs {
    int16_t *codes;
    float *scales;
    size_t stride;
} chiplm_inputs;

/* Scratch of a product: CHIPLM_TILE rows of padded codes and of float scales, and the codes of the inputs laid across
 * (across.h; chiplm_strips_bytes of them, null when that is 0). */
typedef struct chiplm_tile {
    int16_t *codes;
    float *scales;
    int16_t *strips;
} chiplm_tile;

/* Bytes of chiplm_tile.strips for blocks of batch positions and inputs of padded columns. */
uint64_t chiplm_strips_bytes(uint32_t batch, uint64_t padded);

/* y[which[i]][r] = W[first + r] * x[which[i]] for r < rows and i < n; y has rows of ldy floats. */
void chiplm_product(const chiplm_tensor *w, uint32_t first, uint32_t rows, chiplm_inputs x, const uint32_t *which,
                    size_t n, chiplm_tile tile, float *y, size_t ldy);

/* Unpacks a row of bits-bit codes of stride bytes to stride * 8 / bits values. */
void chiplm_unpack(const uint8_t *codes, size_t stride, uint32_t bits, int16_t *out);

/* Writes the scales of one row, widened. */
void chiplm_unpack_scales(const chiplm_tensor *w, uint32_t row, float *out);

/* Writes a row as floats, code * scale. unpacked is scratch for a padded row, scales for its scales. */
void chiplm_dequantise_row(const chiplm_tensor *w, uint32_t row, int16_t *unpacked, float *scales, float *out);

/* y_i = sum8 of W_ij * x_j for a float matrix of rows of stride bytes. */
void chiplm_float_product(const chiplm_tensor *w, const float *x, float *y);

#endif
