/* elementwise_pie.h: elementwise.h, additions.h and neurons.h on the kernels for the vector unit. These take whole eights of
 * values, or sixteens, at multiples of 16; what is left over at the end of a vector, and vectors that lie elsewhere, go the
 * way of the definition. Square roots and the divisions of norms and scales, a few for each vector, are C. */
#define add add_anywhere
#define blend blend_anywhere
#define mark_open mark_open_anywhere
#define mark_used mark_used_anywhere
#define quantise quantise_anywhere
#define rmsnorm rmsnorm_anywhere
#define gate gate_anywhere
#define gelu_mix gelu_mix_anywhere
#define rotate rotate_anywhere
#define all_finite all_finite_anywhere
#define dequantise dequantise_anywhere
#include "additions.h"
#include "neurons.h"
#include "elementwise.h"
#undef add
#undef blend
#undef mark_open
#undef mark_used
#undef quantise
#undef rmsnorm
#undef gate
#undef gelu_mix
#undef rotate
#undef all_finite
#undef dequantise

CHIPLM_INLINE bool at16(const void *a) { return (uintptr_t)a % 16 == 0; }

/* What of n values the kernels take that take eights. */
CHIPLM_INLINE uint32_t eights(size_t n) { return (uint32_t)n & ~7U; }

/* The bits of the largest abs(x): NaN and infinity come out above every number. */
static int32_t largest_magnitude(const float *x, size_t n) {
    size_t i = 0;
    int32_t top = 0;
    if (at16(x) && n >= 8) {
        i = eights(n);
        top = (int32_t)chiplm_pie_top(x, (uint32_t)i);
    }
    for (; i < n; i++) {
        const int32_t a = (int32_t)(chiplm_bits(x[i]) & 0x7fffffffU);
        top = a > top ? a : top;
    }
    return top;
}

static float quantise(const float *x, size_t n, size_t padded, int8_t *codes, int32_t *sums) {
    if (!at16(x) || !at16(codes) || n % 8 != 0 || n == 0 || padded % 8 != 0) {
        return quantise_anywhere(x, n, padded, codes, sums);
    }
    const chiplm_grid grid = chiplm_grid_of_top((int32_t)chiplm_pie_top(x, (uint32_t)n));
    if (grid.inverse == 0.0f) {
        memset(codes, 0, padded);
    } else {
        chiplm_pie_codes(x, (uint32_t)n, chiplm_bits(grid.inverse), codes, (uint32_t)padded);
    }
    if (sums != NULL) {
        chiplm_pie_sums(codes, (uint32_t)(padded / CHIPLM_CHUNK), sums);
    }
    return grid.scale;
}

static void rmsnorm(const float *x, const float *gain, size_t n, float eps, float *y) {
    if (!at16(x) || n % 8 != 0 || n == 0 || (gain == NULL ? x != y : !at16(gain) || !at16(y))) {
        rmsnorm_anywhere(x, gain, n, eps, y);
        return;
    }
    const float squares = chiplm_from_bits(chiplm_pie_squares(x, (uint32_t)n));
    const float r = 1.0f / sqrtf(squares / (float)n + eps);
    if (gain == NULL) {
        chiplm_pie_scale(y, (uint32_t)n, chiplm_bits(r));
    } else {
        chiplm_pie_gain(x, chiplm_bits(r), gain, (uint32_t)n, y);
    }
}

/* Constants of chiplm_pie_exp: see pie.h. The words that it does not read are 0. */
static const float exp_constants[16] __attribute__((aligned(16))) = {
    0.0f,             0x1.715476p+0f,  0x1.8p23f,       0x1.63p-1f,      /* log2(e), to round, ln(2) in two parts */
    -0x1.bd0106p-13f, 0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f,  /* 1/5040, 1/720, 1/120 */
    0x1.555556p-5f,   0x1.555556p-3f,  0.5f,            1.0f,            /* 1/24, 1/6, 1/2, 1 */
    -86.0f,           86.0f,           43.0f,           0.0f,
};
static const float gelu_constants[2] = {-0x1.988454p+0f, 0x1.6e4e26p-5f};

/* From the bits of b and this, a guess at 1 / b. */
enum { DIVISION_GUESS = 0x7ef311c7 };

enum { EXPS = 64 }; /* whose arguments are in memory at a time */

/* x = (x * sigmoid(z)) * by, z being x or what gelu makes of it. */
static void sigmoid_mix(float *x, const float *by, uint32_t n, bool gelu) {
    float exps[EXPS] __attribute__((aligned(16)));
    for (uint32_t i = 0; i < n; i += EXPS) {
        const uint32_t count = n - i < EXPS ? n - i : EXPS;
        if (gelu) {
            chiplm_pie_gelu(x + i, count, exps, gelu_constants);
        } else {
            chiplm_pie_negate(x + i, count, exps);
        }
        chiplm_pie_exp(exps, count, 0, exp_constants);
        chiplm_pie_sigmoid(x + i, exps, by + i, count, x + i, DIVISION_GUESS);
    }
}

static void gate(float *gate, const float *up, size_t n, bool swiglu) {
    const uint32_t whole = at16(gate) && at16(up) ? eights(n) : 0;
    if (whole > 0 && swiglu) {
        sigmoid_mix(gate, up, whole, false);
    } else if (whole > 0) {
        chiplm_pie_gate(gate, up, whole);
    }
    gate_anywhere(gate + whole, up + whole, n - whole, swiglu);
}

static void gelu_mix(float *x, const float *e, size_t n) {
    const uint32_t whole = at16(x) && at16(e) ? eights(n) : 0;
    if (whole > 0) {
        sigmoid_mix(x, e, whole, true);
    }
    gelu_mix_anywhere(x + whole, e + whole, n - whole);
}

static void rotate(float *x, uint32_t d, const float *cosine, const float *sine) {
    if (d % 4 != 0 || ((uintptr_t)x | (uintptr_t)cosine | (uintptr_t)sine) % 8 != 0) {
        rotate_anywhere(x, d, cosine, sine);
        return;
    }
    chiplm_pie_rotate(x, d / 2, cosine, sine);
}

static void add(float *x, const float *y, size_t n) {
    const uint32_t whole = at16(x) && at16(y) ? eights(n) : 0;
    if (whole > 0) {
        chiplm_pie_add(x, y, whole);
    }
    add_anywhere(x + whole, y + whole, n - whole);
}

static void blend(float *y, const float *x, float a, float b, size_t n) {
    const uint32_t whole = at16(y) && at16(x) ? eights(n) : 0;
    if (whole > 0) {
        chiplm_pie_blend(y, x, chiplm_bits(a), chiplm_bits(b), whole);
    }
    blend_anywhere(y + whole, x + whole, a, b, n - whole);
}

static bool all_finite(const float *v, size_t n) { return largest_magnitude(v, n) < 0x7f800000; }

static uint32_t mark_open(const float *gate, uint32_t n, uint8_t *marks) {
    const uint32_t whole = at16(gate) && at16(marks) ? n & ~15U : 0;
    const uint32_t open = whole > 0 ? chiplm_pie_open(gate, whole, marks) : 0;
    return open + mark_open_anywhere(gate + whole, n - whole, marks + whole);
}

static uint32_t mark_used(const int8_t *codes, uint32_t n, uint8_t *marks) {
    const uint32_t whole = at16(codes) && at16(marks) ? n & ~15U : 0;
    const uint32_t used = whole > 0 ? chiplm_pie_used(codes, whole, marks) : 0;
    return used + mark_used_anywhere(codes + whole, n - whole, marks + whole);
}

/* Groups are whole blocks of 32 weights of 4 bits, but for the last. */
static void dequantise(const chiplm_tensor *w, uint32_t row, float *y) {
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    if (w->bits != 4 || w->columns % 32 != 0 || group % 32 != 0 || !at16(y)) {
        dequantise_anywhere(w, row, y);
        return;
    }
    const uint8_t *codes = w->codes.at + (size_t)row * w->stride;
    for (uint32_t g = 0, i = 0; i < w->columns; g++, i += group) {
        const uint32_t count = w->columns - i < group ? w->columns - i : group;
        const float scale = scale_at(w, (size_t)row * w->groups + g);
        chiplm_pie_floats4(codes + i / 2, count / 32, chiplm_bits(scale), y + i);
    }
}
