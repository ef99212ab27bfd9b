/* attention_avx512.h: dots of queries and keys, and sums of values, with AVX-512 VNNI, for all queries at once.
 *
 * Both take blocks of 16 elements of 16 positions. A dot has positions in its lanes, like a product with keys for rows; keys
 * are made unsigned, and what that adds is taken back. A sum of values has elements in its lanes and adds up four positions
 * in each at a time; shares are not negative. Elements beyond whole blocks take a block that ends with them, which meets
 * zeros where it overlaps the one before. Heads of 8 elements count as rows of two positions; other widths below 16 take
 * plain loops. Nothing is read past the last position: lanes beyond it repeat it.
 *
 * The number of queries, many, is constant where the inline functions are called, so that sums stay in registers. */

enum { QUERIES = 4 };

/* What the dots of a query start from, for keys as code + 128. */
static int32_t dot_start(const int8_t *query, uint32_t d) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < d; i++) {
        sum += query[i];
    }
    return -128 * sum;
}

CHIPLM_INLINE __m512i unsigned_codes(__m512i codes) { return _mm512_xor_si512(codes, _mm512_set1_epi8(-128)); }

/* Adds a block of the queries, stride bytes apart, times bytes at.. of the keys of 16 rows. */
CHIPLM_INLINE void add_block(uint32_t many, bool apart, const lane_rows *rows, size_t at, const int8_t *block, size_t stride,
                             __m512i *sums) {
    __m512i v[4];
    gather(apart, rows, at, v);
    for (uint32_t j = 0; j < 4; j++) {
        const __m512i keys = unsigned_codes(v[j]);
        for (uint32_t i = 0; i < many; i++) {
            add_products(&sums[i], keys, broadcast_quad(block + i * stride + QUAD * j));
        }
    }
}

/* Queries of d >= 16 elements times the keys of 16 rows. last holds the elements beyond whole blocks, behind zeros. */
CHIPLM_INLINE void row_dots(uint32_t many, bool apart, const lane_rows *rows, const chiplm_queries *q, uint32_t d,
                            const int8_t *last, const int32_t *starts, int32_t *out, size_t columns) {
    __m512i sums[QUERIES];
    for (uint32_t i = 0; i < many; i++) {
        sums[i] = _mm512_set1_epi32(starts[i]);
    }
    for (uint32_t at = 0; at + 16 <= d; at += 16) {
        add_block(many, apart, rows, at, q->codes + at, q->stride, sums);
    }
    if (d % 16 != 0) {
        add_block(many, apart, rows, d - 16, last, 16, sums);
    }
    for (uint32_t i = 0; i < many; i++) {
        _mm512_storeu_si512(out + i * columns, sums[i]);
    }
}

/* Rows of two positions, 16 from t on; those beyond the last of n are zeros, in a copy. */
CHIPLM_INLINE lane_rows pairs_from(const int8_t *array, uint32_t t, uint32_t n, uint8_t copy[32 * 8]) {
    lane_rows rows;
    rows.apart = false;
    rows.first = (const uint8_t *)array + (size_t)t * 8;
    rows.stride = 16;
    if (n - t < 32) {
        memset(copy, 0, 32 * 8);
        memcpy(copy, rows.first, (size_t)(n - t) * 8);
        rows.first = copy;
    }
    return rows;
}

CHIPLM_INLINE void dots_of_8(uint32_t many, const chiplm_queries *q, const int8_t *keys, uint32_t n, const int32_t *starts,
                             int32_t *out, size_t columns) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    uint8_t copy[32 * 8];
    for (uint32_t t = 0; t < n; t += 32) {
        const lane_rows rows = pairs_from(keys, t, n, copy);
        __m512i v[4];
        gather(false, &rows, 0, v);
        for (uint32_t i = 0; i < many; i++) {
            __m512i even = _mm512_set1_epi32(starts[i]);
            __m512i odd = even;
            for (uint32_t j = 0; j < 2; j++) {
                const __m512i quad = broadcast_quad(q->codes + i * q->stride + QUAD * j);
                add_products(&even, unsigned_codes(v[j]), quad);
                add_products(&odd, unsigned_codes(v[j + 2]), quad);
            }
            _mm512_storeu_si512(out + i * columns + t, _mm512_permutex2var_epi32(even, low, odd));
            _mm512_storeu_si512(out + i * columns + t + 16, _mm512_permutex2var_epi32(even, high, odd));
        }
    }
}

CHIPLM_INLINE void dots_of(uint32_t many, const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out,
                           size_t columns) {
    int32_t starts[QUERIES];
    int8_t last[QUERIES * 16] = {0};
    for (uint32_t i = 0; i < many; i++) {
        const int8_t *query = q->codes + i * q->stride;
        starts[i] = dot_start(query, d);
        memcpy(last + 16 * i + 16 - d % 16, query + d / 16 * 16, d % 16);
    }
    if (d == 8) {
        dots_of_8(many, q, keys, n, starts, out, columns);
        return;
    }
    lane_rows rows;
    for (uint32_t t = 0; t < n; t += LANES) {
        rows_from((const uint8_t *)keys + (size_t)t * d, d, n - t, &rows);
        if (rows.apart) {
            row_dots(many, true, &rows, q, d, last, starts, out + t, columns);
        } else {
            row_dots(many, false, &rows, q, d, last, starts, out + t, columns);
        }
    }
}

static void dots(const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out, size_t columns) {
    if (d < 16 && d != 8) {
        plain_dots(q, keys, n, d, out, columns);
        return;
    }
    switch (q->n) {
    case 1:
        dots_of(1, q, keys, n, d, out, columns);
        break;
    case 2:
        dots_of(2, q, keys, n, d, out, columns);
        break;
    case 3:
        dots_of(3, q, keys, n, d, out, columns);
        break;
    default:
        dots_of(4, q, keys, n, d, out, columns);
        break;
    }
}

/* Takes 16 bytes of each of 16 rows: lanes of 32 bits of out[k] hold byte 4 * k + 0..3 of rows 0-3, then of rows 4-7, 8-11
 * and 12-15. */
CHIPLM_INLINE void gather_bytes(bool apart, const lane_rows *rows, size_t at, __m512i out[4]) {
    __m512i v[4];
    load_rows(apart, rows, at, v);
    const __m512i a = _mm512_unpacklo_epi8(v[0], v[1]);
    const __m512i b = _mm512_unpackhi_epi8(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi8(v[2], v[3]);
    const __m512i d = _mm512_unpackhi_epi8(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi16(a, c);
    out[1] = _mm512_unpackhi_epi16(a, c);
    out[2] = _mm512_unpacklo_epi16(b, d);
    out[3] = _mm512_unpackhi_epi16(b, d);
}

/* The sums of the four parts of each vector, one vector after the other. */
CHIPLM_INLINE __m512i add_parts(const __m512i v[4]) {
    const __m512i a = _mm512_add_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x44), _mm512_shuffle_i32x4(v[0], v[1], 0xee));
    const __m512i b = _mm512_add_epi32(_mm512_shuffle_i32x4(v[2], v[3], 0x44), _mm512_shuffle_i32x4(v[2], v[3], 0xee));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

CHIPLM_INLINE void mix_of_8(uint32_t many, const int8_t *shares, const int8_t *values, uint32_t n, int32_t *out,
                            size_t columns) {
    const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i even = _mm512_set1_epi32(0x06040200);
    const __m512i odd = _mm512_set1_epi32(0x07050301);
    uint8_t copy[32 * 8];
    __m512i sums[QUERIES][4];
    for (uint32_t i = 0; i < many; i++) {
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = _mm512_setzero_si512();
    }
    for (uint32_t t = 0; t < n; t += 32) {
        const lane_rows rows = pairs_from(values, t, n, copy);
        __m512i v[4]; /* the eight elements of even positions, then of odd ones */
        gather_bytes(false, &rows, 0, v);
        for (uint32_t i = 0; i < many; i++) {
            const __m256i some = _mm256_loadu_si256((const __m256i *)(const void *)(shares + i * columns + t));
            const __m512i eights = _mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(some));
            for (int k = 0; k < 4; k++) {
                add_products(&sums[i][k], _mm512_shuffle_epi8(eights, k < 2 ? even : odd), v[k]);
            }
        }
    }
    for (uint32_t i = 0; i < many; i++) {
        const __m512i total = add_parts(sums[i]);
        const __m256i both = _mm256_add_epi32(_mm512_castsi512_si256(total), _mm512_extracti64x4_epi64(total, 1));
        _mm256_storeu_si256((__m256i *)(void *)(out + i * columns), both);
    }
}

CHIPLM_INLINE void mix_of(uint32_t many, const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                          size_t columns) {
    if (d == 8) {
        mix_of_8(many, shares, values, n, out, columns);
        return;
    }
    const __m512i quads = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    lane_rows rows;
    for (uint32_t element = 0; element < d; element += 16) {
        const uint32_t at = element + 16 <= d ? element : d - 16;
        __m512i sums[QUERIES][4];
        for (uint32_t i = 0; i < many; i++) {
            sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = _mm512_setzero_si512();
        }
        for (uint32_t t = 0; t < n; t += LANES) {
            rows_from((const uint8_t *)values + (size_t)t * d, d, n - t, &rows);
            __m512i v[4];
            if (rows.apart) {
                gather_bytes(true, &rows, at, v);
            } else {
                gather_bytes(false, &rows, at, v);
            }
            for (uint32_t i = 0; i < many; i++) {
                const __m128i some = load16((const uint8_t *)shares + i * columns + t);
                const __m512i weights = _mm512_permutexvar_epi32(quads, _mm512_castsi128_si512(some));
                for (int k = 0; k < 4; k++) {
                    add_products(&sums[i][k], weights, v[k]);
                }
            }
        }
        for (uint32_t i = 0; i < many; i++) {
            _mm512_storeu_si512(out + i * columns + at, add_parts(sums[i]));
        }
    }
}

static void mix(const int8_t *shares, uint32_t many, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                size_t columns) {
    if (d < 16 && d != 8) {
        plain_mix(shares, many, values, n, d, out, columns);
        return;
    }
    switch (many) {
    case 1:
        mix_of(1, shares, values, n, d, out, columns);
        break;
    case 2:
        mix_of(2, shares, values, n, d, out, columns);
        break;
    case 3:
        mix_of(3, shares, values, n, d, out, columns);
        break;
    default:
        mix_of(4, shares, values, n, d, out, columns);
        break;
    }
}
