/* product_neon.h: products with NEON. Rows are unpacked four at a time, to one signed code a byte, and meet every input; the
 * four sums of a group then lie in the lanes of one vector, as do their scales. A matrix that is stored transposed is read
 * two columns at a time, whose products with two codes of an input fit 16 bits: 2 * 127 * 127 = 32,258. */

enum { LANES = 4 };

/* So many products of codes of 4 bits fit 16 bits, two for each run of 16 columns: 16 * 7 * 127 = 14,224. */
enum { RUN = 16, SHORT_RUNS = 8 };

static uint64_t scratch_bytes(uint32_t batch, uint64_t padded, uint64_t groups) {
    (void)batch;
    return padded * 6 + (groups * LANES * sizeof(float) + 63) / 64 * 64;
}

/* Unpacks bytes of codes, whole blocks of 16, to one code a byte. */
static void unpack(const uint8_t *codes, size_t bytes, uint32_t bits, int8_t *out) {
    for (size_t i = 0; i < bytes; i += 16) {
        const int8x16_t block = vreinterpretq_s8_u8(vld1q_u8(codes + i));
        switch (bits) {
        case 2:
            vst1q_s8(out, vshrq_n_s8(vshlq_n_s8(block, 6), 6));
            vst1q_s8(out + 16, vshrq_n_s8(vshlq_n_s8(block, 4), 6));
            vst1q_s8(out + 32, vshrq_n_s8(vshlq_n_s8(block, 2), 6));
            vst1q_s8(out + 48, vshrq_n_s8(block, 6));
            out += 64;
            break;
        case 4:
            vst1q_s8(out, vshrq_n_s8(vshlq_n_s8(block, 4), 4));
            vst1q_s8(out + 16, vshrq_n_s8(block, 4));
            out += 32;
            break;
        default: /* 8 */
            vst1q_s8(out, block);
            out += 16;
            break;
        }
    }
}

/* sums + the products of n columns, whole runs, of which so many fit 16 bits at a time. */
CHIPLM_INLINE int32x4_t add_products(int32x4_t sums, const int8_t *w, const int8_t *x, uint32_t n, uint32_t runs) {
    for (uint32_t i = 0; i < n;) {
        const uint32_t end = n - i < runs * RUN ? n : i + runs * RUN;
        int16x8_t pairs = vdupq_n_s16(0);
        for (; i < end; i += RUN) {
            const int8x16_t a = vld1q_s8(w + i);
            const int8x16_t b = vld1q_s8(x + i);
            pairs = vmlal_s8(pairs, vget_low_s8(a), vget_low_s8(b));
            pairs = vmlal_s8(pairs, vget_high_s8(a), vget_high_s8(b));
        }
        sums = vpadalq_s16(sums, pairs);
    }
    return sums;
}

/* Four unpacked rows, padded bytes apart, times an input, before the input's scale. scales is [groups, LANES]. */
CHIPLM_INLINE float32x4_t multiply_rows(const chiplm_tensor *w, const int8_t *codes, size_t padded, const float *scales,
                                        const int8_t *x, uint32_t runs) {
    const uint32_t columns = (w->columns + RUN - 1) / RUN * RUN; /* zeros follow on both sides */
    const uint32_t group = w->group == 0 ? columns : w->group;
    float32x4_t total = vdupq_n_f32(0.0f);
    for (uint32_t g = 0, c = 0; g < w->groups; g++, c += group) {
        const uint32_t n = columns - c < group ? columns - c : group;
        int32x4_t sums[LANES];
        for (size_t r = 0; r < LANES; r++) {
            sums[r] = add_products(vdupq_n_s32(0), codes + r * padded + c, x + c, n, runs);
        }
        const int32x4_t sum = vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
        total = vaddq_f32(total, vmulq_f32(vcvtq_f32_s32(sum), vld1q_f32(scales + (size_t)g * LANES)));
    }
    return total;
}

static void product(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const size_t padded = ((size_t)w->columns + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    int8_t *codes = p->scratch;
    float *scales = (float *)(void *)(codes + LANES * padded);
    const uint32_t count = p->list == NULL ? p->rows : p->listed;
    for (uint32_t k = 0; k < count; k += LANES) {
        const uint32_t lanes = count - k < LANES ? count - k : LANES;
        uint32_t rows[LANES]; /* the last is repeated in lanes that are left over */
        for (uint32_t j = 0; j < LANES; j++) {
            const uint32_t at = k + (j < lanes ? j : lanes - 1);
            rows[j] = p->list == NULL ? at : p->list[at];
            const size_t row = (size_t)p->first + rows[j];
            unpack(w->codes.at + row * w->stride, w->stride, w->bits, codes + j * padded);
            for (uint32_t g = 0; g < w->groups; g++) {
                scales[(size_t)g * LANES + j] = scale_at(w, row * w->groups + g);
            }
        }
        for (uint32_t i = 0; i < p->n; i++) {
            const size_t b = p->which[i];
            const int8_t *x = p->x.codes + b * p->x.stride;
            const float32x4_t total = w->bits == 8 ? multiply_rows(w, codes, padded, scales, x, 1)
                                                   : multiply_rows(w, codes, padded, scales, x, SHORT_RUNS);
            float results[LANES];
            vst1q_f32(results, vmulq_n_f32(total, p->x.scales[b]));
            for (uint32_t j = 0; j < lanes; j++) {
                p->y[b * p->ldy + rows[j]] = results[j];
            }
        }
    }
}

/* sums[rows] += a * xa + b * xb, for whole vectors of rows. */
static void add_columns(int32_t *sums, const int8_t *a, const int8_t *b, int8_t xa, int8_t xb, uint32_t rows) {
    for (uint32_t r = 0; r < rows; r += 8) {
        const int16x8_t pair = vmlal_s8(vmull_s8(vld1_s8(a + r), vdup_n_s8(xa)), vld1_s8(b + r), vdup_n_s8(xb));
        vst1q_s32(sums + r, vaddw_s16(vld1q_s32(sums + r), vget_low_s16(pair)));
        vst1q_s32(sums + r + 4, vaddw_s16(vld1q_s32(sums + r + 4), vget_high_s16(pair)));
    }
}

/* y[rows] += sums * scales from the index on. */
static void add_group(const chiplm_tensor *w, size_t scales, const int32_t *sums, uint32_t rows, float *y) {
    for (uint32_t r = 0; r < rows; r++) {
        y[r] = y[r] + (float)sums[r] * scale_at(w, scales + r);
    }
}

static void product_transposed(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    const uint32_t block = p->first / w->block; /* an expert */
    const uint32_t from = p->first % w->block;
    const uint32_t per_block = 128 / w->bits;
    const size_t bytes = ((size_t)p->rows + per_block - 1) / per_block * 16;
    const uint8_t *stored = w->codes.at + (size_t)block * w->columns * w->stride + from / per_block * 16;
    const size_t padded = ((size_t)p->rows + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD;
    int32_t *sums = p->scratch;
    int8_t *codes = (int8_t *)(sums + padded); /* of two columns */
    const uint32_t count = p->list == NULL ? w->columns : p->listed;
    for (uint32_t i = 0; i < p->n; i++) {
        const size_t b = p->which[i];
        const int8_t *x = p->x.codes + b * p->x.stride;
        float *y = p->y + b * p->ldy;
        for (uint32_t r = 0; r < p->rows; r++) {
            y[r] = 0.0f;
        }
        for (uint32_t k = 0; k < count;) {
            const uint32_t g = (p->list == NULL ? k : p->list[k]) / group;
            memset(sums, 0, padded * sizeof *sums);
            while (k < count) {
                const uint32_t one = p->list == NULL ? k : p->list[k];
                if (one / group != g) {
                    break;
                }
                const uint32_t next = k + 1 < count ? (p->list == NULL ? k + 1 : p->list[k + 1]) : one;
                const bool two = next != one && next / group == g;
                unpack(stored + one * (size_t)w->stride, bytes, w->bits, codes);
                unpack(stored + next * (size_t)w->stride, bytes, w->bits, codes + padded);
                add_columns(sums, codes, codes + padded, x[one], two ? x[next] : 0, p->rows);
                k += two ? 2 : 1;
            }
            add_group(w, ((size_t)block * w->groups + g) * w->block + from, sums, p->rows, y);
        }
        for (uint32_t r = 0; r < p->rows; r++) {
            y[r] = y[r] * p->x.scales[b];
        }
    }
}
