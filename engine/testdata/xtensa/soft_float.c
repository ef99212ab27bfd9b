#include "soft_float.h"

#include <stdbool.h>

#include "soft_integer.h"

#define SIGN 0x80000000U
#define INFINITE 0x7f800000U
#define NAN_BITS 0x7fc00000U

static uint32_t size(uint32_t a) { return a & ~SIGN; }
static bool is_nan(uint32_t a) { return size(a) > INFINITE; }

/* Shifts right; the lowest bit of the result is set if a set bit was lost, so that a later rounding sees it. */
static uint32_t shift_right(uint32_t m, uint32_t by) {
    if (by == 0) {
        return m;
    }
    return by > 31 ? m != 0 : (m >> by) | ((m << (32 - by)) != 0);
}

/* A float other than zero, infinity and NaN on its way: fraction * 2^(exponent - 127), the fraction's highest bit is
 * bit 30 and stands for 1. A float's own bits end at bit 7; below them are those to round by. */
typedef struct parts {
    uint32_t fraction;
    int32_t exponent;
} parts;

static parts normal(uint32_t fraction, int32_t exponent) {
    const int32_t shift = __builtin_clz(fraction) - 1;
    if (shift < 0) {
        return (parts){shift_right(fraction, 1), exponent + 1};
    }
    return (parts){fraction << shift, exponent - shift};
}

/* The parts of a float that is not zero. */
static parts parts_of(uint32_t a) {
    const int32_t exponent = (int32_t)(size(a) >> 23);
    const uint32_t fraction = (a & 0x7fffffU) << 7;
    return exponent == 0 ? normal(fraction, 1) : (parts){fraction | 0x40000000U, exponent};
}

static uint32_t rounded(uint32_t sign, parts p) {
    if (p.exponent >= 255) {
        return sign | INFINITE;
    }
    uint32_t below = 0; /* the exponent less 1: the fraction's highest bit adds the 1, if rounding leaves it there */
    if (p.exponent < 1) {
        p.fraction = shift_right(p.fraction, (uint32_t)(1 - p.exponent));
    } else {
        below = (uint32_t)(p.exponent - 1) << 23;
    }
    const uint32_t rest = p.fraction & 0x7fU;
    const uint32_t kept = p.fraction >> 7;
    return sign | (below + kept + (rest > 0x40U || (rest == 0x40U && (kept & 1U) != 0)));
}

/* ------------------------------------------------------------------------------------------------------- arithmetic */

uint32_t HELPER(addsf3)(uint32_t a, uint32_t b) {
    if (size(a) < size(b)) {
        const uint32_t swap = a;
        a = b;
        b = swap;
    }
    if (size(a) >= INFINITE) {
        return is_nan(a) || a == (b ^ SIGN) ? NAN_BITS : a;
    }
    if (size(b) == 0) {
        return size(a) == 0 ? a & b : a; /* -0 only from two of them */
    }
    const uint32_t sign = a & SIGN;
    const parts p = parts_of(a);
    const parts q = parts_of(b);
    const uint32_t smaller = shift_right(q.fraction, (uint32_t)(p.exponent - q.exponent));
    if (sign == (b & SIGN)) {
        return rounded(sign, normal(p.fraction + smaller, p.exponent));
    }
    const uint32_t difference = p.fraction - smaller;
    return difference == 0 ? 0 : rounded(sign, normal(difference, p.exponent));
}

uint32_t HELPER(subsf3)(uint32_t a, uint32_t b) { return HELPER(addsf3)(a, b ^ SIGN); }

uint32_t HELPER(negsf2)(uint32_t a) { return a ^ SIGN; }

uint32_t HELPER(mulsf3)(uint32_t a, uint32_t b) {
    const uint32_t sign = (a ^ b) & SIGN;
    if (size(a) < size(b)) {
        const uint32_t swap = a;
        a = b;
        b = swap;
    }
    if (size(a) >= INFINITE) {
        return is_nan(a) || size(b) == 0 ? NAN_BITS : sign | INFINITE;
    }
    if (size(b) == 0) {
        return sign;
    }
    const parts p = parts_of(a);
    const parts q = parts_of(b);
    const uint64_t product = HELPER(umulsidi3)(p.fraction, q.fraction); /* its highest bit is bit 60 or 61 */
    const uint32_t lost = (uint32_t)product & 0x3fffffffU;
    return rounded(sign, normal((uint32_t)(product >> 30) | (lost != 0), p.exponent + q.exponent - 127));
}

uint32_t HELPER(divsf3)(uint32_t a, uint32_t b) {
    const uint32_t sign = (a ^ b) & SIGN;
    if (is_nan(a) || is_nan(b)) {
        return NAN_BITS;
    }
    if (size(a) == INFINITE || size(b) == 0) {
        return size(b) == INFINITE || size(a) == 0 ? NAN_BITS : sign | INFINITE;
    }
    if (size(a) == 0 || size(b) == INFINITE) {
        return sign;
    }
    const parts p = parts_of(a);
    const parts q = parts_of(b);
    uint32_t rest = p.fraction;
    uint32_t quotient = 0;
    for (uint32_t i = 0; i < 31; i++) { /* the first bit stands for 1; rest stays below twice the divisor */
        quotient <<= 1;
        if (rest >= q.fraction) {
            rest -= q.fraction;
            quotient |= 1U;
        }
        rest <<= 1;
    }
    return rounded(sign, normal(quotient | (rest != 0), p.exponent - q.exponent + 127));
}

uint32_t float_sqrt(uint32_t a) {
    if (size(a) == 0) {
        return a;
    }
    if (is_nan(a) || (a & SIGN) != 0) {
        return NAN_BITS;
    }
    if (a == INFINITE) {
        return a;
    }
    const parts p = parts_of(a);
    const bool odd = ((p.exponent - 127) & 1) != 0;
    uint32_t digits = odd ? p.fraction << 1 : p.fraction; /* pairs of bits, the first from bit 31: 1 to 3 */
    uint32_t rest = 0;
    uint32_t root = 0;
    for (uint32_t i = 0; i < 26; i++) { /* 24 bits of the result, one to round by, and one to spare */
        rest = (rest << 2) | (digits >> 30);
        digits <<= 2;
        root <<= 1;
        if (rest > 2 * root) {
            rest -= 2 * root + 1;
            root |= 1U;
        }
    }
    return rounded(0, (parts){(root << 5) | (rest != 0), (p.exponent - 127 - odd) / 2 + 127});
}

/* ------------------------------------------------------------------------------------------------------- comparison */

/* A number that orders floats as they are ordered; both zeros have the same. */
static int32_t order(uint32_t a) { return (a & SIGN) != 0 ? -(int32_t)size(a) : (int32_t)a; }

/* -1, 0 or 1; with a NaN otherwise. */
static int32_t compare(uint32_t a, uint32_t b, int32_t otherwise) {
    if (is_nan(a) || is_nan(b)) {
        return otherwise;
    }
    return (order(a) > order(b)) - (order(a) < order(b));
}

int32_t HELPER(eqsf2)(uint32_t a, uint32_t b) { return compare(a, b, 1); }
int32_t HELPER(nesf2)(uint32_t a, uint32_t b) { return compare(a, b, 1); }
int32_t HELPER(ltsf2)(uint32_t a, uint32_t b) { return compare(a, b, 1); }
int32_t HELPER(lesf2)(uint32_t a, uint32_t b) { return compare(a, b, 1); }
int32_t HELPER(gtsf2)(uint32_t a, uint32_t b) { return compare(a, b, -1); }
int32_t HELPER(gesf2)(uint32_t a, uint32_t b) { return compare(a, b, -1); }
int32_t HELPER(unordsf2)(uint32_t a, uint32_t b) { return is_nan(a) || is_nan(b); }

/* ------------------------------------------------------------------------------------------------------- conversion */

/* abs(a) towards zero, or most if that is less; most of infinity. Not of a NaN. */
static uint64_t whole(uint32_t a, uint64_t most) {
    const int32_t exponent = (int32_t)(size(a) >> 23) - 127;
    const uint64_t fraction = (a & 0x7fffffU) | 0x800000U;
    if (exponent < 0) {
        return 0;
    }
    if (exponent > 63) {
        return most;
    }
    const uint64_t n = exponent < 23 ? fraction >> (23 - exponent) : fraction << (exponent - 23);
    return n < most ? n : most;
}

int64_t HELPER(fixsfdi)(uint32_t a) {
    if (is_nan(a)) {
        return 0;
    }
    if ((a & SIGN) != 0) {
        const uint64_t n = whole(a, (uint64_t)1 << 63);
        return n == (uint64_t)1 << 63 ? INT64_MIN : -(int64_t)n;
    }
    return (int64_t)whole(a, INT64_MAX);
}

uint64_t HELPER(fixunssfdi)(uint32_t a) { return is_nan(a) || (a & SIGN) != 0 ? 0 : whole(a, UINT64_MAX); }

int32_t HELPER(fixsfsi)(uint32_t a) {
    const int64_t n = HELPER(fixsfdi)(a);
    return (int32_t)(n < INT32_MIN ? INT32_MIN : n > INT32_MAX ? INT32_MAX : n);
}

uint32_t HELPER(fixunssfsi)(uint32_t a) { return is_nan(a) || (a & SIGN) != 0 ? 0 : (uint32_t)whole(a, UINT32_MAX); }

uint32_t HELPER(floatundisf)(uint64_t a) {
    if (a == 0) {
        return 0;
    }
    const uint32_t high = (uint32_t)(a >> 32);
    const uint32_t low = (uint32_t)a;
    if (high == 0) {
        return rounded(0, normal(low, 127 + 30));
    }
    const uint32_t up = (uint32_t)__builtin_clz(high);
    const uint32_t top = up == 0 ? high : (high << up) | (low >> (32 - up));
    return rounded(0, normal(top | ((low << up) != 0), 127 + 62 - (int32_t)up));
}

uint32_t HELPER(floatdisf)(int64_t a) {
    return a < 0 ? SIGN | HELPER(floatundisf)(0U - (uint64_t)a) : HELPER(floatundisf)((uint64_t)a);
}

uint32_t HELPER(floatunsisf)(uint32_t a) { return a == 0 ? 0 : rounded(0, normal(a, 127 + 30)); }

uint32_t HELPER(floatsisf)(int32_t a) {
    return a < 0 ? SIGN | HELPER(floatunsisf)(0U - (uint32_t)a) : HELPER(floatunsisf)((uint32_t)a);
}
