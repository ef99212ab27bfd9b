/* detect.h asks the processor and the build what they offer. */
#ifndef CHIPLM_SIMD_DETECT_H
#define CHIPLM_SIMD_DETECT_H

int simd_has(int path);           /* whether the loops of a path (SIMD_AVX2, ...) can run */
int simd_has_library(void);       /* whether a BLAS library is linked */
int simd_prefers_library(void);   /* whether its products beat those of the paths */
#endif
