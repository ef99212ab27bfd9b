/* product_pie.h: products with the kernels of pie/pie.h.
 *
 * Rows are computed for one vector at a time. With several vectors a tile of rows goes through all of them before the next:
 * it then comes from the data cache, and what slow memory is read for is read once. Sharing the unpacked weights too would
 * save 2 of the 4 instructions that 32 weights take, but each vector wants its own sums, of which the unit has one: they
 * would have to be read and cleared for every group and vector all the same. */

#include "pie/pie.h"

enum {
    TILE_BYTES = 16384, /* of codes, a quarter of the data cache */
    FLOATS = 256,       /* scales that are widened at a time, unless a row has more */
};

/* Scratch, one behind the other, at multiples of 64. padded is that of the model's widest input, and of any matrix. */
typedef struct pie_scratch {
    float *floats;   /* [larger of padded, groups and FLOATS] widened scales */
    int32_t *sums;   /* [padded] of a transposed product */
    int32_t *more;   /* [padded] */
    uint32_t *list;  /* [CHIPLM_PIE_COLUMNS] */
    chiplm_pie_work *work;
} pie_scratch;

static uint64_t scratch_bytes(uint32_t batch, uint64_t padded, uint64_t groups) {
    (void)batch;
    uint64_t floats = padded > groups ? padded : groups;
    floats = floats > FLOATS ? floats : FLOATS;
    return (floats * sizeof(float) + 63) / 64 * 64 + 2 * padded * sizeof(int32_t) + CHIPLM_PIE_COLUMNS * sizeof(uint32_t) +
           sizeof(chiplm_pie_work);
}

/* For a product whose scales, widened at a time, are count at most. */
static pie_scratch divide(void *scratch, size_t count, size_t padded) {
    pie_scratch s;
    const size_t floats = count > FLOATS ? count : FLOATS;
    s.floats = scratch;
    s.sums = (int32_t *)(void *)((uint8_t *)scratch + (floats * sizeof(float) + 63) / 64 * 64);
    s.more = s.sums + padded;
    s.list = (uint32_t *)(void *)(s.more + padded);
    s.work = (chiplm_pie_work *)(void *)(s.list + CHIPLM_PIE_COLUMNS);
    return s;
}

/* The scales from index on, n of them, as floats. */
static const float *scales_from(const chiplm_tensor *w, size_t index, uint32_t n, float *floats) {
    if (w->scale_type == CHIPLM_F32) {
        return (const float *)(const void *)w->scales.at + index;
    }
    chiplm_pie_widen((const uint16_t *)(const void *)w->scales.at + index, floats, n);
    return floats;
}

/* The columns that share a scale, of a matrix of 4 bits whose rows have a kernel of their own; else 0. */
static uint32_t fixed_group(const chiplm_tensor *w) {
    if (w->bits != 4) {
        return 0;
    }
    if (w->stride == 32 && w->groups == 1) {
        return 64;
    }
    return w->stride != 64 ? 0 : w->groups == 1 ? 128 : w->groups == 2 ? 64 : 0;
}

/* Rows one after the other, from those codes and scales on, times one vector. */
static void multiply_rows(const chiplm_tensor *w, const uint8_t *codes, const float *scales, uint32_t rows, const int8_t *x,
                          float scale, float *y) {
    const uint32_t bits = chiplm_bits(scale);
    switch (fixed_group(w)) {
    case 64:
        if (w->groups == 1) {
            chiplm_pie_rows4_c64g64(codes, scales, x, y, rows, bits);
        } else {
            chiplm_pie_rows4_c128g64(codes, scales, x, y, rows, bits);
        }
        return;
    case 128:
        chiplm_pie_rows4_c128g128(codes, scales, x, y, rows, bits);
        return;
    default:
        break;
    }
    const chiplm_pie_rows shape = {
        .rows = rows, .blocks = w->stride / 16, .group = w->groups == 1 ? 0 : w->group, .groups = w->groups, .scale = bits};
    switch (w->bits) {
    case 2:
        chiplm_pie_rows2(codes, scales, x, y, &shape);
        break;
    case 4:
        chiplm_pie_rows4(codes, scales, x, y, &shape);
        break;
    default: /* 8 */
        chiplm_pie_rows8(codes, scales, x, y, &shape);
        break;
    }
}

/* Rows that a list names, counted from first. Those that follow each other go together. */
static void multiply_listed(const chiplm_product *p, const uint32_t *list, uint32_t count, size_t b, float *floats) {
    const chiplm_tensor *w = p->w;
    const int8_t *x = p->x.codes + b * p->x.stride;
    const uint8_t *codes = w->codes.at + (size_t)p->first * w->stride;
    float *y = p->y + b * p->ldy;
    if (fixed_group(w) == 64 && w->groups == 2 && w->scale_type == CHIPLM_F32) {
        const chiplm_pie_listed shape = {.count = count, .scale = chiplm_bits(p->x.scales[b])};
        chiplm_pie_listed4_c128g64(codes, scales_from(w, (size_t)p->first * 2, 0, floats), x, y, list, &shape);
        return;
    }
    const uint32_t most = FLOATS / w->groups > 0 ? FLOATS / w->groups : 1;
    for (uint32_t k = 0, n; k < count; k += n) {
        const size_t r = list[k];
        for (n = 1; n < most && k + n < count && list[k + n] == r + n;) {
            n++;
        }
        const float *scales = scales_from(w, (p->first + r) * w->groups, n * w->groups, floats);
        multiply_rows(w, codes + r * w->stride, scales, n, x, p->x.scales[b], y + r);
    }
}

static void product(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const pie_scratch s = divide(p->scratch, w->groups, 0);
    const uint32_t count = p->list == NULL ? p->rows : p->listed;
    uint32_t tile = p->n == 1 ? count : TILE_BYTES / w->stride;
    if (w->scale_type != CHIPLM_F32 && tile > FLOATS / w->groups) {
        tile = FLOATS / w->groups;
    }
    tile = tile > 0 ? tile : 1;
    for (uint32_t k = 0; k < count; k += tile) {
        const uint32_t n = count - k < tile ? count - k : tile;
        const size_t row = (size_t)p->first + k;
        const float *scales = p->list == NULL ? scales_from(w, row * w->groups, n * w->groups, s.floats) : NULL;
        for (uint32_t i = 0; i < p->n; i++) {
            const size_t b = p->which[i];
            if (p->list != NULL) {
                multiply_listed(p, p->list + k, n, b, s.floats);
                continue;
            }
            multiply_rows(w, w->codes.at + row * w->stride, scales, n, p->x.codes + b * p->x.stride, p->x.scales[b],
                          p->y + b * p->ldy + k);
        }
    }
}

#include "product_columns.h"

/* Writes the numbers of the columns from place k of the list on that lie in group g and go into one call; returns how many. */
static uint32_t take_columns(const chiplm_product *p, uint32_t k, uint32_t count, uint32_t group, uint32_t g, uint32_t *list) {
    uint32_t n = 0;
    for (; n < CHIPLM_PIE_COLUMNS && k + n < count; n++) {
        list[n] = p->list == NULL ? k + n : p->list[k + n];
        if (list[n] / group != g) {
            break;
        }
    }
    return n;
}

/* A group of which no column is read has the sum 0, and adding 0 to a sum that started at +0 changes nothing. Where the listed
 * columns of a group fit one call and rows are whole blocks, their sums go to y at once; else they are added up first. */
static void product_transposed(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    if (w->bits != 4) {
        product_by_columns(p);
        return;
    }
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    const uint32_t block = p->first / w->block; /* an expert */
    const uint32_t from = p->first % w->block;
    const size_t padded = ((size_t)p->rows + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    const pie_scratch s = divide(p->scratch, p->rows, padded);
    const uint8_t *codes = w->codes.at + (size_t)block * w->columns * w->stride + from / 32 * 16;
    const chiplm_pie_columns shape = {.blocks = (p->rows + 31) / 32, .stride = w->stride};
    const uint32_t count = p->list == NULL ? w->columns : p->listed;
    for (uint32_t i = 0; i < p->n; i++) {
        const size_t b = p->which[i];
        const int8_t *x = p->x.codes + b * p->x.stride;
        float *y = p->y + b * p->ldy;
        memset(y, 0, p->rows * sizeof *y);
        for (uint32_t k = 0, n; k < count;) {
            const uint32_t g = (p->list == NULL ? k : p->list[k]) / group;
            const size_t at = ((size_t)block * w->groups + g) * w->block + from;
            const float *scales = scales_from(w, at, p->rows, s.floats);
            n = take_columns(p, k, count, group, g, s.list);
            k += n;
            const bool whole = k == count || (p->list == NULL ? k : p->list[k]) / group != g;
            if (whole && p->rows % 32 == 0 && ((uintptr_t)y | (uintptr_t)scales) % 16 == 0) {
                s.work->count = n;
                s.work->blocks = shape.blocks;
                s.work->stride = shape.stride;
                chiplm_pie_add_columns4(codes, s.list, x, scales, y, s.work);
                continue;
            }
            chiplm_pie_columns now = shape;
            now.count = n;
            chiplm_pie_columns4(codes, s.list, x, s.work->scratch, s.sums, &now);
            while ((n = take_columns(p, k, count, group, g, s.list)) > 0) {
                k += n;
                now.count = n;
                chiplm_pie_columns4(codes, s.list, x, s.work->scratch, s.more, &now);
                chiplm_pie_add_sums(s.sums, s.more, 32 * shape.blocks);
            }
            chiplm_pie_add_group(s.sums, scales, y, p->rows);
        }
        chiplm_pie_scale(y, p->rows, chiplm_bits(p->x.scales[b]));
    }
}
