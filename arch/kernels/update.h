/* update.h: what happens to gradients after a micro-batch: their sum, their norm, and the update of the weights. */

static void add_rows(const float *x, const int32_t *ids, int64_t rows, int64_t cols, float *table) {
    for (int64_t r = 0; r < rows; r++) {
        const float *from = x + (int64_t)ids[r] * cols;
        float *to = table + (int64_t)ids[r] * cols;
        for (int64_t i = 0; i < cols; i++) to[i] += from[i];
    }
}

/* Elements that a pass works on at a time where it needs more than one loop. */
enum { UPDATE_BLOCK = 256 };

/* The sum runs in 16 lanes, over i mod 16, which are joined by halves. The lanes are vectors of doubles: from an array, gcc
 * vectorises across the iterations, which is far slower. */
enum { SQUARES = 16, SQUARES_PART = SIMD_LANES >= 8 ? SIMD_LANES / 2 : 2, SQUARES_PARTS = SQUARES / SQUARES_PART };
typedef double squares_part __attribute__((vector_size(8 * SQUARES_PART)));

static double sum_squares(const float *x, int64_t n) {
    squares_part sums[SQUARES_PARTS] = {{0}};
    for (int64_t from = 0; from < n; from += UPDATE_BLOCK) {
        int64_t len = n - from < UPDATE_BLOCK ? n - from : UPDATE_BLOCK;
        double square[UPDATE_BLOCK];
        for (int64_t i = 0; i < len; i++) square[i] = (double)x[from + i] * x[from + i];
        int64_t end = len + (-len & (SQUARES - 1));
        for (int64_t i = len; i < end; i++) square[i] = 0;
        for (int64_t i = 0; i < end; i += SQUARES)
            for (int p = 0; p < SQUARES_PARTS; p++) {
                squares_part d;
                memcpy(&d, square + i + p * SQUARES_PART, sizeof d);
                sums[p] += d;
            }
    }
    double lanes[SQUARES];
    memcpy(lanes, sums, sizeof lanes);
    for (int half = SQUARES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
    return lanes[0];
}

/* A block at a time, for the roots: gcc calls sqrtf in a loop, for the sake of errno. */
static int32_t adamw(float *restrict w, float *restrict m, float *restrict v, const float *restrict g, int64_t n,
                     struct k_adamw k) {
    float scale = k.grad_scale, rise1 = k.one_minus_beta1, beta2 = k.beta2, rise2 = k.one_minus_beta2;
    float inv = k.inv_sqrt_bias2, eps = k.eps, decay = k.decay, step = k.step_size;
    float root[UPDATE_BLOCK] = {0};
    int32_t largest = 0; /* the bits of magnitudes are ordered as they are, NaN last */
    for (int64_t from = 0; from < n; from += UPDATE_BLOCK) {
        int64_t len = n - from < UPDATE_BLOCK ? n - from : UPDATE_BLOCK;
        for (int64_t i = 0; i < len; i++) {
            float d = g[i] * scale;
            m[i] = rule_cut(m[i] + (d - m[i]) * rise1);
            v[i] = root[i] = rule_cut(v[i] * beta2 + (d * d) * rise2);
        }
        for (int i = 0; i < UPDATE_BLOCK; i += SIMD_LANES) v_store(root + i, v_sqrt(v_load(root + i)));
        for (int64_t i = 0; i < len; i++) {
            w[i] = w[i] * decay - step * (m[i] / (root[i] * inv + eps));
            int32_t bits = (int32_t)(rule_bits(w[i]) & 0x7fffffffu);
            largest = bits > largest ? bits : largest;
        }
        w += len, m += len, v += len, g += len;
    }
    return largest < 0x7f800000;
}

static void momentum(const float *restrict g, int64_t n, float scale, float rise, float ahead, float *restrict m,
                     float *restrict u) {
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        m[i] = rule_cut(m[i] + (d - m[i]) * rise);
        u[i] = rule_cut(d + (m[i] - d) * ahead);
    }
}

static int32_t blend(float a, const float *restrict x, float b, float *restrict y, int64_t n) {
    int32_t largest = 0; /* as in adamw */
    for (int64_t i = 0; i < n; i++) {
        y[i] = a * x[i] + b * y[i];
        int32_t bits = (int32_t)(rule_bits(y[i]) & 0x7fffffffu);
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000;
}
