/* pie.h - the engine's kernels for the vector unit of the ESP32-S3 (PIE): assembly in this folder, called by the path `pie`.
 *
 * Each function has a twin in plain C with the same prototype and the same bits (engine/pie_twins*.c), which is what a
 * host links under these names. So arguments are pointers and words of 32 bits alone: six at most, and what is more comes
 * in a struct of words. Floats among the words are their bits.
 *
 * The unit drops the low bits of an address where it loads or stores vectors, silently. So alignments below are part of
 * the contract. Kernels load ahead: where a comment says that loads may run past the end of a buffer, the bytes there
 * must be readable, and what they hold changes nothing. None stores past an end. All of them change every register of the
 * vector unit and the shift register, as any function may. The processor must not be in an interrupt.
 *
 * Formats of codes and scales are those of docs/image.md; what is computed, to the bit, is docs/numerics.md. Internal. */
#ifndef CHIPLM_PIE_H
#define CHIPLM_PIE_H

#include <stdint.h>

/* ------------------------------------------------------------------------------------------------ products by rows
 *
 * y[r] = (row r of a matrix times x) * scale, rows one after the other. For all of them:
 *
 *   codes   of the first row, at a multiple of 16. Rows follow each other. Loads may run 32 bytes past the last
 *   scales  of the first row, as floats at a multiple of 4, rows after rows, groups ascending
 *   x       codes from -127 to 127, at a multiple of 16; zeros from the last column to whole blocks of weights. Loads may
 *           run 64 bytes past these
 *   y       at a multiple of 4
 *   scale   of x: the bits of a float
 */

typedef struct chiplm_pie_rows {
    uint32_t rows;   /* at least 1 */
    uint32_t blocks; /* of 16 bytes in a row: at least 1 */
    uint32_t group;  /* columns that share a scale: 32, 64, 128; 0: the row */
    uint32_t groups; /* scales a row: columns / group, rounded up. Columns fill the last block, but for padding */
    uint32_t scale;
} chiplm_pie_rows;

/* Any shape; the number at the end is that of the bits of a weight. */
void chiplm_pie_rows2(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape);
void chiplm_pie_rows4(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape);
void chiplm_pie_rows8(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const chiplm_pie_rows *shape);

/* Weights of 4 bits in rows of 64 or 128 columns (c) in groups of as many columns as g says: the shapes of small models,
 * which lose most to what is done once a row. rows is at least 1. For c128g64 scales are at a multiple of 8. */
void chiplm_pie_rows4_c64g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t rows, uint32_t scale);
void chiplm_pie_rows4_c128g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t rows, uint32_t scale);
void chiplm_pie_rows4_c128g128(const uint8_t *codes, const float *scales, const int8_t *x, float *y, uint32_t rows, uint32_t scale);

/* The same for the rows that a list names, in any order: y[r] for each r of it. codes and scales are those of row 0. */
typedef struct chiplm_pie_listed {
    uint32_t count; /* of the list: at least 1 */
    uint32_t scale;
} chiplm_pie_listed;

void chiplm_pie_listed4_c128g64(const uint8_t *codes, const float *scales, const int8_t *x, float *y, const uint32_t *list,
                                const chiplm_pie_listed *shape);

/* floats[i] = the float of halves[i], for i < n: halves that are finite and not negative, as scales are. */
void chiplm_pie_widen(const uint16_t *halves, float *floats, uint32_t n);

/* --------------------------------------------------------------------------------- products of transposed matrices */

typedef struct chiplm_pie_columns {
    uint32_t count;  /* of columns: 1 to CHIPLM_PIE_COLUMNS */
    uint32_t blocks; /* of 16 bytes, 32 rows each: at least 1 */
    uint32_t stride; /* bytes from a column to the next, a multiple of 16 */
} chiplm_pie_columns;

enum {
    CHIPLM_PIE_COLUMNS = 32, /* fit lanes of 20 bits: 36 * 16 * 7 * 127 < 2^19, and they are taken two by two */
    CHIPLM_PIE_COLUMNS_SCRATCH = 736,
};

/* sums[r] = the sum over the listed columns c of code(r, c) * x[c], for 32 * blocks rows. codes are those of column 0 at the
 * first row, at a multiple of 16. sums and scratch, of CHIPLM_PIE_COLUMNS_SCRATCH bytes, are at multiples of 16. Reads
 * nothing but the columns of the list. */
void chiplm_pie_columns4(const uint8_t *codes, const uint32_t *list, const int8_t *x, uint8_t *scratch, int32_t *sums,
                         const chiplm_pie_columns *shape);

/* For the columns of a group: y[r] += (float)sum * scales[r], with the sum of row r as above, for 32 * blocks rows. scales, y and
 * work are at multiples of 16. What work->scratch holds is lost. */
typedef struct chiplm_pie_work {
    uint32_t count, blocks, stride; /* as above */
    uint32_t nothing;
    uint8_t scratch[CHIPLM_PIE_COLUMNS_SCRATCH];
} chiplm_pie_work;

void chiplm_pie_add_columns4(const uint8_t *codes, const uint32_t *list, const int8_t *x, const float *scales, float *y,
                             chiplm_pie_work *work);

/* sums[r] += more[r] for r < n, n a multiple of 4 and at least 4; both at multiples of 16. No sum passes 32 bits. */
void chiplm_pie_add_sums(int32_t *sums, const int32_t *more, uint32_t n);

/* y[r] += (float)sums[r] * scales[r] for r < n, n at least 1. All at multiples of 4. */
void chiplm_pie_add_group(const int32_t *sums, const float *scales, float *y, uint32_t n);

/* y[r] = y[r] * scale for r < n, n at least 1. */
void chiplm_pie_scale(float *y, uint32_t n, uint32_t scale);

/* ------------------------------------------------------------------------------------------- the search of the head */

/* The bounds of n >= 1 rows by their blocks, which follow each other: for each block
 *
 *   sum   = prior + (float)dot * unit       dot: its 32 codes of 4 bits times lanes, columns 0 to 31 in their order
 *   bound = ((sum + (float)byte 15 * norm) + slack) * scale
 *
 * prior is the bits of a float. Blocks and level at multiples of 16, bounds of 8. kernels.h has both structs: lanes, unit,
 * norm, slack, scale, one after the other; and sum, bound. Reads nothing past the last block. */
struct chiplm_level;
struct chiplm_bound;
void chiplm_pie_bounds(const uint8_t *blocks, uint32_t n, uint32_t prior, const struct chiplm_level *level,
                       struct chiplm_bound *bounds);

/* ------------------------------------------------------------------------------------------------------- attention
 *
 * Floats at multiples of 16 unless a comment says otherwise. NaNs and infinities are taken everywhere. */

typedef struct chiplm_pie_scoring {
    uint32_t width; /* of a head: a multiple of 16 */
    uint32_t scale; /* of the query: the bits of a float, as c */
    uint32_t c;
} chiplm_pie_scoring;

/* scores[t] = ((float)dot(query, key t) * (scale * key_scales[t])) * c for n >= 1 positions. Returns the bits of the first
 * score if that is a NaN, else of the largest that is none, 0
 * without its sign. query and keys at multiples of 16, key_scales of 4. */
uint32_t chiplm_pie_scores(const int8_t *query, const int8_t *keys, const float *key_scales, uint32_t n,
                           const chiplm_pie_scoring *how, float *scores);

/* v[i] = exp(v[i] - most) for n >= 1 values; most is the bits of a float. What lies after the last is read up to a multiple
 * of 8 values, and written up to a multiple of 4. constants at a multiple of 16: a word that is not read, log2(e), 1.5 * 2^23,
 * the first part of ln(2); its second part and the coefficients of the polynomial, the highest first, but for the last 1;
 * -86, 86, 43, a word that is not read. */
void chiplm_pie_exp(float *v, uint32_t n, uint32_t most, const float *constants);

/* Returns the bits of sum8 of the n weights, none of which is -0, and makes each weight * scales[i]. Writes zeros after
 * the last, up to a multiple of 8 values. scales at a multiple of 4. */
uint32_t chiplm_pie_weigh(float *weights, const float *scales, uint32_t n);

/* sums[j] = the sum over t < n of shares[t] * values[t * d + j], d a multiple of 16. Shares are 0 to 127, n is 1 to 131,072;
 * zeros follow the last share up to a multiple of 16. All at multiples of 16. */
void chiplm_pie_mix(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *sums);

/* o[j] = ((float)sums[j] * scale) / total for n sums, a multiple of 4. inverse is 1 / total. The bits of three floats: scale in
 * 2^-60..2^60, total in 1..2^17. */
void chiplm_pie_divide(const int32_t *sums, uint32_t n, uint32_t scale, uint32_t total, uint32_t inverse, float *o);

/* ------------------------------------------------------------------------------------------------------ elementwise
 *
 * n is a multiple of 8 and not 0, floats and codes at multiples of 16, unless a comment says otherwise. What is written
 * may be what is read. */

/* The largest of the bits of abs(x[i]): above 0x7f800000 where one is a NaN. */
uint32_t chiplm_pie_top(const float *x, uint32_t n);

/* codes[i] = rne(x[i] * inverse), inverse being the bits of a float; zeros up to padded codes, a multiple of 4. The
 * largest magnitude times inverse rounds to 127 or less. */
void chiplm_pie_codes(const float *x, uint32_t n, uint32_t inverse, int8_t *codes, uint32_t padded);

/* sums[c] = the sum of the codes of chunk c, 32 each. sums at a multiple of 4. */
void chiplm_pie_sums(const int8_t *codes, uint32_t chunks, int32_t *sums);

/* The bits of sum8 of x[i] * x[i]. */
uint32_t chiplm_pie_squares(const float *x, uint32_t n);

/* y[i] = (x[i] * r) * gain[i]; r is the bits of a float. */
void chiplm_pie_gain(const float *x, uint32_t r, const float *gain, uint32_t n, float *y);

/* x[i] = x[i] + y[i]. */
void chiplm_pie_add(float *x, const float *y, uint32_t n);

/* y[i] = (y[i] + x[i] * a) * b; a and b are the bits of floats. n may be a multiple of 4. */
void chiplm_pie_blend(float *y, const float *x, uint32_t a, uint32_t b, uint32_t n);

/* gate[i] = gate[i] > 0 ? gate[i] * up[i] : 0. */
void chiplm_pie_gate(float *gate, const float *up, uint32_t n);

/* Turns the pairs (x[i], x[i + half]) by angles with these cosines and sines; half is a multiple of 2, and x, cosines and
 * sines are at multiples of 8. */
void chiplm_pie_rotate(float *x, uint32_t half, const float *cosines, const float *sines);

/* z[i] = -((x[i] * K1) * (1 + (x[i] * x[i]) * K2)), the argument of gelu's exp; constants are -K1 and K2. n may be a multiple
 * of 4. */
void chiplm_pie_gelu(const float *x, uint32_t n, float *z, const float *constants);

/* y[i] = -x[i]. */
void chiplm_pie_negate(const float *x, uint32_t n, float *y);

/* y[i] = (x[i] * (1 / (1 + exps[i]))) * by[i]; exps are in 0..2^124.5. guess is 0x7ef311c7, from which divisions start. n may be
 * a multiple of 4. */
void chiplm_pie_sigmoid(const float *x, const float *exps, const float *by, uint32_t n, float *y, uint32_t guess);

/* marks[i] |= 1 where gate[i] is above 0, or codes[i] is not 0; returns how many these are. n is a multiple of 16. */
uint32_t chiplm_pie_open(const float *gate, uint32_t n, uint8_t *marks);
uint32_t chiplm_pie_used(const int8_t *codes, uint32_t n, uint8_t *marks);

/* y = the 32 weights of each of some blocks of 4 bits, code * scale; scale is the bits of a float. */
void chiplm_pie_floats4(const uint8_t *codes, uint32_t blocks, uint32_t scale, float *y);

#endif
