/* search_plain.h: the definition of what search.h takes. */

/* The sum of 32 codes of 4 bits, in a block of 16 bytes, times lanes. Codes of -8, of which there are none in lanes that
 * count, times 32,767 keep it far below 2^31. */
CHIPLM_INLINE int32_t block_dot(const uint8_t *block, const int16_t *lanes) {
    int16_t codes[2 * 16];
    for (size_t j = 0; j < 16; j++) {
        codes[j] = (int16_t)((block[j] & 15) ^ 8);
        codes[j + 16] = (int16_t)((block[j] >> 4) ^ 8);
    }
    int32_t sum = 0;
    for (size_t j = 0; j < 32; j++) {
        sum += (int32_t)(int16_t)(codes[j] - 8) * lanes[j];
    }
    return sum;
}

#include "row_logit.h"

CHIPLM_INLINE float row_logit_of(uint32_t bits, const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale) {
    return row_logit_by_chunks(bits, w, row, x, scale);
}
