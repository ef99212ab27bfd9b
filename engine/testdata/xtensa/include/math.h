/* What the core takes from <math.h>; main.c has it, from soft_float.c. */
#ifndef CHIPLM_XTENSA_MATH_H
#define CHIPLM_XTENSA_MATH_H

float sqrtf(float x);

#endif
