/* attention_avx512.h: dots of queries and keys, and sums of values, with AVX-512 VNNI.
 *
 * Both take blocks of 16 elements of 16 positions. A dot has positions in its lanes, like a product with keys for rows; keys
 * are made unsigned, and what that adds is taken back. A sum of values has elements in its lanes and adds up four positions in
 * each at a time; shares are not negative. Heads of 8 elements count as rows of two positions. Elements beyond whole blocks
 * take plain loops. Nothing is read past the last position: lanes beyond it repeat it. */

/* Sums of products of a block of the query with the keys of 16 rows. */
CHIPLM_INLINE __m512i block_dots(bool apart, const lane_rows *rows, const int8_t *query, uint32_t block, __m512i sums) {
    __m512i v[4];
    gather(apart, rows, block * 16, v);
    for (uint32_t j = 0; j < 4; j++) {
        add_products(&sums, _mm512_xor_si512(v[j], _mm512_set1_epi8(-128)), broadcast_quad(query + block * 16 + QUAD * j));
    }
    return sums;
}

/* Rows of two positions: 32 at once. */
static void dots_of_8(const int8_t *query, const int8_t *keys, uint32_t n, __m512i start, int32_t *out) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    uint8_t last[32 * 8] = {0};
    for (uint32_t t = 0; t < n; t += 32) {
        lane_rows rows = {.first = (const uint8_t *)keys + (size_t)t * 8, .stride = 16};
        if (n - t < 32) {
            memcpy(last, rows.first, (size_t)(n - t) * 8);
            rows.first = last;
        }
        __m512i v[4];
        __m512i sums[2] = {start, start};
        gather(false, &rows, 0, v);
        for (uint32_t j = 0; j < 4; j++) {
            add_products(&sums[j / 2], _mm512_xor_si512(v[j], _mm512_set1_epi8(-128)), broadcast_quad(query + QUAD * (j % 2)));
        }
        _mm512_storeu_si512(out + t, _mm512_permutex2var_epi32(sums[0], low, sums[1]));
        _mm512_storeu_si512(out + t + 16, _mm512_permutex2var_epi32(sums[0], high, sums[1]));
    }
}

static void dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out) {
    const uint32_t blocks = d / 16;
    int32_t sum = 0;
    for (uint32_t i = 0; i < (d == 8 ? d : 16 * blocks); i++) {
        sum += query[i];
    }
    const __m512i start = _mm512_set1_epi32(-128 * sum);
    if (d == 8) {
        dots_of_8(query, keys, n, start, out);
        return;
    }
    lane_rows rows;
    for (uint32_t t = 0; t < n; t += LANES) {
        rows_from((const uint8_t *)keys + (size_t)t * d, d, n - t, &rows);
        __m512i sums = start;
        for (uint32_t b = 0; b < blocks; b++) {
            sums = rows.apart ? block_dots(true, &rows, query, b, sums) : block_dots(false, &rows, query, b, sums);
        }
        _mm512_storeu_si512(out + t, sums);
    }
    add_dots(query, keys, n, 16 * blocks, d, out);
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

/* The four sums, one after the other, of the four parts of each vector. */
CHIPLM_INLINE __m512i add_parts(const __m512i v[4]) {
    const __m512i a = _mm512_add_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x44), _mm512_shuffle_i32x4(v[0], v[1], 0xee));
    const __m512i b = _mm512_add_epi32(_mm512_shuffle_i32x4(v[2], v[3], 0x44), _mm512_shuffle_i32x4(v[2], v[3], 0xee));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

static void mix_of_8(const int8_t *shares, const int8_t *values, uint32_t n, int32_t *out) {
    const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i even = _mm512_set1_epi32(0x06040200);
    const __m512i odd = _mm512_set1_epi32(0x07050301);
    uint8_t last[32 * 8] = {0};
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (uint32_t t = 0; t < n; t += 32) {
        lane_rows rows = {.first = (const uint8_t *)values + (size_t)t * 8, .stride = 16};
        if (n - t < 32) {
            memcpy(last, rows.first, (size_t)(n - t) * 8);
            rows.first = last;
        }
        __m512i v[4];
        gather_bytes(false, &rows, 0, v);
        const __m256i some = _mm256_loadu_si256((const __m256i *)(const void *)(shares + t));
        const __m512i eights = _mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(some));
        for (int k = 0; k < 4; k++) {
            add_products(&sums[k], _mm512_shuffle_epi8(eights, k < 2 ? even : odd), v[k]);
        }
    }
    const __m512i total = add_parts(sums); /* elements of even positions, then of odd ones */
    const __m256i both = _mm256_add_epi32(_mm512_castsi512_si256(total), _mm512_extracti64x4_epi64(total, 1));
    _mm256_storeu_si256((__m256i *)(void *)out, both);
}

static void mix(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out) {
    if (d == 8) {
        mix_of_8(shares, values, n, out);
        return;
    }
    const __m512i quads = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    lane_rows rows;
    for (uint32_t b = 0; b < d / 16; b++) {
        __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
        for (uint32_t t = 0; t < n; t += LANES) {
            rows_from((const uint8_t *)values + (size_t)t * d, d, n - t, &rows);
            __m512i v[4];
            if (rows.apart) {
                gather_bytes(true, &rows, b * 16, v);
            } else {
                gather_bytes(false, &rows, b * 16, v);
            }
            const __m512i some = _mm512_castsi128_si512(load16((const uint8_t *)shares + t));
            const __m512i weights = _mm512_permutexvar_epi32(quads, some);
            for (int k = 0; k < 4; k++) {
                add_products(&sums[k], weights, v[k]);
            }
        }
        _mm512_storeu_si512(out + 16 * b, add_parts(sums));
    }
    add_values(shares, values, n, d / 16 * 16, d, out);
}
