/* blocks.h: what attention does with blocks of SIDE positions of one head. A block is turned so that lanes are positions:
 * it holds a row of SIDE floats per element; a block of scores one per key, its lanes queries. So sums and maxima over
 * elements or keys run down columns, SIDE at a time, each in the order of docs/numerics.md. */

enum { SIDE = K_SIDE, PARTS = SIDE / SIMD_LANES }; /* a row of a block is PARTS vectors */

/* Rows of a product that are computed at a time: as many as the registers hold. */
#if SIMD_LANES == 16
enum { TALL = 16, OUTER = 8, OUTER_PARTS = 2 };
#elif SIMD_LANES > 1
enum { TALL = 4, OUTER = 4, OUTER_PARTS = PARTS };
#else
enum { TALL = 1, OUTER = 1, OUTER_PARTS = PARTS };
#endif

/* acc[i] = sum over p of a[i + p * ap] * b[p], b rows of SIDE; rows is a constant where this is called. */
SIMD_INLINE void side_tile(int rows, int64_t depth, const float *a, int64_t ap, const float *b, vf acc[TALL][PARTS]) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < PARTS; v++) acc[i][v] = v_all(0);
    for (int64_t p = 0; p < depth; p++, a += ap, b += SIDE) {
        vf x[PARTS];
        for (int v = 0; v < PARTS; v++) x[v] = v_load(b + v * SIMD_LANES);
        for (int i = 0; i < rows; i++) {
            vf f = v_all(a[i]);
            for (int v = 0; v < PARTS; v++) acc[i][v] = v_fma(f, x[v], acc[i][v]);
        }
    }
}

SIMD_INLINE void store_tile(int rows, vf acc[TALL][PARTS], float *c) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < PARTS; v++) v_store(c + i * SIDE + v * SIMD_LANES, acc[i][v]);
}

/* m rows of that, stored. */
SIMD_APART void side_product(int64_t m, int64_t depth, const float *a, int64_t ap, const float *b, float *c) {
    int64_t i = 0;
    vf acc[TALL][PARTS];
    for (; i + TALL <= m; i += TALL) {
        side_tile(TALL, depth, a + i, ap, b, acc);
        store_tile(TALL, acc, c + i * SIDE);
    }
    for (int64_t rest = m % TALL; rest > 0; rest--, i++) {
        side_tile(1, depth, a + i, ap, b, acc);
        store_tile(1, acc, c + i * SIDE);
    }
}

/* Products of codes, four of which make a word, where there are instructions for that. */
#if SIMD_PATH == SIMD_AVX512
enum { WORDS = 1 };

/* acc[i] = start[i] + sum of products of the signed bytes of a and the unsigned ones of b; start may be NULL. */
SIMD_INLINE void word_tile(int rows, int64_t depth, const int32_t *a, int64_t ap, const int32_t *b, const int32_t *start,
                           vf acc[TALL][PARTS]) {
    __m512i sum[TALL];
    for (int i = 0; i < rows; i++) sum[i] = start ? _mm512_set1_epi32(start[i]) : _mm512_setzero_si512();
    for (int64_t p = 0; p < depth; p++, a += ap, b += SIDE) {
        __m512i x = _mm512_loadu_si512(b);
        for (int i = 0; i < rows; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], x, _mm512_set1_epi32(a[i]));
    }
    for (int i = 0; i < rows; i++) acc[i][0] = _mm512_cvtepi32_ps(sum[i]);
}

/* Words of the bytes of four rows of numbers between 0 and 255, minus 128 when sign is set. The numbers come with
 * 0x1.8p23 added, which leaves them in the lowest bits; what shifts make of the high bits is known. */
SIMD_INLINE void pack_words(const vf x[4], int sign, int32_t *words) {
    __m512i w = _mm512_sub_epi32(_mm512_castps_si512(x[0]), _mm512_set1_epi32((int32_t)0x8b400000u));
    w = _mm512_add_epi32(w, _mm512_slli_epi32(_mm512_castps_si512(x[1]), 8));
    w = _mm512_add_epi32(w, _mm512_slli_epi32(_mm512_castps_si512(x[2]), 16));
    w = _mm512_add_epi32(w, _mm512_slli_epi32(_mm512_castps_si512(x[3]), 24));
    _mm512_storeu_si512(words, sign ? _mm512_xor_si512(w, _mm512_set1_epi32((int32_t)0x80808080u)) : w);
}
#else
enum { WORDS = 0 };

SIMD_INLINE void word_tile(int rows, int64_t depth, const int32_t *a, int64_t ap, const int32_t *b, const int32_t *start,
                           vf acc[TALL][PARTS]) {
    (void)rows, (void)depth, (void)a, (void)ap, (void)b, (void)start, (void)acc;
}

SIMD_INLINE void pack_words(const vf x[4], int sign, int32_t *words) { (void)x, (void)sign, (void)words; }
#endif

SIMD_APART void word_product(int64_t m, int64_t depth, const int32_t *a, int64_t ap, const int32_t *b, float *c) {
    int64_t i = 0;
    vf acc[TALL][PARTS];
    for (; i + TALL <= m; i += TALL) {
        word_tile(TALL, depth, a + i, ap, b, 0, acc);
        store_tile(TALL, acc, c + i * SIDE);
    }
    for (int64_t rest = m % TALL; rest > 0; rest--, i++) {
        word_tile(1, depth, a + i, ap, b, 0, acc);
        store_tile(1, acc, c + i * SIDE);
    }
}

/* c[t] = (load ? c[t] : 0) + sum over r of a[t * SIDE + r] * b[r]; rows of b and c hold n floats. rows and parts are
 * constants where this is called. */
SIMD_INLINE void outer_tile(int rows, int parts, const float *a, const float *b, int64_t n, float *c, int load) {
    vf acc[OUTER][OUTER_PARTS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < parts; v++) acc[i][v] = load ? v_load(c + i * n + v * SIMD_LANES) : v_all(0);
    for (int r = 0; r < SIDE; r++, b += n) {
        vf x[OUTER_PARTS];
        for (int v = 0; v < parts; v++) x[v] = v_load(b + v * SIMD_LANES);
        for (int i = 0; i < rows; i++) {
            vf f = v_all(a[i * SIDE + r]);
            for (int v = 0; v < parts; v++) acc[i][v] = v_fma(f, x[v], acc[i][v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < parts; v++) v_store(c + i * n + v * SIMD_LANES, acc[i][v]);
}

/* m rows of that, m and n multiples of SIDE. */
SIMD_APART void outer_product(int64_t m, const float *a, const float *b, int64_t n, float *c, int load) {
    int64_t j = 0, wide = OUTER_PARTS * SIMD_LANES;
    for (; j + wide <= n; j += wide)
        for (int64_t t = 0; t < m; t += OUTER) outer_tile(OUTER, OUTER_PARTS, a + t * SIDE, b + j, n, c + t * n + j, load);
    for (; j < n; j += SIDE)
        for (int64_t t = 0; t < m; t += OUTER) outer_tile(OUTER, PARTS, a + t * SIDE, b + j, n, c + t * n + j, load);
}

/* Joins partial sums, sum8 in every lane. */
SIMD_INLINE vf v_join8(const vf p[8]) { return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])); }

/* y, a block, from n rows x (no more than SIDE are read); what is past them is zero. */
SIMD_APART void rows_to_block(const float *x, int64_t ld, int64_t n, int64_t d, float *y) {
    if (n < SIDE) memset(y, 0, (size_t)(d * SIDE) * sizeof *y);
    for (int64_t r = 0; r < n && r < SIDE; r += SIMD_LANES, x += SIMD_LANES * ld, y += SIMD_LANES) {
        int64_t i = 0;
        vf t[SIMD_LANES];
        for (; n - r >= SIMD_LANES && i + SIMD_LANES <= d; i += SIMD_LANES) {
            for (int j = 0; j < SIMD_LANES; j++) t[j] = v_load(x + j * ld + i);
            v_transpose(t);
            for (int j = 0; j < SIMD_LANES; j++) v_store(y + (i + j) * SIDE, t[j]);
        }
        for (; i < d; i++)
            for (int j = 0; j < SIMD_LANES && j < n - r; j++) y[i * SIDE + j] = x[j * ld + i];
    }
}

/* n rows y (no more than SIDE are written) from the block x, times s when that is not NULL. */
SIMD_APART void block_to_rows(const float *x, const float *s, int64_t n, int64_t d, float *y, int64_t ld) {
    for (int64_t r = 0; r < n && r < SIDE; r += SIMD_LANES, x += SIMD_LANES, y += SIMD_LANES * ld) {
        int64_t i = 0;
        vf t[SIMD_LANES], f = s ? v_load(s + r) : v_all(1.0f);
        for (; n - r >= SIMD_LANES && i + SIMD_LANES <= d; i += SIMD_LANES) {
            for (int j = 0; j < SIMD_LANES; j++) t[j] = v_load(x + (i + j) * SIDE) * f;
            v_transpose(t);
            for (int j = 0; j < SIMD_LANES; j++) v_store(y + j * ld + i, t[j]);
        }
        for (; i < d; i++)
            for (int j = 0; j < SIMD_LANES && j < n - r; j++) y[j * ld + i] = s ? x[i * SIDE + j] * s[r + j] : x[i * SIDE + j];
    }
}

/* sum = sum8 of a * b down columns, at part v. */
SIMD_INLINE vf dot_columns(const float *a, const float *b, int64_t d) {
    vf p[8];
    for (int j = 0; j < 8; j++) p[j] = v_all(0);
    int64_t i = 0;
    for (; i + 8 <= d; i += 8, a += 8 * SIDE, b += 8 * SIDE) {
        SIMD_UNROLL
        for (int j = 0; j < 8; j++) p[j] = p[j] + v_load(a + j * SIDE) * v_load(b + j * SIDE);
    }
    SIMD_UNROLL
    for (int j = 0; j < 8; j++)
        if (i + j < d) p[j] = p[j] + v_load(a + j * SIDE) * v_load(b + j * SIDE);
    return v_join8(p);
}

/* inv = 1 / root mean square of columns of x. */
SIMD_APART void norm_block(const float *x, int64_t d, float eps, float *inv) {
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf mean = dot_columns(x + v, x + v, d) / v_all((float)d);
        v_store(inv + v, v_all(1.0f) / v_sqrt(mean + v_all(eps)));
    }
}

/* x = rotate(x * inv); inv may be NULL; co, si: [d/2, SIDE]. */
SIMD_APART void rotate_block(float *x, int64_t d, const float *inv, const float *co, const float *si) {
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        float *lo = x + v, *hi = x + d / 2 * SIDE + v;
        vf f = inv ? v_load(inv + v) : v_all(1.0f);
        for (int64_t i = 0; i < d / 2 * SIDE; i += SIDE) {
            vf a = v_load(lo + i) * f, b = v_load(hi + i) * f, c = v_load(co + i + v), s = v_load(si + i + v);
            v_store(lo + i, a * c - b * s);
            v_store(hi + i, a * s + b * c);
        }
    }
}

/* s = scales of vectors whose largest magnitudes are m, f = the factors that make their codes. */
RULE void scales(const float *restrict m, float *restrict s, float *restrict f) {
    for (int r = 0; r < SIDE; r++) {
        s[r] = m[r] < 0x1p-100f ? 0 : m[r] / 127.0f;
        f[r] = m[r] < 0x1p-100f ? 0 : 127.0f / m[r];
    }
}

/* Quantises the columns of x in place. words, when not NULL, gets the codes packed down columns: as they are with start,
 * which gets -128 times their sum, and without it plus 128. */
SIMD_APART void quantise_block(float *x, int64_t d, float *s, int32_t *words, int32_t *start) {
    float f[SIDE], m[SIDE];
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf top = v_all(0);
        for (int64_t i = 0; i < d; i++) top = v_maxabs(top, v_load(x + i * SIDE + v));
        v_store(m + v, top);
    }
    scales(m, s, f);
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf by = v_load(f + v), total = v_all(0);
        float *to = x + v;
        for (int64_t i = 0; i < d; i += 4, to += 4 * SIDE) {
            vf four[4];
            SIMD_UNROLL
            for (int j = 0; j < 4; j++) {
                four[j] = v_all(0x1.8p23f + 128.0f);
                if (i + j >= d) continue;
                four[j] = v_max(v_load(to + j * SIDE) * by, v_all(-127.0f)) + v_all(0x1.8p23f); /* NaN becomes -127 */
                vf code = four[j] - v_all(0x1.8p23f);
                v_store(to + j * SIDE, code);
                total = total + code;
                four[j] = four[j] + v_all(128.0f);
            }
            if (words) pack_words(four, start != 0, words + i / 4 * SIDE);
        }
        if (start) v_store(m + v, total);
    }
    for (int r = 0; r < SIDE && start; r++) start[r] = -128 * (int32_t)m[r];
}
