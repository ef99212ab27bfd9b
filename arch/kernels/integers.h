/* integers.h: products of quantised activations and weights on their 8-bit codes, bit for bit those of docs/numerics.md.
 *
 * Sums of codes are exact in 32 bits in any order. Activations come as code + 128, since the instructions multiply
 * unsigned bytes with signed ones; sums start at the bias that takes the 128 back. */

/* What int_tile reads of the weights: the layout of qat/fakequant/fakequant.h, from a block of OUTS rows on. */
struct weights {
    const int8_t *codes;
    const float *scales;
    const int32_t *bias;
    int64_t groups, quads, width; /* of a row: groups, quads of codes; quads of a full group */
};

enum { OUTS = 16 };

#if SIMD_PATH == SIMD_AVX512
enum { INT_ROWS = 6, INT_BLOCKS = 4 };

/* y[rows, blocks * OUTS]; rows and blocks are constants where this is called. */
SIMD_INLINE void int_tile(int rows, int blocks, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                          int32_t max_code, float *y, int64_t ldy) {
    (void)max_code;
    __m512i acc[INT_ROWS][INT_BLOCKS];
    for (int64_t g = 0; g < w.groups; g++) {
        int64_t from = g * w.width, to = g + 1 < w.groups ? from + w.width : w.quads;
        for (int b = 0; b < blocks; b++) {
            __m512i bias = _mm512_loadu_si512(w.bias + (b * w.groups + g) * OUTS);
            for (int i = 0; i < rows; i++) acc[i][b] = bias;
        }
        for (int64_t q = from; q < to; q++) {
            __m512i c[INT_BLOCKS];
            for (int b = 0; b < blocks; b++) c[b] = _mm512_loadu_si512(w.codes + (b * w.quads + q) * 4 * OUTS);
            for (int i = 0; i < rows; i++) {
                int32_t four;
                memcpy(&four, x + i * ldx + 4 * q, 4);
                __m512i f = _mm512_set1_epi32(four);
                for (int b = 0; b < blocks; b++) acc[i][b] = _mm512_dpbusd_epi32(acc[i][b], f, c[b]);
            }
        }
        for (int b = 0; b < blocks; b++) {
            vf s = v_load(w.scales + (b * w.groups + g) * OUTS);
            for (int i = 0; i < rows; i++) {
                float *at = y + i * ldy + b * OUTS;
                vf sum = _mm512_mul_ps(_mm512_cvtepi32_ps(acc[i][b]), s);
                if (g > 0) sum = _mm512_add_ps(v_load(at), sum);
                if (g + 1 == w.groups) sum = _mm512_mul_ps(sum, v_all(sx[i]));
                v_store(at, sum);
            }
        }
    }
}
#elif SIMD_PATH == SIMD_AVX2
enum { INT_ROWS = 3, INT_BLOCKS = 1 };

/* Pairs of products are added in 16 bits: 4 * 255 * 7 a quad's lane, for codes up to 7, of which so many fit. */
enum { SHORT_QUADS = 9 };

SIMD_INLINE __m256i wide_dot(__m256i acc, __m256i x, __m256i w) { /* exact for any codes, slower */
    __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8), odd = _mm256_srai_epi16(w, 8);
    __m256i lo = _mm256_and_si256(x, _mm256_set1_epi16(255)), hi = _mm256_srli_epi16(x, 8);
    return _mm256_add_epi32(acc, _mm256_add_epi32(_mm256_madd_epi16(lo, even), _mm256_madd_epi16(hi, odd)));
}

SIMD_INLINE void int_tile(int rows, int blocks, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                          int32_t max_code, float *y, int64_t ldy) {
    (void)blocks;
    const __m256i ones = _mm256_set1_epi16(1);
    for (int64_t g = 0; g < w.groups; g++) {
        int64_t q = g * w.width, to = g + 1 < w.groups ? q + w.width : w.quads;
        __m256i acc[INT_ROWS][2];
        for (int i = 0; i < rows; i++)
            for (int b = 0; b < 2; b++) acc[i][b] = _mm256_loadu_si256((const __m256i *)(w.bias + g * OUTS + 8 * b));
        while (q < to) {
            int64_t end = max_code > 7 ? to : to - q < SHORT_QUADS ? to : q + SHORT_QUADS;
            __m256i sum[INT_ROWS][2];
            for (int i = 0; i < rows; i++)
                for (int b = 0; b < 2; b++) sum[i][b] = _mm256_setzero_si256();
            for (; q < end; q++) {
                __m256i c[2];
                for (int b = 0; b < 2; b++) c[b] = _mm256_loadu_si256((const __m256i *)(w.codes + q * 4 * OUTS + 32 * b));
                for (int i = 0; i < rows; i++) {
                    int32_t four;
                    memcpy(&four, x + i * ldx + 4 * q, 4);
                    __m256i f = _mm256_set1_epi32(four);
                    for (int b = 0; b < 2; b++) {
                        if (max_code > 7)
                            acc[i][b] = wide_dot(acc[i][b], f, c[b]);
                        else
                            sum[i][b] = _mm256_add_epi16(sum[i][b], _mm256_maddubs_epi16(f, c[b]));
                    }
                }
            }
            for (int i = 0; i < rows; i++)
                for (int b = 0; b < 2; b++) acc[i][b] = _mm256_add_epi32(acc[i][b], _mm256_madd_epi16(sum[i][b], ones));
        }
        for (int b = 0; b < 2; b++) {
            vf s = v_load(w.scales + g * OUTS + 8 * b);
            for (int i = 0; i < rows; i++) {
                float *at = y + i * ldy + 8 * b;
                vf f = _mm256_mul_ps(_mm256_cvtepi32_ps(acc[i][b]), s);
                if (g > 0) f = _mm256_add_ps(v_load(at), f);
                if (g + 1 == w.groups) f = _mm256_mul_ps(f, v_all(sx[i]));
                v_store(at, f);
            }
        }
    }
}
#else
enum { INT_ROWS = 1, INT_BLOCKS = 1 };

SIMD_INLINE void int_tile(int rows, int blocks, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                          int32_t max_code, float *y, int64_t ldy) {
    (void)rows, (void)blocks, (void)ldx, (void)max_code, (void)ldy;
    for (int64_t g = 0; g < w.groups; g++) {
        int64_t from = g * w.width, to = g + 1 < w.groups ? from + w.width : w.quads;
        int32_t acc[OUTS];
        for (int o = 0; o < OUTS; o++) acc[o] = w.bias[g * OUTS + o];
        for (int64_t q = from; q < to; q++)
            for (int o = 0; o < OUTS; o++)
                for (int j = 0; j < 4; j++) acc[o] += x[4 * q + j] * w.codes[(q * OUTS + o) * 4 + j];
        for (int o = 0; o < OUTS; o++) {
            float sum = (float)acc[o] * w.scales[g * OUTS + o];
            if (g > 0) sum = y[o] + sum;
            y[o] = g + 1 == w.groups ? sum * sx[0] : sum;
        }
    }
}
#endif

/* All rows of x against blocks of weights: blocks and short codes are constants where this is called. */
SIMD_INLINE void int_panel(int blocks, int64_t rows, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                           int32_t max_code, float *y, int64_t ldy) {
    int64_t r = 0;
    for (; r + INT_ROWS <= rows; r += INT_ROWS)
        int_tile(INT_ROWS, blocks, x + r * ldx, ldx, sx + r, w, max_code, y + r * ldy, ldy);
    for (; r < rows; r++) int_tile(1, blocks, x + r * ldx, ldx, sx + r, w, max_code, y + r * ldy, ldy);
}

/* The last outputs, fewer than a block. */
static void int_rest(int64_t n, int64_t rows, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                     int32_t max_code, float *y, int64_t ldy) {
    for (int64_t r = 0; r < rows; r++) {
        float out[OUTS];
        int_tile(1, 1, x + r * ldx, ldx, sx + r, w, max_code, out, OUTS);
        memcpy(y + r * ldy, out, (size_t)n * sizeof *y);
    }
}

static void product_integers(const uint8_t *x, const float *sx, int64_t rows, int64_t in, const int8_t *codes,
                             const float *scales, const int32_t *bias, int64_t out, int64_t group, int32_t max_code, float *y,
                             int64_t ldy) {
    int64_t quads = (in + 3) / 4, ldx = 4 * quads, groups = (in + group - 1) / group;
    struct weights w = {codes, scales, bias, groups, quads, group / 4};
    while (out > 0) {
        int64_t blocks = 1;
        if (out >= INT_BLOCKS * OUTS) {
            blocks = INT_BLOCKS;
#if SIMD_PATH == SIMD_AVX2
            if (max_code > 7)
                int_panel(INT_BLOCKS, rows, x, ldx, sx, w, 127, y, ldy);
            else
#endif
                int_panel(INT_BLOCKS, rows, x, ldx, sx, w, 7, y, ldy);
        } else if (out >= OUTS) {
            int_panel(1, rows, x, ldx, sx, w, max_code, y, ldy);
        } else {
            int_rest(out, rows, x, ldx, sx, w, max_code, y, ldy);
        }
        out -= blocks * OUTS, y += blocks * OUTS;
        w.codes += blocks * quads * 4 * OUTS, w.scales += blocks * groups * OUTS, w.bias += blocks * groups * OUTS;
    }
}

static void product_sum8(const float *x, int64_t rows, int64_t in, const float *w, int64_t out, float *y, int64_t ldy) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < out; j++) y[r * ldy + j] = rule_dot8(w + j * in, x + r * in, in);
}
