/* path.h is the body of plain.c, avx2.c, ...: all functions, compiled for SIMD_PATH, and the table K_SET of them. */
#include "../../qat/simd/simd.h"

#include "../../qat/rules.h"
#include "kernels.h"

#ifdef K_LIBRARY
#include "library.h"
#else
#include "gemm.h"
#endif
#include "integers.h"
#include "norm.h"
#include "ffn.h"
#include "ple.h"
#include "entropy.h"
#include "route.h"
#include "blocks.h"
#include "attention.h"
#include "attention_grad.h"
#include "update.h"

const struct k_set K_SET = {
#define K_ENTRY(name) name,
    K_FUNCTIONS(K_ENTRY)
};

#if defined(__clang__) && (SIMD_PATH == SIMD_AVX2 || SIMD_PATH == SIMD_AVX512)
#pragma clang attribute pop
#endif
