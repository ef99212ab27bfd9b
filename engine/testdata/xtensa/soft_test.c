/* Holds soft_float.c and soft_integer.c to the arithmetic of the host: every pair of the operands where something
 * changes, a count of random ones (in millions, the argument), and the square root of every fraction. Prints how much
 * it compared; or the first differences, and ends with 1. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft_float.h"
#include "soft_integer.h"

static uint64_t compared, wrong;

static float value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Counts a comparison; prints those that fail, until there are enough. */
static void same(const char *what, uint64_t a, uint64_t b, uint64_t got, uint64_t want) {
    compared++;
    if (got != want && wrong++ < 20) {
        printf("%s of %" PRIx64 " and %" PRIx64 " is %" PRIx64 ", the host says %" PRIx64 "\n", what, a, b, got, want);
    }
}

static void same_float(const char *what, uint32_t a, uint32_t b, uint32_t got, float want) {
    const bool both = isnan(want) && isnan(value(got));
    same(what, a, b, both ? 0 : got, both ? 0 : bits_of(want));
}

static uint64_t state = 1;

static uint64_t any(void) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static void pair(uint32_t a, uint32_t b) {
    const float x = value(a);
    const float y = value(b);
    same_float("sum", a, b, host_addsf3(a, b), x + y);
    same_float("difference", a, b, host_subsf3(a, b), x - y);
    same_float("product", a, b, host_mulsf3(a, b), x * y);
    same_float("quotient", a, b, host_divsf3(a, b), x / y);
    same("==", a, b, host_eqsf2(a, b) == 0, x == y);
    same("!=", a, b, host_nesf2(a, b) != 0, x != y);
    same("<", a, b, host_ltsf2(a, b) < 0, x < y);
    same("<=", a, b, host_lesf2(a, b) <= 0, x <= y);
    same(">", a, b, host_gtsf2(a, b) > 0, x > y);
    same(">=", a, b, host_gesf2(a, b) >= 0, x >= y);
    same("unordered", a, b, host_unordsf2(a, b) != 0, x != x || y != y);
}

/* Whether C defines what x becomes as an integer of this range. Not for a NaN; between -1 and 0, 0 serves as well. */
static bool fits(float x, float least, float most) { return x >= least && x < most; }

static void single(uint32_t a) {
    const float x = value(a);
    same_float("negative", a, 0, host_negsf2(a), -x);
    same_float("root", a, 0, float_sqrt(a), sqrtf(x));
    const int64_t s32 = fits(x, -0x1p31f, 0x1p31f) ? (int32_t)x : x < 0 ? INT32_MIN : x > 0 ? INT32_MAX : 0;
    const int64_t s64 = fits(x, -0x1p63f, 0x1p63f) ? (int64_t)x : x < 0 ? INT64_MIN : x > 0 ? INT64_MAX : 0;
    const uint64_t u32 = fits(x, 0, 0x1p32f) ? (uint32_t)x : x > 0 ? UINT32_MAX : 0;
    const uint64_t u64 = fits(x, 0, 0x1p64f) ? (uint64_t)x : x > 0 ? UINT64_MAX : 0;
    same("int32", a, 0, (uint64_t)(int64_t)host_fixsfsi(a), (uint64_t)s32);
    same("int64", a, 0, (uint64_t)host_fixsfdi(a), (uint64_t)s64);
    same("uint32", a, 0, host_fixunssfsi(a), u32);
    same("uint64", a, 0, host_fixunssfdi(a), u64);
}

static void integers(uint64_t a, uint64_t b) {
    const uint32_t c = (uint32_t)a;
    const uint32_t d = (uint32_t)b;
    same_float("float of an int64", c, (uint32_t)(a >> 32), host_floatdisf((int64_t)a), (float)(int64_t)a);
    same_float("float of a uint64", c, (uint32_t)(a >> 32), host_floatundisf(a), (float)a);
    same_float("float of an int32", c, 0, host_floatsisf((int32_t)c), (float)(int32_t)c);
    same_float("float of a uint32", c, 0, host_floatunsisf(c), (float)c);
    same("wide product", c, d, host_umulsidi3(c, d), (uint64_t)c * d);
    same("product of 64 bits", a, b, host_muldi3(a, b), a * b);
    if (d != 0) {
        same("uint32 quotient", c, d, host_udivsi3(c, d), c / d);
        same("uint32 rest", c, d, host_umodsi3(c, d), c % d);
    }
    if (b != 0) {
        same("uint64 quotient", a, b, host_udivdi3(a, b), a / b);
        same("uint64 rest", a, b, host_umoddi3(a, b), a % b);
    }
    const int32_t e = (int32_t)c, f = (int32_t)d;
    if (f != 0 && !(e == INT32_MIN && f == -1)) {
        same("int32 quotient", c, d, (uint32_t)host_divsi3(e, f), (uint32_t)(e / f));
        same("int32 rest", c, d, (uint32_t)host_modsi3(e, f), (uint32_t)(e % f));
    }
    const int64_t g = (int64_t)a, h = (int64_t)b;
    if (h != 0 && !(g == INT64_MIN && h == -1)) {
        same("int64 quotient", a, b, (uint64_t)host_divdi3(g, h), (uint64_t)(g / h));
        same("int64 rest", a, b, (uint64_t)host_moddi3(g, h), (uint64_t)(g % h));
    }
}

/* A random float: of any bits; with few bits in its fraction, so that results lie half way between floats; or with an
 * exponent near one that is given. */
static uint32_t random_float(uint32_t near) {
    const uint64_t r = any();
    uint32_t a = (uint32_t)r;
    if ((r >> 32 & 1) != 0) {
        a &= ~0U << (r >> 40) % 24;
    }
    if ((r >> 33 & 1) != 0) {
        a |= (1U << (r >> 48) % 24) - 1;
    }
    if ((r >> 34 & 1) != 0) {
        a = (a & 0x807fffffU) | ((near + (uint32_t)(r >> 56) % 64 - 32) & 255U) << 23;
    }
    return a;
}

/* Floats where something changes: zeros, the ends of subnormals and of the range, powers of two, their neighbours. */
static uint32_t edges(uint32_t *out) {
    static const int32_t exponents[] = {0, 1, 2, 23, 24, 25, 64, 96, 103, 104, 126, 127, 128, 133, 134, 149, 150, 151,
                                        157, 158, 159, 189, 190, 191, 230, 253, 254, 255};
    static const uint32_t fractions[] = {0, 1, 2, 3, 0x3fffff, 0x400000, 0x400001, 0x555555, 0x7ffffe, 0x7fffff};
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++) {
        for (uint32_t j = 0; j < sizeof fractions / sizeof fractions[0]; j++) {
            out[n] = (uint32_t)exponents[i] << 23 | fractions[j];
            out[n + 1] = out[n] | 0x80000000U;
            n += 2;
        }
    }
    return n;
}

/* Integers of every length: powers of two and their neighbours. */
static uint64_t edge_integer(uint32_t i) { return ((uint64_t)1 << i / 8) + (i % 8) - 4; }

int main(int argc, char **argv) {
    const uint64_t count = (uint64_t)((argc > 1 ? strtod(argv[1], NULL) : 1) * 1e6);
    static uint32_t edge[1024];
    const uint32_t n = edges(edge);
    for (uint32_t i = 0; i < n; i++) {
        single(edge[i]);
        for (uint32_t j = 0; j < n; j++) {
            pair(edge[i], edge[j]);
        }
    }
    for (uint32_t i = 0; i < 64 * 8; i++) {
        for (uint32_t j = 0; j < 64 * 8; j++) {
            integers(edge_integer(i), edge_integer(j));
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t a = random_float(127);
        const uint32_t e = a >> 23 & 255U;
        /* near the same exponent, for sums; those that take a product or a quotient to the smallest floats */
        const uint32_t near[] = {e, 127 - e, e + 127, 127};
        const uint32_t b = random_float(near[i % 4]);
        pair(a, b);
        single(a);
        const uint64_t r = any();
        integers(any() >> (r & 63), any() >> (r >> 8 & 63));
    }
    for (uint32_t a = 0x3f000000U; a < 0x40000000U; a++) { /* 1/2 up to 2; the rest are these by powers of 4 */
        same_float("root", a, 0, float_sqrt(a), sqrtf(value(a)));
    }
    if (wrong != 0) {
        printf("%" PRIu64 " of %" PRIu64 " results differ\n", wrong, compared);
        return 1;
    }
    printf("%" PRIu64 " results are the same\n", compared);
    return 0;
}
