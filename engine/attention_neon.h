/* attention_neon.h: dots of queries and keys, and sums of values, with NEON: 16 elements of a position at a time. Products of
 * two codes have 15 bits, so that two of them fit 16. */

static void dots(const int8_t *query, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out) {
    const uint32_t whole = d / 16 * 16;
    for (uint32_t t = 0; t < n; t++) {
        const int8_t *key = keys + (size_t)t * d;
        int32x4_t sums = vdupq_n_s32(0);
        for (uint32_t i = 0; i < whole; i += 16) {
            const int8x16_t q = vld1q_s8(query + i);
            const int8x16_t k = vld1q_s8(key + i);
            sums = vpadalq_s16(sums, vmlal_s8(vmull_s8(vget_low_s8(q), vget_low_s8(k)), vget_high_s8(q), vget_high_s8(k)));
        }
        out[t] = vaddvq_s32(sums);
    }
    add_dots(query, keys, n, whole, d, out);
}

static void mix(const int8_t *shares, const int8_t *values, uint32_t n, uint32_t d, int32_t *out) {
    const uint32_t whole = d / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8) {
        int32x4_t low = vdupq_n_s32(0);
        int32x4_t high = vdupq_n_s32(0);
        for (uint32_t t = 0; t < n; t += 2) {
            const int8_t *value = values + (size_t)t * d + i;
            int16x8_t pair = vmull_s8(vdup_n_s8(shares[t]), vld1_s8(value));
            if (t + 1 < n) {
                pair = vmlal_s8(pair, vdup_n_s8(shares[t + 1]), vld1_s8(value + d));
            }
            low = vaddw_s16(low, vget_low_s16(pair));
            high = vaddw_s16(high, vget_high_s16(pair));
        }
        vst1q_s32(out + i, low);
        vst1q_s32(out + i + 4, high);
    }
    add_values(shares, values, n, whole, d, out);
}
