/* row_logit.h: the logit of a row, unpacked a chunk at a time: the definition. */

/* Writes the codes of CHIPLM_CHUNK columns of a row, zeros past its last block. */
CHIPLM_INLINE void chunk_codes(const uint8_t *row, size_t stride, uint32_t bits, size_t chunk, int8_t *codes) {
    if (bits == 8) {
        const size_t at = chunk * CHIPLM_CHUNK;
        const size_t n = stride - at < CHIPLM_CHUNK ? stride - at : CHIPLM_CHUNK;
        memset(codes, 0, CHIPLM_CHUNK);
        memcpy(codes, row + at, n);
        return;
    }
    const uint8_t *block = row + (bits == 4 ? chunk : chunk / 2) * 16;
    const uint32_t shift = bits == 4 ? 0 : (uint32_t)(chunk % 2) * 4; /* a block of 2-bit codes holds two chunks */
    const int32_t mask = (1 << bits) - 1;
    const int32_t sign = 1 << (bits - 1);
    for (size_t j = 0; j < 16; j++) {
        codes[j] = (int8_t)((((block[j] >> shift) & mask) ^ sign) - sign);
        codes[j + 16] = (int8_t)((((block[j] >> shift >> bits) & mask) ^ sign) - sign);
    }
}

CHIPLM_INLINE float row_logit_by_chunks(uint32_t bits, const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale) {
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    const size_t chunks = ((size_t)w->columns + CHIPLM_CHUNK - 1) / CHIPLM_CHUNK;
    const size_t per_group = w->groups == 1 ? chunks : w->group / CHIPLM_CHUNK;
    float acc = 0.0f;
    for (size_t g = 0, c = 0; g < w->groups; g++) {
        int32_t sum = 0;
        for (const size_t end = chunks - c < per_group ? chunks : c + per_group; c < end; c++) {
            int8_t some[CHIPLM_CHUNK];
            chunk_codes(codes, w->stride, bits, c, some);
            for (size_t j = 0; j < CHIPLM_CHUNK; j++) {
                sum += (int32_t)some[j] * x[c * CHIPLM_CHUNK + j];
            }
        }
        acc = acc + (float)sum * scale_at(w, (size_t)row * w->groups + g);
    }
    return acc * scale;
}
