/* product_x86.h: the products of AVX2 and AVX-512: which rows and inputs meet when. The layout is in product_sheet.h, the
 * loops over codes in the file of the path. */

/* ------------------------------------------------------------- calls of what is compiled for constants, by variables */

CHIPLM_INLINE void unpack_strip_as(bool apart, uint32_t bits, const lane_rows *rows, size_t bytes, uint8_t *out,
                                   size_t plane) {
    switch (bits) {
    case 2:
        unpack_strip_of(2, apart, rows, bytes, out, plane);
        break;
    case 4:
        unpack_strip_of(4, apart, rows, bytes, out, plane);
        break;
    default:
        unpack_strip_of(8, apart, rows, bytes, out, plane);
        break;
    }
}

static void unpack_strip(uint32_t bits, const lane_rows *rows, size_t bytes, uint8_t *out, size_t plane) {
    if (rows->apart) {
        unpack_strip_as(true, bits, rows, bytes, out, plane);
    } else {
        unpack_strip_as(false, bits, rows, bytes, out, plane);
    }
}

static void unpack_columns(uint32_t bits, const uint8_t *codes, uint32_t blocks, const size_t *columns, uint32_t quads,
                           uint8_t *out, size_t strip, size_t plane) {
    switch (bits) {
    case 2:
        unpack_columns_of(2, codes, blocks, columns, quads, out, strip, plane);
        break;
    case 4:
        unpack_columns_of(4, codes, blocks, columns, quads, out, strip, plane);
        break;
    default:
        unpack_columns_of(8, codes, blocks, columns, quads, out, strip, plane);
        break;
    }
}

CHIPLM_INLINE void few_as(uint32_t inputs, const work *k, const lane_rows *rows, float *const *to) {
    switch (k->p->w->bits) {
    case 2:
        few(inputs, 2, k, rows, to);
        break;
    case 4:
        few(inputs, 4, k, rows, to);
        break;
    default:
        few(inputs, 8, k, rows, to);
        break;
    }
}

static void run_few(const work *k, const lane_rows *rows, float *const *to) {
    switch (k->p->n) {
    case 1:
        few_as(1, k, rows, to);
        break;
    case 2:
        few_as(2, k, rows, to);
        break;
    case 3:
        few_as(3, k, rows, to);
        break;
    default:
        few_as(4, k, rows, to);
        break;
    }
}

/* --------------------------------------------------------------------------------------------------------- products */

/* A sheet of so many strips, of rows from first on, times all inputs, as many at a time as a pass takes. */
static void multiply_sheet(const work *k, uint32_t first, uint32_t strips) {
    float buffer[MOST * STRIPS * LANES];
    float *to[MOST];
    const uint32_t n = k->p->n;
    for (uint32_t at = 0; at < n;) {
        const uint32_t passes = (n - at + MOST - 1) / MOST;
        const uint32_t inputs = (n - at + passes - 1) / passes;
        for (uint32_t s = 0; s < strips;) {
            const bool whole = strips == STRIPS;
            const uint32_t wide = whole ? STRIPS : 1;
            const uint32_t row = first + s * LANES;
            const bool aside = places(k, at, inputs, row, wide, buffer, to);
            const uint8_t *codes = k->codes + s * k->strip;
            const float *scales = k->scales + s * k->scale_strip;
            run_tile(inputs, whole, k, codes, scales, at, to);
            if (aside) {
                spread(k, at, inputs, row, wide, buffer);
            }
            s += wide;
        }
        at += inputs;
    }
}

/* Rows one strip after the other, times a few inputs. Returns how many rows are done: whole strips, one after another. */
static uint32_t multiply_few(const work *k) {
    const chiplm_tensor *w = k->p->w;
    float *to[FEW];
    lane_rows rows;
    uint32_t first = 0;
    for (; k->p->list == NULL && k->count - first >= LANES; first += LANES) {
        find_rows(k, first, w->codes.at, w->stride, &rows);
        row_scales(k, first, k->scales);
        for (uint32_t i = 0; i < k->p->n; i++) {
            to[i] = k->p->y + k->p->which[i] * k->p->ldy + first;
        }
        run_few(k, &rows, to);
    }
    return first;
}

/* The columns of the strips are those of the matrix. */
static void whole_groups(work *k) {
    for (uint32_t g = 0; g < k->groups; g++) {
        k->ends[g] = g + 1 < k->groups ? (g + 1) * (k->p->w->group / QUAD) : k->quads;
    }
}

static void product(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    if ((p->list == NULL ? p->rows : p->listed) <= HANDFUL) {
        product_by_rows(p);
        return;
    }
    work k = begin(p);
    whole_groups(&k);
    lane_rows rows;
    uint32_t first = p->n <= FEW ? multiply_few(&k) : 0;
    while (first < k.count) {
        const uint32_t start = first;
        uint32_t strips = 0;
        for (; strips < STRIPS && first < k.count; strips++, first += LANES) {
            find_rows(&k, first, w->codes.at, w->stride, &rows);
            unpack_strip(w->bits, &rows, w->stride, k.codes + strips * k.strip, k.plane);
            row_scales(&k, first, k.scales + strips * k.scale_strip);
        }
        multiply_sheet(&k, start, strips);
    }
}

/* Lists the columns that are read, in quads that lie in one group each. A quad is filled up with a column that meets zeros:
 * those past the end of the inputs, or where columns are chosen and the codes of the inputs packed to match, zeros there. */
static void choose_columns(work *k) {
    const chiplm_product *p = k->p;
    const chiplm_tensor *w = p->w;
    if (p->list == NULL) {
        for (size_t c = 0; c < (size_t)k->quads * QUAD; c++) {
            k->columns[c] = (c < w->columns ? c : w->columns - 1) * w->stride;
        }
        whole_groups(k);
        return;
    }
    k->packed = k->room;
    uint32_t filled = 0;
    for (uint32_t g = 0, at = 0; g < k->groups; g++) {
        const uint32_t *list = p->list + at;
        uint32_t n = 0;
        while (at < p->listed && (g + 1 == k->groups || p->list[at] < (g + 1) * w->group)) {
            at++;
            n++;
        }
        const uint32_t whole = (n + QUAD - 1) / QUAD * QUAD;
        for (uint32_t c = 0; c < whole; c++) {
            k->columns[filled + c] = (size_t)list[c < n ? c : n - 1] * w->stride;
        }
        for (uint32_t i = 0; i < p->n; i++) {
            const int8_t *from = p->x.codes + p->which[i] * p->x.stride;
            int8_t *to = k->room + i * k->padded + filled;
            for (uint32_t c = 0; c < n; c++) {
                to[c] = from[list[c]];
            }
            memset(to + n, 0, whole - n);
        }
        filled += whole;
        k->ends[g] = filled / QUAD;
    }
    k->quads = filled / QUAD;
}

static void product_transposed(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    work k = begin(p);
    choose_columns(&k);
    const uint32_t from = p->first % w->block;
    const uint32_t per_block = 128 / w->bits;
    const uint8_t *codes = w->codes.at + (size_t)(p->first / w->block) * w->columns * w->stride;
    for (uint32_t first = 0; first < p->rows; first += STRIPS * LANES) {
        const uint32_t rows = p->rows - first < STRIPS * LANES ? p->rows - first : STRIPS * LANES;
        const uint32_t strips = (rows + LANES - 1) / LANES;
        unpack_columns(w->bits, codes + (from + first) / per_block * 16, (rows + per_block - 1) / per_block, k.columns,
                       k.quads, k.codes, k.strip, k.plane);
        for (uint32_t s = 0; s < strips; s++) {
            const uint32_t n = rows - s * LANES < LANES ? rows - s * LANES : LANES;
            column_scales(&k, p->first + first + s * LANES, n, k.scales + s * k.scale_strip);
        }
        multiply_sheet(&k, first, strips);
    }
}
