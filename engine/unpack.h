/* unpack.h: codes of weights, from blocks to bytes. */

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
