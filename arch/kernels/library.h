/* library.h: products of float matrices by OpenBLAS or Accelerate, on the calling thread alone. */
#ifdef __APPLE__
#include <Accelerate/Accelerate.h>
#else
#include <cblas.h>
#endif

static void gemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                 int64_t ldb, int32_t add, float *c, int64_t ldc) {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a,
                (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
}

/* Some rows of codes at a time are made floats. */
static void gemm_codes(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const uint8_t *codes, const float *scales,
                       int32_t add, float *c, int64_t ldc) {
    enum { WIDTH = 64, DEPTH = 128 };
    int64_t ld = (n + 3) / 4 * 4;
    for (int64_t j = 0; j < n; j += WIDTH)
        for (int64_t p = 0; p < k; p += DEPTH) {
            float values[DEPTH * WIDTH];
            int64_t width = n - j < WIDTH ? n - j : WIDTH, depth = k - p < DEPTH ? k - p : DEPTH;
            for (int64_t r = 0; r < depth; r++)
                for (int64_t q = 0; q < width; q++)
                    values[r * WIDTH + q] = (float)(codes[(p + r) * ld + j + q] - 128) * scales[p + r];
            gemm(1, 0, m, width, depth, a + p * lda, lda, values, WIDTH, add || p > 0, c + j, ldc);
        }
}
