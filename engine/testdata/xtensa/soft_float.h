/* IEEE binary32 on a processor that has only integers. Floats are their bits. Every result is correctly rounded, to
 * nearest even, subnormals included; a NaN is any NaN.
 *
 * Under the names that the compiler calls on lx106 (its libgcc leaves most of them to the chip's ROM), or with
 * CHIPLM_HOST as host_addsf3 and so on, for soft_test.c to compare with the floats of the host. */
#ifndef CHIPLM_XTENSA_FLOAT_H
#define CHIPLM_XTENSA_FLOAT_H

#include <stdint.h>

#ifdef CHIPLM_HOST
#define HELPER(name) host_##name
#else
#define HELPER(name) __##name
#endif

uint32_t HELPER(addsf3)(uint32_t a, uint32_t b);
uint32_t HELPER(subsf3)(uint32_t a, uint32_t b);
uint32_t HELPER(mulsf3)(uint32_t a, uint32_t b);
uint32_t HELPER(divsf3)(uint32_t a, uint32_t b);
uint32_t HELPER(negsf2)(uint32_t a);
uint32_t float_sqrt(uint32_t a);

/* Compared with 0 in the way of the name, the result answers the question; with a NaN the answer is no, and to ne yes.
 * unordsf2 is not 0 if one is a NaN. */
int32_t HELPER(eqsf2)(uint32_t a, uint32_t b);
int32_t HELPER(nesf2)(uint32_t a, uint32_t b);
int32_t HELPER(ltsf2)(uint32_t a, uint32_t b);
int32_t HELPER(lesf2)(uint32_t a, uint32_t b);
int32_t HELPER(gtsf2)(uint32_t a, uint32_t b);
int32_t HELPER(gesf2)(uint32_t a, uint32_t b);
int32_t HELPER(unordsf2)(uint32_t a, uint32_t b);

/* To integers, towards zero. C leaves open what becomes of a value that does not fit: here the nearest that does, and 0
 * of a NaN. */
int32_t HELPER(fixsfsi)(uint32_t a);
uint32_t HELPER(fixunssfsi)(uint32_t a);
int64_t HELPER(fixsfdi)(uint32_t a);
uint64_t HELPER(fixunssfdi)(uint32_t a);

uint32_t HELPER(floatsisf)(int32_t a);
uint32_t HELPER(floatunsisf)(uint32_t a);
uint32_t HELPER(floatdisf)(int64_t a);
uint32_t HELPER(floatundisf)(uint64_t a);

#endif
