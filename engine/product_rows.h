/* product_rows.h: products of quantised matrices with quantised vectors, row by row: the definition. Paths with vectors take
 * it for a row or two, for which theirs would be long roads.
 *
 * A row's codes are unpacked once and meet every vector of the block. Group sums are exact integers; floats only ever
 * touch them in the order of docs/numerics.md. abs(code) <= 127 and at most CHIPLM_MAX_COLUMNS columns keep every sum under
 * 2^31. */

CHIPLM_INLINE int32_t dot(const int8_t *w, const int8_t *x, uint32_t n) {
    int32_t s = 0;
    for (uint32_t i = 0; i < n; i++) {
        s += (int32_t)w[i] * x[i];
    }
    return s;
}

static void product_by_rows(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    int8_t *codes = p->scratch;
    const uint32_t count = p->list == NULL ? p->rows : p->listed;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t r = p->list == NULL ? k : p->list[k];
        const size_t row = (size_t)p->first + r;
        unpack(w->codes.at + row * w->stride, w->stride, w->bits, codes);
        for (uint32_t i = 0; i < p->n; i++) {
            const size_t b = p->which[i];
            const int8_t *x = p->x.codes + b * p->x.stride;
            float acc = 0.0f;
            for (uint32_t g = 0, c = 0; g < w->groups; g++) {
                const uint32_t end = w->columns - c < group ? w->columns : c + group;
                acc = acc + (float)dot(codes + c, x + c, end - c) * scale_at(w, row * w->groups + g);
                c = end;
            }
            p->y[b * p->ldy + r] = acc * p->x.scales[b];
        }
    }
}
