/* attention_avx2.h: dots of queries and keys, and sums of values, with AVX2: attention_avx512.h with half the lanes.
 *
 * The byte products take one operand unsigned: of a dot the absolute codes of the query, whose signs the keys take over; of
 * a sum of values the shares. Pairs are at most 2 * 127 * 127 = 32,258. */

enum { QUERIES = 2 };

/* sums + the products of a quad of a query with keys. */
CHIPLM_INLINE __m256i add_key(__m256i sums, const int8_t *query, __m256i keys) {
    const __m256i quad = broadcast_quad(query);
    return add_pairs(sums, _mm256_maddubs_epi16(_mm256_abs_epi8(quad), _mm256_sign_epi8(keys, quad)));
}

/* Adds a block of the queries, stride bytes apart, times bytes at.. of the keys of 8 rows. */
CHIPLM_INLINE void add_block(uint32_t many, bool apart, const lane_rows *rows, size_t half, size_t at, const int8_t *block,
                             size_t stride, __m256i *sums) {
    __m256i v[4];
    gather(apart, rows, half, at, v);
    for (uint32_t j = 0; j < 4; j++) {
        for (uint32_t i = 0; i < many; i++) {
            sums[i] = add_key(sums[i], block + i * stride + QUAD * j, v[j]);
        }
    }
}

/* Queries of d >= 16 elements times the keys of 8 rows, from the half-th half of the rows. last holds the elements beyond
 * whole blocks, behind zeros. */
CHIPLM_INLINE void row_dots(uint32_t many, bool apart, const lane_rows *rows, size_t half, const chiplm_queries *q,
                            uint32_t d, const int8_t *last, int32_t *out, size_t columns) {
    __m256i sums[QUERIES];
    for (uint32_t i = 0; i < many; i++) {
        sums[i] = _mm256_setzero_si256();
    }
    for (uint32_t at = 0; at + 16 <= d; at += 16) {
        add_block(many, apart, rows, half, at, q->codes + at, q->stride, sums);
    }
    if (d % 16 != 0) {
        add_block(many, apart, rows, half, d - 16, last, 16, sums);
    }
    for (uint32_t i = 0; i < many; i++) {
        _mm256_storeu_si256((__m256i *)(void *)(out + i * columns + 8 * half), sums[i]);
    }
}

/* Rows of two positions, 8 from t on; those beyond the last of n are zeros, in a copy. */
CHIPLM_INLINE lane_rows pairs_from(const int8_t *array, uint32_t t, uint32_t n, uint8_t copy[16 * 8]) {
    lane_rows rows;
    rows.apart = false;
    rows.first = (const uint8_t *)array + (size_t)t * 8;
    rows.stride = 16;
    if (n - t < 16) {
        memset(copy, 0, 16 * 8);
        memcpy(copy, rows.first, (size_t)(n - t) * 8);
        rows.first = copy;
    }
    return rows;
}

CHIPLM_INLINE void dots_of_8(uint32_t many, const chiplm_queries *q, const int8_t *keys, uint32_t n, int32_t *out,
                             size_t columns) {
    uint8_t copy[16 * 8];
    for (uint32_t t = 0; t < n; t += 16) {
        const lane_rows rows = pairs_from(keys, t, n, copy);
        __m256i v[4];
        gather(false, &rows, 0, 0, v);
        for (uint32_t i = 0; i < many; i++) {
            __m256i even = _mm256_setzero_si256();
            __m256i odd = even;
            for (uint32_t j = 0; j < 2; j++) {
                even = add_key(even, q->codes + i * q->stride + QUAD * j, v[j]);
                odd = add_key(odd, q->codes + i * q->stride + QUAD * j, v[j + 2]);
            }
            const __m256i a = _mm256_unpacklo_epi32(even, odd); /* positions 0-3, 8-11 */
            const __m256i b = _mm256_unpackhi_epi32(even, odd);
            __m256i *to = (__m256i *)(void *)(out + i * columns + t);
            _mm256_storeu_si256(to, _mm256_permute2x128_si256(a, b, 0x20));
            _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(a, b, 0x31));
        }
    }
}

CHIPLM_INLINE void dots_of(uint32_t many, const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out,
                           size_t columns) {
    if (d == 8) {
        dots_of_8(many, q, keys, n, out, columns);
        return;
    }
    int8_t last[QUERIES * 16] = {0};
    for (uint32_t i = 0; i < many; i++) {
        memcpy(last + 16 * i + 16 - d % 16, q->codes + i * q->stride + d / 16 * 16, d % 16);
    }
    lane_rows rows;
    for (uint32_t t = 0; t < n; t += LANES) {
        rows_from((const uint8_t *)keys + (size_t)t * d, d, n - t, &rows);
        for (size_t half = 0; half < 2; half++) {
            if (rows.apart) {
                row_dots(many, true, &rows, half, q, d, last, out + t, columns);
            } else {
                row_dots(many, false, &rows, half, q, d, last, out + t, columns);
            }
        }
    }
}

static void dots(const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out, size_t columns) {
    if (d < 16 && d != 8) {
        plain_dots(q, keys, n, d, out, columns);
    } else if (q->n == 1) {
        dots_of(1, q, keys, n, d, out, columns);
    } else {
        dots_of(2, q, keys, n, d, out, columns);
    }
}

/* Takes 16 bytes of each of 8 rows, from the half-th half of the rows: lanes of 32 bits of out[k] hold byte 4 * k + 0..3 of
 * rows 0-3, then of rows 4-7. */
CHIPLM_INLINE void gather_bytes(bool apart, const lane_rows *rows, size_t half, size_t at, __m256i out[4]) {
    __m256i v[4];
    load_rows(apart, rows, half, at, v);
    const __m256i a = _mm256_unpacklo_epi8(v[0], v[1]);
    const __m256i b = _mm256_unpackhi_epi8(v[0], v[1]);
    const __m256i c = _mm256_unpacklo_epi8(v[2], v[3]);
    const __m256i d = _mm256_unpackhi_epi8(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi16(a, c);
    out[1] = _mm256_unpackhi_epi16(a, c);
    out[2] = _mm256_unpacklo_epi16(b, d);
    out[3] = _mm256_unpackhi_epi16(b, d);
}

/* The sum of the halves of a vector. */
CHIPLM_INLINE __m128i add_halves(__m256i v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

CHIPLM_INLINE void mix_of_8(uint32_t many, const int8_t *shares, const int8_t *values, uint32_t n, int32_t *out,
                            size_t columns) {
    const __m256i even = _mm256_set1_epi32(0x06040200);
    const __m256i odd = _mm256_set1_epi32(0x07050301);
    uint8_t copy[16 * 8];
    __m256i sums[QUERIES][2];
    for (uint32_t i = 0; i < many; i++) {
        sums[i][0] = sums[i][1] = _mm256_setzero_si256();
    }
    for (uint32_t t = 0; t < n; t += 16) {
        const lane_rows rows = pairs_from(values, t, n, copy);
        __m256i v[4]; /* the eight elements of even positions, then of odd ones */
        gather_bytes(false, &rows, 0, 0, v);
        for (uint32_t i = 0; i < many; i++) {
            const __m128i some = load16((const uint8_t *)shares + i * columns + t);
            const __m256i eights = _mm256_permute4x64_epi64(_mm256_castsi128_si256(some), 0x50);
            for (int k = 0; k < 4; k++) {
                const __m256i weights = _mm256_shuffle_epi8(eights, k < 2 ? even : odd);
                sums[i][k % 2] = add_pairs(sums[i][k % 2], _mm256_maddubs_epi16(weights, v[k]));
            }
        }
    }
    for (uint32_t i = 0; i < many; i++) {
        for (size_t k = 0; k < 2; k++) {
            _mm_storeu_si128((__m128i *)(void *)(out + i * columns + 4 * k), add_halves(sums[i][k]));
        }
    }
}

CHIPLM_INLINE void mix_of(uint32_t many, const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                          size_t columns) {
    if (d == 8) {
        mix_of_8(many, shares, values, n, out, columns);
        return;
    }
    const __m256i quads = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    lane_rows rows;
    for (uint32_t element = 0; element < d; element += 16) {
        const uint32_t at = element + 16 <= d ? element : d - 16;
        __m256i sums[QUERIES][4];
        for (uint32_t i = 0; i < many; i++) {
            sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = _mm256_setzero_si256();
        }
        for (uint32_t t = 0; t < n; t += LANES) {
            rows_from((const uint8_t *)values + (size_t)t * d, d, n - t, &rows);
            for (size_t half = 0; half < 2; half++) {
                __m256i v[4];
                if (rows.apart) {
                    gather_bytes(true, &rows, half, at, v);
                } else {
                    gather_bytes(false, &rows, half, at, v);
                }
                for (uint32_t i = 0; i < many; i++) {
                    const int8_t *own = shares + i * columns + t + 8 * half;
                    const __m128i some = _mm_loadl_epi64((const __m128i *)(const void *)own);
                    const __m256i weights = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(some), quads);
                    for (int k = 0; k < 4; k++) {
                        sums[i][k] = add_pairs(sums[i][k], _mm256_maddubs_epi16(weights, v[k]));
                    }
                }
            }
        }
        for (uint32_t i = 0; i < many; i++) {
            for (size_t k = 0; k < 4; k++) {
                _mm_storeu_si128((__m128i *)(void *)(out + i * columns + at + 4 * k), add_halves(sums[i][k]));
            }
        }
    }
}

static void mix(const int8_t *shares, uint32_t many, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                size_t columns) {
    if (d < 16 && d != 8) {
        plain_mix(shares, many, values, n, d, out, columns);
    } else if (many == 1) {
        mix_of(1, shares, values, n, d, out, columns);
    } else {
        mix_of(2, shares, values, n, d, out, columns);
    }
}
