/* product_sheet.h: the layout in which AVX2 and AVX-512 multiply.
 *
 * Sixteen rows make a strip, and four strips a sheet. The codes of a strip are laid out with rows in the lanes of vectors:
 * four consecutive codes of a row, a quad, lie together, since the instructions multiply neighbouring bytes and add them
 * up. A quad of an input, broadcast, then meets sixteen rows at once, and all that follows in floats has rows in its lanes
 * as well. The instructions take one operand unsigned: the weights, as code + 2, 8 or 128. What that adds is taken back
 * through the sum of the input's codes, which the sums of the groups start from.
 *
 * Matrices that are stored transposed are laid out the same way, a quad being four columns that are read; the inputs' codes
 * are then packed to match. A few inputs do without a sheet: a matrix stored by rows is unpacked in registers for them. */

enum { LANES = 16, STRIPS = 4, QUAD = 4, HANDFUL = 2 };

/* A product in work. Of a path: PLANES, the strips that a strip of 8-bit codes takes; MOST, the inputs that one pass over a
 * sheet takes; FEW, those that do without. */
typedef struct work {
    const chiplm_product *p;
    uint32_t count;    /* rows to compute: all, or those that are listed */
    uint32_t groups;
    uint32_t quads;    /* of a row in a strip */
    uint32_t *ends;    /* [groups] the quad before which each group ends */
    int32_t *starts;   /* [n, groups] what sums of codes start from */
    size_t *columns;   /* [4 * quads] where the columns of a transposed matrix start that are read */
    int8_t *room;      /* [n, padded] for the codes of these columns */
    const int8_t *packed; /* room, or null: inputs are as they are */
    size_t padded;
    float *scales;     /* [STRIPS, groups, LANES] groups rounded up to a quad */
    float *raw;        /* [LANES, groups] and a quad more: scales before they are turned */
    uint8_t *codes;    /* [STRIPS, PLANES, quads, LANES, QUAD] */
    size_t plane, strip, scale_strip;
} work;

static uint64_t rounded(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* Where the parts of the scratch start, in bytes, and their end. */
typedef struct parts {
    uint64_t starts, ends, columns, packed, scales, raw, codes, total;
} parts;

static uint64_t take(parts *r, uint64_t bytes) {
    const uint64_t at = r->total;
    r->total += rounded(bytes, 64);
    return at;
}

static parts parts_for(uint64_t n, uint64_t padded, uint64_t groups) {
    parts r = {0};
    r.starts = take(&r, n * groups * sizeof(int32_t));
    r.ends = take(&r, groups * sizeof(uint32_t));
    r.columns = take(&r, padded * sizeof(size_t));
    r.packed = take(&r, n * padded);
    r.scales = take(&r, STRIPS * rounded(groups, QUAD) * LANES * sizeof(float));
    r.raw = take(&r, (LANES * groups + QUAD) * sizeof(float));
    r.codes = take(&r, STRIPS * PLANES * LANES * padded);
    return r;
}

static uint64_t scratch_bytes(uint32_t batch, uint64_t padded, uint64_t groups) {
    return parts_for(batch, padded, groups).total;
}

static work begin(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const size_t padded = (size_t)rounded(w->columns, CHIPLM_PAD);
    const parts r = parts_for(p->n, padded, w->groups);
    uint8_t *base = p->scratch;
    work k = {
        .p = p,
        .count = p->list != NULL && w->block == 0 ? p->listed : p->rows,
        .groups = w->groups,
        .quads = (w->columns + QUAD - 1) / QUAD,
        .ends = (void *)(base + r.ends),
        .starts = (void *)(base + r.starts),
        .columns = (void *)(base + r.columns),
        .room = (void *)(base + r.packed),
        .padded = padded,
        .scales = (void *)(base + r.scales),
        .raw = (void *)(base + r.raw),
        .codes = base + r.codes,
        .plane = padded * LANES,
        .strip = padded * LANES * PLANES,
        .scale_strip = (size_t)rounded(w->groups, QUAD) * LANES,
    };
    const size_t chunks = ((size_t)w->columns + CHIPLM_CHUNK - 1) / CHIPLM_CHUNK;
    const size_t per_group = k.groups == 1 ? chunks : w->group / CHIPLM_CHUNK;
    const int32_t offset = 1 << (w->bits - 1);
    for (uint32_t i = 0; i < p->n; i++) {
        const int32_t *sums = p->x.sums + p->which[i] * (p->x.stride / CHIPLM_CHUNK);
        for (uint32_t g = 0; g < k.groups; g++) {
            int32_t sum = 0;
            for (size_t c = g * per_group; c < (g + 1) * per_group && c < chunks; c++) {
                sum += sums[c];
            }
            k.starts[i * k.groups + g] = -sum * offset;
        }
    }
    return k;
}

/* The codes of input i, in the order of the strips. */
static const int8_t *input(const work *k, uint32_t i) {
    return k->packed != NULL ? k->packed + i * k->padded : k->p->x.codes + k->p->which[i] * k->p->x.stride;
}

/* ------------------------------------------------------------------------------------------- scales, and rows by list */

/* Sets n floats to the scales from index on. */
static void widen(const chiplm_tensor *w, size_t index, size_t n, float *to) {
    if (w->scale_type == CHIPLM_F32) {
        memcpy(to, w->scales.at + index * sizeof *to, n * sizeof *to);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i] = scale_at(w, index + i);
    }
}

/* Where the bytes of the rows of a strip start: apart, or one after the other. */
typedef struct lane_rows {
    bool apart;
    const uint8_t *first;
    size_t stride;
    const uint8_t *at[LANES];
} lane_rows;

/* apart is constant where this is called. */
CHIPLM_INLINE const uint8_t *row_at(bool apart, const lane_rows *rows, size_t r) {
    return apart ? rows->at[r] : rows->first + r * rows->stride;
}

/* Sets rows to the first n of an array, or all lanes if there are more. Lanes that are left over repeat the last. */
CHIPLM_INLINE void rows_from(const uint8_t *array, size_t stride, uint32_t n, lane_rows *rows) {
    rows->apart = n < LANES;
    rows->first = array;
    rows->stride = stride;
    for (uint32_t r = 0; rows->apart && r < LANES; r++) {
        rows->at[r] = array + (size_t)(r < n ? r : n - 1) * stride;
    }
}

/* Sets rows to those of a strip, from the first-th of those to compute on, in an array of stride bytes a row. */
CHIPLM_INLINE void find_rows(const work *k, uint32_t first, const uint8_t *array, size_t stride, lane_rows *rows) {
    const chiplm_product *p = k->p;
    const uint32_t n = k->count - first < LANES ? k->count - first : LANES;
    array += (size_t)p->first * stride;
    if (p->list == NULL) {
        rows_from(array + first * stride, stride, n, rows);
        return;
    }
    rows->apart = true;
    rows->first = array;
    rows->stride = stride;
    for (uint32_t r = 0; r < LANES; r++) {
        rows->at[r] = array + (size_t)p->list[first + (r < n ? r : n - 1)] * stride;
    }
}

/* Of a path: turns scales of rows, [LANES, groups], to [groups, LANES]. Reads and writes whole quads of groups, but one or
 * two groups of rows that are not apart are read alone. */
static void turn(const lane_rows *rows, uint32_t groups, float *to);

/* The scales of the rows of a strip. */
static void row_scales(const work *k, uint32_t first, float *to) {
    const chiplm_tensor *w = k->p->w;
    const bool is_f32 = w->scale_type == CHIPLM_F32;
    const size_t width = is_f32 ? sizeof(float) : sizeof(uint16_t);
    lane_rows rows;
    find_rows(k, first, w->scales.at, width * k->groups, &rows);
    const bool exact = !rows.apart && k->groups <= 2; /* then turn reads nothing past the end */
    const size_t left = (size_t)(w->scales.at + w->scales.bytes - row_at(rows.apart, &rows, LANES - 1));
    if (!is_f32 || (!exact && left < rounded(k->groups, QUAD) * width)) {
        for (size_t r = 0; r < LANES; r++) {
            const size_t at = (size_t)(row_at(rows.apart, &rows, r) - w->scales.at) / width;
            widen(w, at, k->groups, k->raw + r * k->groups);
        }
        rows.apart = false;
        rows.first = (const uint8_t *)k->raw;
        rows.stride = k->groups * sizeof(float);
    }
    turn(&rows, k->groups, to);
}

/* The scales of n rows from row on, LANES at most, of a transposed matrix. */
static void column_scales(const work *k, uint32_t row, uint32_t n, float *to) {
    const chiplm_tensor *w = k->p->w;
    const size_t block = (size_t)(row / w->block) * w->block * k->groups + row % w->block;
    for (uint32_t g = 0; g < k->groups; g++, to += LANES) {
        const size_t at = block + (size_t)g * w->block;
        if (n == LANES && w->scale_type == CHIPLM_F32) { /* a copy of constant size takes an instruction or two */
            memcpy(to, w->scales.at + at * sizeof *to, LANES * sizeof *to);
            continue;
        }
        widen(w, at, n, to);
        memset(to + n, 0, (LANES - n) * sizeof *to);
    }
}

/* ------------------------------------------------------------------------------------------------------ the results */

/* Where the results of inputs at .. at + inputs go, for strips of rows from first on: straight to y if they fill the
 * strips, else to a buffer. Returns whether it was the buffer. */
static bool places(const work *k, uint32_t at, uint32_t inputs, uint32_t first, uint32_t strips, float *buffer, float **to) {
    const chiplm_product *p = k->p;
    const bool aside = k->count - first < strips * LANES || (p->list != NULL && p->w->block == 0);
    for (uint32_t i = 0; i < inputs; i++) {
        to[i] = aside ? buffer + (size_t)i * strips * LANES : p->y + p->which[at + i] * p->ldy + first;
    }
    return aside;
}

/* Brings results from the buffer to y. */
static void spread(const work *k, uint32_t at, uint32_t inputs, uint32_t first, uint32_t strips, const float *buffer) {
    const chiplm_product *p = k->p;
    const uint32_t rows = k->count - first < strips * LANES ? k->count - first : strips * LANES;
    for (uint32_t i = 0; i < inputs; i++, buffer += (size_t)strips * LANES) {
        float *y = p->y + p->which[at + i] * p->ldy;
        if (p->list == NULL || p->w->block != 0) {
            memcpy(y + first, buffer, rows * sizeof *y);
            continue;
        }
        for (uint32_t r = 0; r < rows; r++) {
            y[p->list[first + r]] = buffer[r];
        }
    }
}
