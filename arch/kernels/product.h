/* product.h: the two exact forms of a quantised product. */

/* acc = (first ? 0 : acc) + s * scale_j, where scale_j are the group's scales, one a row of weights. */
static void add_scaled(float *acc, const float *s, const float *scale, int64_t groups, int64_t n, int first) {
    if (first)
        for (int64_t j = 0; j < n; j++) acc[j] = s[j] * scale[j * groups];
    else
        for (int64_t j = 0; j < n; j++) acc[j] = acc[j] + s[j] * scale[j * groups];
}

/* Exact sum of the products of a group wider than a float holds: chunks are exact, their sum is an int32. */
static void wide_group(const float *x, int64_t ldx, const float *w, int64_t in, int64_t width, int64_t chunk,
                       int64_t rows, int64_t out, float *sum) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < out; j++) {
            int32_t total = 0;
            for (int64_t c = 0; c < width; c += chunk) {
                int64_t n = width - c < chunk ? width - c : chunk;
                float s = 0;
                for (int64_t i = 0; i < n; i++) s += x[r * ldx + c + i] * w[j * in + c + i];
                total += (int32_t)s;
            }
            sum[r * out + j] = (float)total;
        }
}

static void product_codes(const float *xc, const float *sx, int64_t rows, int64_t in, const float *wc, const float *ws,
                     int64_t out, int64_t group, int64_t chunk, float *y, int64_t ldy, float *tmp) {
    int64_t groups = (in + group - 1) / group;
    for (int64_t r0 = 0; r0 < rows; r0 += 64) {
        int64_t m = rows - r0 < 64 ? rows - r0 : 64;
        for (int64_t g = 0; g < groups; g++) {
            int64_t c0 = g * group, width = in - c0 < group ? in - c0 : group;
            if (width <= chunk)
                gemm(0, 1, m, out, width, xc + r0 * in + c0, in, wc + c0, in, 0, tmp, out);
            else
                wide_group(xc + r0 * in + c0, in, wc + c0, in, width, chunk, m, out, tmp);
            for (int64_t r = 0; r < m; r++)
                add_scaled(y + (r0 + r) * ldy, tmp + r * out, ws + g, groups, out, g == 0);
        }
        for (int64_t r = r0; r < r0 + m; r++)
            for (int64_t j = 0; j < out; j++) y[r * ldy + j] *= sx[r];
    }
}

static void product_sum8(const float *x, int64_t rows, int64_t in, const float *w, int64_t out, float *y, int64_t ldy) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < out; j++) y[r * ldy + j] = rule_dot8(w + j * in, x + r * in, in);
}
