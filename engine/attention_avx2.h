/* attention_avx2.h: dots of queries and keys, and sums of values, with AVX2.
 *
 * As attention_avx512.h, with half the lanes. The byte products take one operand unsigned: of a dot the absolute codes of the
 * query, whose signs the keys take over; of a sum of values the shares. Pairs are at most 2 * 127 * 127 = 32,258. */

CHIPLM_INLINE __m256i block_dots(bool apart, const lane_rows *rows, size_t half, const int8_t *query, uint32_t block,
                                 __m256i sums) {
    __m256i v[4];
    gather(apart, rows, half, block * 16, v);
    for (uint32_t j = 0; j < 4; j++) {
        const __m256i quad = broadcast_quad(query + block * 16 + QUAD * j);
        sums = add_pairs(sums, _mm256_maddubs_epi16(_mm256_abs_epi8(quad), _mm256_sign_epi8(v[j], quad)));
    }
    return sums;
}

/* Rows of two positions: 16 at once. */
static void dots_of_8(const int8_t *query, const int8_t *keys, uint32_t n, int32_t *out) {
    uint8_t last[16 * 8] = {0};
    for (uint32_t t = 0; t < n; t += 16) {
        lane_rows rows = {.first = (const uint8_t *)keys + (size_t)t * 8, .stride = 16};
        if (n - t < 16) {
            memcpy(last, rows.first, (size_t)(n - t) * 8);
            rows.first = last;
        }
        __m256i v[4];
        __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        gather(false, &rows, 0, 0, v);
        for (uint32_t j = 0; j < 4; j++) {
            const __m256i quad = broadcast_quad(query + QUAD * (j % 2));
            sums[j / 2] = add_pairs(sums[j / 2], _mm256_maddubs_epi16(_mm256_abs_epi8(quad), _mm256_sign_epi8(v[j], quad)));
        }
        const __m256i a = _mm256_unpacklo_epi32(sums[0], sums[1]); /* positions 0-3, 8-11 */
        const __m256i b = _mm256_unpackhi_epi32(sums[0], sums[1]);
        _mm256_storeu_si256((__m256i *)(void *)(out + t), _mm256_permute2x128_si256(a, b, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(out + t + 8), _mm256_permute2x128_si256(a, b, 0x31));
    }
}

static void dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out) {
    if (d == 8) {
        dots_of_8(query, keys, n, out);
        return;
    }
    lane_rows rows;
    for (uint32_t t = 0; t < n; t += LANES) {
        rows_from((const uint8_t *)keys + (size_t)t * d, d, n - t, &rows);
        for (size_t half = 0; half < 2; half++) {
            __m256i sums = _mm256_setzero_si256();
            for (uint32_t b = 0; b < d / 16; b++) {
                sums = rows.apart ? block_dots(true, &rows, half, query, b, sums)
                                  : block_dots(false, &rows, half, query, b, sums);
            }
            _mm256_storeu_si256((__m256i *)(void *)(out + t + 8 * half), sums);
        }
    }
    add_dots(query, keys, n, d / 16 * 16, d, out);
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

static void mix_of_8(const int8_t *shares, const int8_t *values, uint32_t n, int32_t *out) {
    const __m256i even = _mm256_set1_epi32(0x06040200);
    const __m256i odd = _mm256_set1_epi32(0x07050301);
    uint8_t last[16 * 8] = {0};
    __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t t = 0; t < n; t += 16) {
        lane_rows rows = {.first = (const uint8_t *)values + (size_t)t * 8, .stride = 16};
        if (n - t < 16) {
            memcpy(last, rows.first, (size_t)(n - t) * 8);
            rows.first = last;
        }
        __m256i v[4];
        gather_bytes(false, &rows, 0, 0, v);
        const __m128i some = load16((const uint8_t *)shares + t);
        const __m256i eights = _mm256_permute4x64_epi64(_mm256_castsi128_si256(some), 0x50);
        for (int k = 0; k < 4; k++) {
            sums[k] = add_pairs(sums[k], _mm256_maddubs_epi16(_mm256_shuffle_epi8(eights, k < 2 ? even : odd), v[k]));
        }
    }
    for (int k = 0; k < 2; k++) { /* of even positions, then of odd ones */
        _mm_storeu_si128((__m128i *)(void *)(out + 4 * k), _mm_add_epi32(add_halves(sums[k]), add_halves(sums[k + 2])));
    }
}

static void mix(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out) {
    if (d == 8) {
        mix_of_8(shares, values, n, out);
        return;
    }
    const __m256i quads = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    lane_rows rows;
    for (uint32_t b = 0; b < d / 16; b++) {
        __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
        for (uint32_t t = 0; t < n; t += LANES) {
            rows_from((const uint8_t *)values + (size_t)t * d, d, n - t, &rows);
            for (size_t half = 0; half < 2; half++) {
                __m256i v[4];
                if (rows.apart) {
                    gather_bytes(true, &rows, half, b * 16, v);
                } else {
                    gather_bytes(false, &rows, half, b * 16, v);
                }
                const __m128i some = _mm_loadl_epi64((const __m128i *)(const void *)(shares + t + 8 * half));
                const __m256i weights = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(some), quads);
                for (int k = 0; k < 4; k++) {
                    sums[k] = add_pairs(sums[k], _mm256_maddubs_epi16(weights, v[k]));
                }
            }
        }
        for (int k = 0; k < 4; k++) {
            _mm_storeu_si128((__m128i *)(void *)(out + 16 * b + 4 * (uint32_t)k), add_halves(sums[k]));
        }
    }
    add_values(shares, values, n, d / 16 * 16, d, out);
}
