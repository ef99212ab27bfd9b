/* Products of a matrix with many vectors at once: lanes run across positions instead of along a row. Internal.
 *
 * Only for compilers with vector types on processors with vectors, and for weights of at most 4 bits; linear.c is its
 * plain twin and serves all other cases with the same bits. */
#ifndef CHIPLM_ACROSS_H
#define CHIPLM_ACROSS_H

#include "linear.h"

#if defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON)) && !defined(CHIPLM_NO_ACROSS)
#define CHIPLM_ACROSS 1
#else
#define CHIPLM_ACROSS 0
#endif

enum {
    CHIPLM_LANES = 16,   /* positions of a vector */
    CHIPLM_STRIP = 32,   /* positions of two vectors: a strip */
    CHIPLM_LEAST = 6,    /* fewer positions than this are left to linear.c */
    CHIPLM_ACROSS_COLUMNS = 32, /* columns whose products add up in 16 bits: 7 * 127 * 32 < 2^15 */
};

#if CHIPLM_ACROSS
/* Writes the codes of count <= CHIPLM_STRIP positions across: column c of position i to out[c * CHIPLM_STRIP + i], for
 * padded columns; missing positions are 0. */
void chiplm_lay_across(chiplm_inputs x, const uint32_t *which, uint32_t count, uint32_t padded, int16_t *out);

/* A tile of rows (as in linear.h, padded with zeros to CHIPLM_PAD columns) times a strip of count positions:
 * y[which[i] * ldy + r] for r < rows and i < count. */
void chiplm_tile_across(const chiplm_tensor *w, chiplm_tile tile, uint32_t rows, const int16_t *strip,
                        const float *x_scales, const uint32_t *which, uint32_t count, float *y, size_t ldy);
#endif

#endif
