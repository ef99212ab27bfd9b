/* integers.h: products of quantised activations and weights on their 8-bit codes, bit for bit those of docs/numerics.md,
 * and the exact product of a weight that is not quantised.
 *
 * Sums of codes are exact in 32 bits in any order. Activations come as code + 128, since the instructions multiply
 * unsigned bytes with signed ones; sums start at the bias that takes the 128 back. */

/* Codes of a block and group of weights, in the layout of qat/fakequant/fakequant.h; those of the next block are step
 * bytes further, and the biases bias_step further. */
struct codes {
    const int8_t *data;
    const int32_t *bias;
    int64_t step, bias_step;
};

enum { OUTS = 16 };

#if SIMD_PATH == SIMD_AVX512
enum { INT_ROWS = 6, INT_BLOCKS = 4 };

/* sum[rows][blocks * OUTS] of products over quads of codes. rows and blocks are constants where this is called, so that
 * the sums stay in registers; wide says that codes may be larger than 7. */
SIMD_INLINE void int_sums(int rows, int blocks, int wide, const uint8_t *x, int64_t ldx, struct codes w, int64_t quads,
                          int32_t sum[INT_ROWS][INT_BLOCKS * OUTS]) {
    (void)wide;
    __m512i acc[INT_ROWS][INT_BLOCKS];
    for (int i = 0; i < rows; i++)
        for (int b = 0; b < blocks; b++) acc[i][b] = _mm512_loadu_si512(w.bias + b * w.bias_step);
    for (int64_t q = 0; q < quads; q++) {
        __m512i c[INT_BLOCKS];
        for (int b = 0; b < blocks; b++) c[b] = _mm512_loadu_si512(w.data + b * w.step + q * 4 * OUTS);
        for (int i = 0; i < rows; i++) {
            int32_t four;
            memcpy(&four, x + i * ldx + 4 * q, 4);
            __m512i f = _mm512_set1_epi32(four);
            for (int b = 0; b < blocks; b++) /* gcc copies the sum before its own form of the instruction */
                __asm__("vpdpbusd %2, %1, %0" : "+v"(acc[i][b]) : "v"(f), "v"(c[b]));
        }
    }
    for (int i = 0; i < rows; i++)
        for (int b = 0; b < blocks; b++) _mm512_storeu_si512(sum[i] + b * OUTS, acc[i][b]);
}
#elif SIMD_PATH == SIMD_AVX2
enum { INT_ROWS = 3, INT_BLOCKS = 1 };

/* So many products of two pairs, at most 2 * 255 * 7 each, can be added in 16 bits. */
enum { SHORT_QUADS = 9 };

/* acc + the four products of each lane, in 32 bits. */
SIMD_INLINE __m256i wide_dot(__m256i acc, __m256i x, __m256i w) {
    __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8), odd = _mm256_srai_epi16(w, 8);
    __m256i lo = _mm256_and_si256(x, _mm256_set1_epi16(255)), hi = _mm256_srli_epi16(x, 8);
    return _mm256_add_epi32(acc, _mm256_add_epi32(_mm256_madd_epi16(lo, even), _mm256_madd_epi16(hi, odd)));
}

SIMD_INLINE void int_sums(int rows, int blocks, int wide, const uint8_t *x, int64_t ldx, struct codes w, int64_t quads,
                          int32_t sum[INT_ROWS][INT_BLOCKS * OUTS]) {
    (void)blocks;
    __m256i acc[INT_ROWS][2];
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++) acc[i][h] = _mm256_loadu_si256((const __m256i *)(w.bias + 8 * h));
    for (int64_t q = 0; q < quads;) {
        int64_t end = quads - q < SHORT_QUADS ? quads : q + SHORT_QUADS;
        __m256i small[INT_ROWS][2];
        for (int i = 0; i < rows; i++)
            for (int h = 0; h < 2; h++) small[i][h] = _mm256_setzero_si256();
        for (; q < end; q++) {
            __m256i c[2];
            for (int h = 0; h < 2; h++) c[h] = _mm256_loadu_si256((const __m256i *)(w.data + q * 4 * OUTS + 32 * h));
            for (int i = 0; i < rows; i++) {
                int32_t four;
                memcpy(&four, x + i * ldx + 4 * q, 4);
                __m256i f = _mm256_set1_epi32(four);
                for (int h = 0; h < 2; h++)
                    if (wide)
                        acc[i][h] = wide_dot(acc[i][h], f, c[h]);
                    else
                        small[i][h] = _mm256_add_epi16(small[i][h], _mm256_maddubs_epi16(f, c[h]));
            }
        }
        for (int i = 0; i < rows; i++)
            for (int h = 0; h < 2; h++)
                acc[i][h] = _mm256_add_epi32(acc[i][h], _mm256_madd_epi16(small[i][h], _mm256_set1_epi16(1)));
    }
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++) _mm256_storeu_si256((__m256i *)(sum[i] + 8 * h), acc[i][h]);
}
#else
enum { INT_ROWS = 1, INT_BLOCKS = 1 };

SIMD_INLINE void int_sums(int rows, int blocks, int wide, const uint8_t *x, int64_t ldx, struct codes w, int64_t quads,
                          int32_t sum[INT_ROWS][INT_BLOCKS * OUTS]) {
    (void)rows, (void)blocks, (void)wide, (void)ldx;
    for (int o = 0; o < OUTS; o++) sum[0][o] = w.bias[o];
    for (int64_t q = 0; q < quads; q++)
        for (int o = 0; o < OUTS; o++)
            for (int j = 0; j < 4; j++) sum[0][o] += x[4 * q + j] * w.data[(q * OUTS + o) * 4 + j];
}
#endif

/* A matrix of weights from some block on. */
struct weights {
    const int8_t *codes;
    const float *scales;
    const int32_t *bias;
    int64_t groups, quads, width; /* of a row: groups, quads of codes; quads of a full group */
};

/* y[rows, blocks * OUTS]; rows, blocks and wide are constants where this is called. */
SIMD_INLINE void int_tile(int rows, int blocks, int wide, const uint8_t *x, int64_t ldx, const float *sx, struct weights w,
                          float *y, int64_t ldy) {
    _Alignas(64) int32_t sum[INT_ROWS][INT_BLOCKS * OUTS];
    for (int64_t g = 0; g < w.groups; g++) {
        int64_t from = g * w.width, quads = (g + 1 < w.groups ? from + w.width : w.quads) - from;
        struct codes c = {w.codes + from * 4 * OUTS, w.bias + g * OUTS, w.quads * 4 * OUTS, w.groups * OUTS};
        int_sums(rows, blocks, wide, x + 4 * from, ldx, c, quads, sum);
        for (int b = 0; b < blocks; b++)
            for (int o = 0; o < OUTS; o += SIMD_LANES) {
                vf scale = v_load(w.scales + (b * w.groups + g) * OUTS + o);
                for (int i = 0; i < rows; i++) {
                    float *to = y + i * ldy + b * OUTS + o;
                    vf f = v_ints(sum[i] + b * OUTS + o) * scale;
                    if (g > 0) f = v_load(to) + f;
                    if (g + 1 == w.groups) f = f * v_all(sx[i]);
                    v_store(to, f);
                }
            }
    }
}

/* All rows of x against blocks of weights: blocks and wide are constants where this is called. */
SIMD_INLINE void int_panel(int blocks, int wide, int64_t rows, const uint8_t *x, int64_t ldx, const float *sx,
                           struct weights w, float *y, int64_t ldy) {
    int64_t r = 0;
    for (; r + INT_ROWS <= rows; r += INT_ROWS)
        int_tile(INT_ROWS, blocks, wide, x + r * ldx, ldx, sx + r, w, y + r * ldy, ldy);
    for (; r < rows; r++) int_tile(1, blocks, wide, x + r * ldx, ldx, sx + r, w, y + r * ldy, ldy);
}

/* The last outputs, fewer than a block. */
static void int_rest(int64_t n, int64_t rows, const uint8_t *x, int64_t ldx, const float *sx, struct weights w, float *y,
                     int64_t ldy) {
    for (int64_t r = 0; r < rows; r++) {
        float out[OUTS];
        int_tile(1, 1, 1, x + r * ldx, ldx, sx + r, w, out, OUTS);
        memcpy(y + r * ldy, out, (size_t)n * sizeof *y);
    }
}

static void product_integers(const uint8_t *x, const float *sx, int64_t rows, int64_t in, const int8_t *codes,
                             const float *scales, const int32_t *bias, int64_t out, int64_t group, int32_t max_code, float *y,
                             int64_t ldy) {
    int64_t quads = (in + 3) / 4, ldx = 4 * quads, groups = (in + group - 1) / group;
    struct weights w = {codes, scales, bias, groups, quads, group / 4};
    while (out > 0) {
        int64_t blocks = out < INT_BLOCKS * OUTS ? 1 : INT_BLOCKS;
        if (out < OUTS)
            int_rest(out, rows, x, ldx, sx, w, y, ldy);
        else if (blocks == INT_BLOCKS && max_code > 7)
            int_panel(INT_BLOCKS, 1, rows, x, ldx, sx, w, y, ldy);
        else if (blocks == INT_BLOCKS)
            int_panel(INT_BLOCKS, 0, rows, x, ldx, sx, w, y, ldy);
        else
            int_panel(1, 1, rows, x, ldx, sx, w, y, ldy);
        out -= blocks * OUTS, y += blocks * OUTS;
        w.codes += blocks * quads * 4 * OUTS, w.scales += blocks * groups * OUTS, w.bias += blocks * groups * OUTS;
    }
}

static void product_sum8(const float *x, int64_t rows, int64_t in, const float *w, int64_t out, float *y, int64_t ldy) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < out; j++) y[r * ldy + j] = rule_dot8(w + j * in, x + r * in, in);
}
