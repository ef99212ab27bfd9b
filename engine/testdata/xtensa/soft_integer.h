/* Products and quotients that lx106 has no instruction for. Names as in soft_float.h. Division by zero gives an
 * unspecified value. */
#ifndef CHIPLM_XTENSA_INTEGER_H
#define CHIPLM_XTENSA_INTEGER_H

#include <stdint.h>

#include "soft_float.h"

/* The whole product of two 32-bit numbers, and the low half of that of two 64-bit ones, of either sign. */
uint64_t HELPER(umulsidi3)(uint32_t a, uint32_t b);
uint64_t HELPER(muldi3)(uint64_t a, uint64_t b);

uint32_t HELPER(udivsi3)(uint32_t a, uint32_t b);
uint32_t HELPER(umodsi3)(uint32_t a, uint32_t b);
int32_t HELPER(divsi3)(int32_t a, int32_t b);
int32_t HELPER(modsi3)(int32_t a, int32_t b);
uint64_t HELPER(udivdi3)(uint64_t a, uint64_t b);
uint64_t HELPER(umoddi3)(uint64_t a, uint64_t b);
int64_t HELPER(divdi3)(int64_t a, int64_t b);
int64_t HELPER(moddi3)(int64_t a, int64_t b);

#endif
