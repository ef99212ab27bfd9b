/* additions.h: sums of vectors. Compilers turn these loops into vectors. */

static void add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] + y[i];
    }
}

static void blend(float *y, const float *x, float a, float b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[i] = (y[i] + x[i] * a) * b;
    }
}
