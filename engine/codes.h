/* codes.h: reading what a matrix stores: codes, scales, single rows; and the product of a matrix of floats. */

/* Unpacks bytes of bits-bit codes, whole blocks of 16, to one code a byte. */
static void unpack(const uint8_t *codes, size_t bytes, uint32_t bits, int8_t *out) {
    /* (v ^ 8) - 8 extends the sign of a 4-bit code without leaving defined behaviour; the others alike. */
    switch (bits) {
    case 2:
        for (size_t i = 0; i < bytes; i += 16, out += 64) {
            for (size_t j = 0; j < 16; j++) {
                const int32_t c = codes[i + j];
                out[j] = (int8_t)(((c & 3) ^ 2) - 2);
                out[j + 16] = (int8_t)((((c >> 2) & 3) ^ 2) - 2);
                out[j + 32] = (int8_t)((((c >> 4) & 3) ^ 2) - 2);
                out[j + 48] = (int8_t)((((c >> 6) & 3) ^ 2) - 2);
            }
        }
        break;
    case 4:
        for (size_t i = 0; i < bytes; i += 16, out += 32) {
            for (size_t j = 0; j < 16; j++) {
                const int32_t c = codes[i + j];
                out[j] = (int8_t)(((c & 15) ^ 8) - 8);
                out[j + 16] = (int8_t)(((c >> 4) ^ 8) - 8);
            }
        }
        break;
    default: /* 8 */
        memcpy(out, codes, bytes);
        break;
    }
}

/* The scale at index of a tensor's scales, widened. */
CHIPLM_INLINE float scale_at(const chiplm_tensor *w, size_t index) {
    if (w->scale_type == CHIPLM_F32) {
        float s;
        memcpy(&s, w->scales.at + index * sizeof s, sizeof s);
        return s;
    }
    uint16_t h;
    memcpy(&h, w->scales.at + index * sizeof h, sizeof h);
    return chiplm_half(h);
}

static void dequantise(const chiplm_tensor *w, uint32_t row, float *y) {
    const uint32_t per_block = 128 / w->bits;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    for (uint32_t i = 0; i < w->columns; i += per_block) { /* groups are whole blocks, or the row */
        int8_t block[64];
        unpack(codes + i / per_block * 16, 16, w->bits, block);
        for (uint32_t j = 0; j < per_block && i + j < w->columns; j++) {
            y[i + j] = (float)block[j] * scale_at(w, (size_t)row * w->groups + (i + j) / group);
        }
    }
}

static void product_floats(const chiplm_tensor *w, const float *x, float *y) {
    for (uint32_t r = 0; r < w->rows; r++) {
        y[r] = chiplm_dot8((const float *)(const void *)(w->codes.at + (size_t)r * w->stride), x, w->columns);
    }
}
