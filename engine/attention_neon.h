/* attention_neon.h: dots of queries and keys, and sums of values, with NEON, 16 and 8 elements at a time. Two products of
 * codes fit 16 bits: 2 * 127 * 127 = 32,258. */

enum { QUERIES = 1 };

static void dots(const chiplm_queries *q, const int8_t *keys, uint32_t n, uint32_t d, int32_t *out, size_t columns) {
    if (d < 16) {
        plain_dots(q, keys, n, d, out, columns);
        return;
    }
    const int8_t *query = q->codes;
    int8_t last[16] = {0}; /* the elements beyond whole blocks, behind zeros, meet a block that ends with them */
    memcpy(last + 16 - d % 16, query + d / 16 * 16, d % 16);
    for (uint32_t t = 0; t < n; t++) {
        const int8_t *key = keys + (size_t)t * d;
        int32x4_t sums = vdupq_n_s32(0);
        for (uint32_t i = 0; i < d; i += 16) {
            const bool whole = i + 16 <= d;
            const int8x16_t a = vld1q_s8(whole ? query + i : last);
            const int8x16_t b = vld1q_s8(key + (whole ? i : d - 16));
            sums = vpadalq_s16(sums, vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vget_high_s8(a), vget_high_s8(b)));
        }
        out[t] = vaddvq_s32(sums);
    }
}

static void mix(const int8_t *shares, uint32_t many, const int8_t *values, uint32_t n, uint32_t d, int32_t *out,
                size_t columns) {
    if (d < 8) {
        plain_mix(shares, many, values, n, d, out, columns);
        return;
    }
    for (uint32_t element = 0; element < d; element += 8) {
        const uint32_t i = element + 8 <= d ? element : d - 8;
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
}
