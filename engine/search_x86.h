/* search_x86.h: search.h with the instructions of AVX2, which AVX-512 has too. */

CHIPLM_INLINE int32_t add_up(__m256i sums) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* A field of each byte as a signed code: mask has the bits of a field, sign its highest. */
CHIPLM_INLINE __m128i signed_field(__m128i bytes, uint32_t shift, int mask, int sign) {
    const __m128i field = _mm_and_si128(_mm_srl_epi16(bytes, _mm_cvtsi32_si128((int)shift)), _mm_set1_epi8((char)mask));
    return _mm_sub_epi8(_mm_xor_si128(field, _mm_set1_epi8((char)sign)), _mm_set1_epi8((char)sign));
}

CHIPLM_INLINE int32_t block_dot(const uint8_t *block, const int16_t *lanes) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)block);
    const __m256i *l = (const __m256i *)(const void *)lanes;
    const __m256i low = _mm256_cvtepi8_epi16(signed_field(bytes, 0, 15, 8));
    const __m256i high = _mm256_cvtepi8_epi16(signed_field(bytes, 4, 15, 8));
    return add_up(_mm256_add_epi32(_mm256_madd_epi16(low, _mm256_loadu_si256(l)),
                                   _mm256_madd_epi16(high, _mm256_loadu_si256(l + 1))));
}

/* The codes of CHIPLM_CHUNK columns of a row, zeros past its last block. */
CHIPLM_INLINE __m256i chunk_codes(const uint8_t *row, size_t stride, uint32_t bits, size_t chunk) {
    const uint8_t *at = row + chunk * 4 * bits;
    if (bits == 8) {
        const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)at);
        if (stride - chunk * CHIPLM_CHUNK < CHIPLM_CHUNK) {
            return _mm256_zextsi128_si256(first);
        }
        return _mm256_set_m128i(_mm_loadu_si128((const __m128i *)(const void *)(at + 16)), first);
    }
    /* A block of 2-bit codes holds two chunks. */
    const uint8_t *block = bits == 4 ? at : row + chunk / 2 * 16;
    const uint32_t shift = bits == 4 ? 0 : (uint32_t)(chunk % 2) * 4;
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)block);
    const int mask = (1 << bits) - 1;
    const int sign = 1 << (bits - 1);
    return _mm256_set_m128i(signed_field(bytes, shift + bits, mask, sign), signed_field(bytes, shift, mask, sign));
}

/* Signs go from the inputs to the codes, so that one operand of the products is unsigned; pairs are at most 32,258. */
CHIPLM_INLINE float row_logit_of(uint32_t bits, const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale) {
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    const size_t chunks = ((size_t)w->columns + CHIPLM_CHUNK - 1) / CHIPLM_CHUNK;
    const size_t per_group = w->groups == 1 ? chunks : w->group / CHIPLM_CHUNK;
    float acc = 0.0f;
    for (size_t g = 0, c = 0; g < w->groups; g++) {
        __m256i sums = _mm256_setzero_si256();
        for (const size_t end = chunks - c < per_group ? chunks : c + per_group; c < end; c++) {
            const __m256i inputs = _mm256_loadu_si256((const __m256i *)(const void *)(x + c * CHIPLM_CHUNK));
            const __m256i some = chunk_codes(codes, w->stride, bits, c);
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(inputs), _mm256_sign_epi8(some, inputs));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
        acc = acc + (float)add_up(sums) * scale_at(w, (size_t)row * w->groups + g);
    }
    return acc * scale;
}
