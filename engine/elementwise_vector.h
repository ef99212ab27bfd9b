/* elementwise_vector.h: elementwise.h in vectors. Lanes past the end of an array are loaded as zeros and not stored; where a
 * sum could tell, +0 is what they add to it. */

/* The bits of the largest abs(x). */
static int32_t top_bits(const float *x, size_t n) {
    vi a = top_zero();
    vi b = top_zero();
    size_t i = 0;
    for (; i + 2 * STEP <= n; i += 2 * STEP) {
        a = top_of(a, v_load(x + i));
        b = top_of(b, v_load(x + i + STEP));
    }
    for (; i < n; i += STEP) {
        a = top_of(a, v_load_upto(x + i, n - i));
    }
    const int32_t first = top_most(a);
    const int32_t second = top_most(b);
    return first > second ? first : second;
}

static bool all_finite(const float *v, size_t n) { return top_bits(v, n) < 0x7f800000; }

static float quantise(const float *x, size_t n, size_t padded, int8_t *codes, int32_t *sums) {
    const chiplm_grid grid = chiplm_grid_of_top(top_bits(x, n));
    if (grid.inverse == 0.0f) {
        memset(codes, 0, padded);
    } else {
        for (size_t i = 0; i < n; i += STEP) {
            v_store_codes(codes + i, n - i < STEP ? n - i : STEP, v_code(v_load_upto(x + i, n - i), grid.inverse));
        }
        memset(codes + n, 0, padded - n);
    }
    for (size_t c = 0; sums != NULL && c < padded / CHIPLM_CHUNK; c++) {
        sums[c] = chunk_sum(codes + c * CHIPLM_CHUNK);
    }
    return grid.scale;
}

static void rmsnorm(const float *x, const float *gain, size_t n, float eps, float *y) {
    eight squares = eight_zero();
    for (size_t i = 0; i < n; i += STEP) {
        const vf v = v_load_upto(x + i, n - i);
        squares = eight_add(squares, v * v, i);
    }
    const vf r = v_set(1.0f / sqrtf(eight_join(squares) / (float)n + eps));
    for (size_t i = 0; i < n; i += STEP) {
        vf v = v_load_upto(x + i, n - i) * r;
        if (gain != NULL) {
            v = v * v_load_upto(gain + i, n - i);
        }
        v_store_upto(y + i, n - i, v);
    }
}

static void gate(float *gate, const float *up, size_t n, bool swiglu) {
    for (size_t i = 0; i < n; i += STEP) {
        const vf g = v_load_upto(gate + i, n - i);
        const vf u = v_load_upto(up + i, n - i);
        if (swiglu) {
            v_store_upto(gate + i, n - i, (g * v_sigmoid(g)) * u);
        } else {
            v_store_upto(gate + i, n - i, v_where_positive(g, g * u));
        }
    }
}

static void gelu_mix(float *x, const float *e, size_t n) {
    for (size_t i = 0; i < n; i += STEP) {
        v_store_upto(x + i, n - i, v_gelu(v_load_upto(x + i, n - i)) * v_load_upto(e + i, n - i));
    }
}

static void rotate(float *x, uint32_t d, const float *cosine, const float *sine) {
    const uint32_t half = d / 2;
    for (uint32_t i = 0; i < half; i += STEP) {
        const vf a = v_load_upto(x + i, half - i);
        const vf b = v_load_upto(x + half + i, half - i);
        const vf c = v_load_upto(cosine + i, half - i);
        const vf s = v_load_upto(sine + i, half - i);
        v_store_upto(x + i, half - i, a * c - b * s);
        v_store_upto(x + half + i, half - i, a * s + b * c);
    }
}

static bool soft_sum(const float *v, size_t n, float *most, float *sum) {
    vf top = v_set(v[0]);
    vi magnitude = top_zero();
    for (size_t i = 0; i < n; i += STEP) {
        const vf x = v_load_upto(v + i, n - i);
        magnitude = top_of(magnitude, x);
        top = v_larger(n - i < STEP ? v_keep_first(x, n - i, top) : x, top);
    }
    const float m = v_most(top);
    eight total = eight_zero();
    size_t done = 0;
    for (; done + SIDE_BY_SIDE * STEP <= n; done += SIDE_BY_SIDE * STEP) {
        vf a[SIDE_BY_SIDE];
        for (size_t j = 0; j < SIDE_BY_SIDE; j++) {
            a[j] = v_load(v + done + j * STEP) - v_set(m);
        }
        v_exps(SIDE_BY_SIDE, a);
        for (size_t j = 0; j < SIDE_BY_SIDE; j++) {
            total = eight_add(total, a[j], done + j * STEP);
        }
    }
    for (size_t i = done; i < n; i += STEP) {
        const vf a = v_exp(v_load_upto(v + i, n - i) - v_set(m));
        total = eight_add(total, n - i < STEP ? v_keep_first(a, n - i, v_set(0.0f)) : a, i);
    }
    *most = m;
    *sum = eight_join(total);
    return top_most(magnitude) < 0x7f800000;
}

typedef int8_t block_of_codes __attribute__((vector_size(16)));

/* The first 16 columns of a block whose fields were shifted down. */
CHIPLM_INLINE block_of_codes first_fields(block_of_codes v, uint32_t bits) {
    const int8_t mask = (int8_t)((1 << bits) - 1);
    const int8_t sign = (int8_t)(1 << (bits - 1));
    return bits == 8 ? v : ((v & mask) ^ sign) - sign;
}

/* Floats of 16 codes, or of the first n. */
CHIPLM_INLINE void widen_codes(block_of_codes codes, float scale, size_t n, float *y) {
    int8_t lanes[16];
    memcpy(lanes, &codes, sizeof lanes);
    for (size_t i = 0; i < n && i < 16; i += STEP) {
        v_store_upto(y + i, n - i, v_codes(lanes + i) * v_set(scale));
    }
}

/* bits is constant where this is called. */
CHIPLM_INLINE void dequantise_of(uint32_t bits, const chiplm_tensor *w, uint32_t row, float *y) {
    const uint32_t group = w->group == 0 ? w->columns : w->group; /* of whole runs of 16, but for the row */
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    block_of_codes block = {0};
    for (uint32_t i = 0; i < w->columns; i += 16) {
        if (i % (128 / bits) == 0) {
            memcpy(&block, codes, sizeof block);
            codes += sizeof block;
        } else {
            block = block >> (bits & 7);
        }
        widen_codes(first_fields(block, bits), scale_at(w, (size_t)row * w->groups + i / group), w->columns - i, y + i);
    }
}

static void dequantise(const chiplm_tensor *w, uint32_t row, float *y) {
    switch (w->bits) {
    case 2:
        dequantise_of(2, w, row, y);
        break;
    case 4:
        dequantise_of(4, w, row, y);
        break;
    default:
        dequantise_of(8, w, row, y);
        break;
    }
}

static void product_floats(const chiplm_tensor *w, const float *x, float *y) {
    for (uint32_t r = 0; r < w->rows; r++) {
        const float *row = (const float *)(const void *)(w->codes.at + (size_t)r * w->stride);
        eight sums = eight_zero();
        for (size_t i = 0; i < w->columns; i += STEP) {
            const size_t left = w->columns - i;
            const vf products = v_load_upto(row + i, left) * v_load_upto(x + i, left);
            sums = eight_add(sums, products, i);
        }
        y[r] = eight_join(sums);
    }
}
