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

/* The sum of the 32 codes of 4 bits of a block times lanes, columns 0 to 31 in their order. Both at multiples of 16. */
int32_t chiplm_pie_block_dot(const uint8_t *block, const int16_t *lanes);

#endif
