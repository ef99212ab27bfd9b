#include "soft_integer.h"

uint64_t HELPER(umulsidi3)(uint32_t a, uint32_t b) {
    const uint32_t al = a & 0xffffU, ah = a >> 16, bl = b & 0xffffU, bh = b >> 16;
    const uint32_t low = al * bl;
    const uint32_t middle = ah * bl + (low >> 16); /* at most 2^32 - 2^16 */
    const uint32_t other = al * bh + (middle & 0xffffU);
    return ((uint64_t)(ah * bh + (middle >> 16) + (other >> 16)) << 32) | (other << 16) | (low & 0xffffU);
}

uint64_t HELPER(muldi3)(uint64_t a, uint64_t b) {
    const uint32_t al = (uint32_t)a, ah = (uint32_t)(a >> 32), bl = (uint32_t)b, bh = (uint32_t)(b >> 32);
    return HELPER(umulsidi3)(al, bl) + ((uint64_t)(al * bh + ah * bl) << 32);
}

/* Long division, a bit at a time from the highest in which the quotient can have one. */

typedef struct narrow {
    uint32_t quotient, rest;
} narrow;

static narrow divide(uint32_t a, uint32_t b) {
    narrow r = {0, a};
    if (b == 0 || b > a) {
        return r;
    }
    for (int32_t shift = __builtin_clz(b) - __builtin_clz(a); shift >= 0; shift--) {
        if (r.rest >= b << shift) {
            r.rest -= b << shift;
            r.quotient |= 1U << shift;
        }
    }
    return r;
}

typedef struct wide {
    uint64_t quotient, rest;
} wide;

static int32_t zeros(uint64_t a) {
    const uint32_t high = (uint32_t)(a >> 32);
    return high != 0 ? __builtin_clz(high) : 32 + __builtin_clz((uint32_t)a);
}

static wide divide_wide(uint64_t a, uint64_t b) {
    wide r = {0, a};
    if (b == 0 || b > a) {
        return r;
    }
    for (int32_t shift = zeros(b) - zeros(a); shift >= 0; shift--) {
        if (r.rest >= b << shift) {
            r.rest -= b << shift;
            r.quotient |= (uint64_t)1 << shift;
        }
    }
    return r;
}

uint32_t HELPER(udivsi3)(uint32_t a, uint32_t b) { return divide(a, b).quotient; }
uint32_t HELPER(umodsi3)(uint32_t a, uint32_t b) { return divide(a, b).rest; }
uint64_t HELPER(udivdi3)(uint64_t a, uint64_t b) { return divide_wide(a, b).quotient; }
uint64_t HELPER(umoddi3)(uint64_t a, uint64_t b) { return divide_wide(a, b).rest; }

/* Signed: the quotient is rounded towards zero, the rest has the sign of a. */

static uint32_t magnitude(int32_t a) { return a < 0 ? 0U - (uint32_t)a : (uint32_t)a; }
static uint64_t magnitude_wide(int64_t a) { return a < 0 ? 0U - (uint64_t)a : (uint64_t)a; }

int32_t HELPER(divsi3)(int32_t a, int32_t b) {
    const uint32_t q = divide(magnitude(a), magnitude(b)).quotient;
    return (int32_t)((a < 0) != (b < 0) ? 0U - q : q);
}

int32_t HELPER(modsi3)(int32_t a, int32_t b) {
    const uint32_t r = divide(magnitude(a), magnitude(b)).rest;
    return (int32_t)(a < 0 ? 0U - r : r);
}

int64_t HELPER(divdi3)(int64_t a, int64_t b) {
    const uint64_t q = divide_wide(magnitude_wide(a), magnitude_wide(b)).quotient;
    return (int64_t)((a < 0) != (b < 0) ? 0U - q : q);
}

int64_t HELPER(moddi3)(int64_t a, int64_t b) {
    const uint64_t r = divide_wide(magnitude_wide(a), magnitude_wide(b)).rest;
    return (int64_t)(a < 0 ? 0U - r : r);
}
