/* gemm.h: products of float matrices, for matrices of any size whose inner loops fit a cache.
 *
 * Every element of the result is one chain of fused multiply-adds in ascending order of the inner index, so that all
 * paths agree to the bit, and a product does not depend on how it is cut into blocks. */

/* A tile of ROWS x VECTORS vectors of the result is held in registers. */
#if SIMD_PATH == SIMD_AVX512
enum { ROWS = 6, VECTORS = 4 };
#elif SIMD_PATH == SIMD_AVX2
enum { ROWS = 6, VECTORS = 2 };
#elif SIMD_PATH == SIMD_NEON
enum { ROWS = 6, VECTORS = 4 };
#else
enum { ROWS = 1, VECTORS = 1 };
#endif
enum {
    LANES = SIMD_LANES,
    COLUMNS = LANES * VECTORS, /* of a panel: what a tile spans */
    DEPTH = 128,               /* of the inner index, a block: a panel of it fits the nearest cache */
    STRIP = 8 * ROWS,          /* rows of the left operand that are taken together */
    WIDTH = 128,               /* columns of the right operand that are copied together */
    FEW = 128,                 /* rows up to which such a copy is not worth its time */
    PAGE = 1024,               /* a stride of so many floats puts all rows on the same places of a cache */
    LINE = 16                  /* floats of a cache line */
};

/* c[rows, vectors] = (load ? c : 0) + a b over depth; a(i, p) = a[i * ai + p * ap]. rows and vectors are constants where
 * this is called, so that the tile stays in registers. */
SIMD_INLINE void tile(int rows, int vectors, int64_t depth, const float *a, int64_t ai, int64_t ap, const float *b,
                      int64_t ldb, float *c, int64_t ldc, int load) {
    vf acc[ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) acc[i][v] = load ? v_load(c + i * ldc + v * LANES) : v_all(0);
    while (depth > 0) {
        int64_t some = depth < LINE ? depth : LINE;
        depth -= some;
        if (ap == 1) /* the next tile's rows, a cache line of each */
            for (int i = 0; i < rows; i++) __builtin_prefetch(a + (i + rows) * ai);
        for (; some > 0; some--, a += ap, b += ldb) {
            vf x[VECTORS];
            for (int v = 0; v < vectors; v++) x[v] = v_load(b + v * LANES);
            for (int i = 0; i < rows; i++) {
                vf f = v_all(a[i * ai]);
                for (int v = 0; v < vectors; v++) acc[i][v] = v_fma(f, x[v], acc[i][v]);
            }
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) v_store(c + i * ldc + v * LANES, acc[i][v]);
}

/* All rows of one panel of columns: vectors is a constant where this is called. */
SIMD_INLINE void panel(int vectors, int64_t m, int64_t depth, const float *a, int64_t ai, int64_t ap, const float *b,
                       int64_t ldb, float *c, int64_t ldc, int load) {
    int64_t i = 0;
    for (; i + ROWS <= m; i += ROWS) tile(ROWS, vectors, depth, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, load);
    a += i * ai, c += i * ldc;
    switch (m - i) {
#if SIMD_LANES > 1
    case 1: tile(1, vectors, depth, a, ai, ap, b, ldb, c, ldc, load); break;
    case 2: tile(2, vectors, depth, a, ai, ap, b, ldb, c, ldc, load); break;
    case 3: tile(3, vectors, depth, a, ai, ap, b, ldb, c, ldc, load); break;
    case 4: tile(4, vectors, depth, a, ai, ap, b, ldb, c, ldc, load); break;
    case 5: tile(5, vectors, depth, a, ai, ap, b, ldb, c, ldc, load); break;
#endif
    }
}

/* Columns of the right operand as panel reads them: panel j is at data + j * step, its rows ld apart. */
struct right {
    const float *data;
    int64_t ld, step;
};

/* c[m, width] += a b over one block of the inner index; width is a number of whole vectors. */
static void block(int64_t m, int64_t width, int64_t depth, const float *a, int64_t ai, int64_t ap, struct right b, float *c,
                  int64_t ldc, int load) {
    for (; width >= COLUMNS; width -= COLUMNS, b.data += b.step, c += COLUMNS)
        panel(VECTORS, m, depth, a, ai, ap, b.data, b.ld, c, ldc, load);
    switch (width / LANES) {
#if SIMD_LANES > 1
    case 1: panel(1, m, depth, a, ai, ap, b.data, b.ld, c, ldc, load); break;
#endif
#if SIMD_LANES == 4 || SIMD_LANES == 16
    case 2: panel(2, m, depth, a, ai, ap, b.data, b.ld, c, ldc, load); break;
    case 3: panel(3, m, depth, a, ai, ap, b.data, b.ld, c, ldc, load); break;
#endif
    }
}

/* Copies width columns of op(b), whole vectors. Rows of a large matrix collide in a cache by their stride. */
static struct right copy_right(int tb, const float *b, int64_t ldb, int64_t depth, int64_t width, float *to) {
    struct right r = {to, COLUMNS, depth * COLUMNS};
    for (int64_t j = 0; j < width; j += COLUMNS, to += r.step) {
        int64_t n = width - j < COLUMNS ? width - j : COLUMNS;
        for (int64_t p = 0; p < depth; p++) {
            float *row = to + p * COLUMNS;
            if (tb)
                for (int64_t q = 0; q < n; q++) row[q] = b[(j + q) * ldb + p];
            else
                for (int64_t q = 0; q < n; q += LANES) v_store(row + q, v_load(b + p * ldb + j + q));
        }
    }
    return r;
}

/* Copies width columns of activations that are quantised row by row, as code times scale. */
static struct right copy_codes(const uint8_t *codes, int64_t ld, const float *scales, int64_t depth, int64_t width, float *to) {
    struct right r = {to, COLUMNS, depth * COLUMNS};
    for (int64_t j = 0; j < width; j += COLUMNS, to += r.step) {
        int64_t n = width - j < COLUMNS ? width - j : COLUMNS;
        for (int64_t p = 0; p < depth; p++) {
            const uint8_t *from = codes + p * ld + j;
            float *row = to + p * COLUMNS, s = scales[p];
            if (n == COLUMNS) /* a constant, so that the loop is unrolled */
                for (int q = 0; q < COLUMNS; q++) row[q] = (float)(from[q] - 128) * s;
            else
                for (int64_t q = 0; q < n; q++) row[q] = (float)(from[q] - 128) * s;
        }
    }
    return r;
}

/* Copies rows columns of a, of depth rows, to rows of STRIP floats. */
static void copy_left(const float *a, int64_t lda, int64_t depth, int64_t rows, float *to) {
    int64_t whole = rows / LANES * LANES;
    for (int64_t p = 0; p < depth; p++, a += lda, to += STRIP) {
        if (whole == STRIP) /* a constant, so that the loop is unrolled */
            for (int v = 0; v < STRIP; v += LANES) v_store(to + v, v_load(a + v));
        else
            for (int64_t v = 0; v < whole; v += LANES) v_store(to + v, v_load(a + v));
        for (int64_t v = whole; v < rows; v++) to[v] = a[v];
    }
}

/* The last columns, fewer than a vector holds. */
static void narrow(int64_t m, int64_t n, int64_t depth, const float *a, int64_t ai, int64_t ap, const float *b, int64_t bj,
                   int64_t bp, float *c, int64_t ldc, int load) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = load ? c[i * ldc + j] : 0;
            for (int64_t p = 0; p < depth; p++) sum = fmaf(a[i * ai + p * ap], b[j * bj + p * bp], sum);
            c[i * ldc + j] = sum;
        }
}

/* The right operand: floats, or the codes of activations with a scale for each row. */
struct operand {
    const float *data;
    const uint8_t *codes;
    const float *scales;
    int64_t ld;
};

/* One block of the inner index for up to WIDTH columns. */
static void blocks(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t depth, const float *a, int64_t lda, struct operand b,
                   float *c, int64_t ldc, int load) {
    _Alignas(64) float copy[DEPTH * WIDTH];
    _Alignas(64) float left[DEPTH * STRIP]; /* a vector across two cache lines takes two reads */
    int64_t whole = n / LANES * LANES, rest = n - whole, ai = ta ? 1 : lda, ap = ta ? lda : 1;
    struct right right = {b.data, b.ld, COLUMNS};
    if (b.codes)
        right = copy_codes(b.codes, b.ld, b.scales, depth, whole, copy);
    else if (tb || m > FEW)
        right = copy_right(tb, b.data, b.ld, depth, whole, copy);
    for (int64_t i = 0; i < m; i += STRIP) {
        int64_t rows = m - i < STRIP ? m - i : STRIP;
        if (ta) { /* down the columns of a, too */
            copy_left(a + i, lda, depth, rows, left);
            block(rows, whole, depth, left, 1, STRIP, right, c + i * ldc, ldc, load);
        } else if (lda % PAGE == 0 && n > COLUMNS) { /* its rows collide */
            for (int64_t r = 0; r < rows; r++) memcpy(left + r * DEPTH, a + (i + r) * lda, (size_t)depth * sizeof *a);
            block(rows, whole, depth, left, DEPTH, 1, right, c + i * ldc, ldc, load);
        } else {
            block(rows, whole, depth, a + i * lda, lda, 1, right, c + i * ldc, ldc, load);
        }
    }
    if (!rest) return;
    if (b.codes) {
        for (int64_t p = 0; p < depth; p++)
            for (int64_t q = 0; q < rest; q++) left[p * rest + q] = (float)(b.codes[p * b.ld + whole + q] - 128) * b.scales[p];
        narrow(m, rest, depth, a, ai, ap, left, 1, rest, c + whole, ldc, load);
    } else {
        int64_t bj = tb ? b.ld : 1;
        narrow(m, rest, depth, a, ai, ap, b.data + whole * bj, bj, tb ? 1 : b.ld, c + whole, ldc, load);
    }
}

static void gemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                 int64_t ldb, int32_t add, float *c, int64_t ldc) {
    for (int64_t j = 0; j < n; j += WIDTH) {
        int64_t width = n - j < WIDTH ? n - j : WIDTH, p = 0;
        do {
            int64_t depth = k - p < DEPTH ? k - p : DEPTH;
            struct operand right = {b + (tb ? j * ldb + p : p * ldb + j), 0, 0, ldb};
            blocks(ta, tb, m, width, depth, a + (ta ? p * lda : p), lda, right, c + j, ldc, add || p > 0);
            p += depth;
        } while (p < k);
    }
}

static void gemm_codes(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const uint8_t *codes, const float *scales,
                       int32_t add, float *c, int64_t ldc) {
    int64_t ld = (n + 3) / 4 * 4;
    for (int64_t j = 0; j < n; j += WIDTH) {
        int64_t width = n - j < WIDTH ? n - j : WIDTH;
        for (int64_t p = 0; p < k; p += DEPTH) {
            int64_t depth = k - p < DEPTH ? k - p : DEPTH;
            struct operand right = {0, codes + p * ld + j, scales + p, ld};
            blocks(1, 0, m, width, depth, a + p * lda, lda, right, c + j, ldc, add || p > 0);
        }
    }
}
