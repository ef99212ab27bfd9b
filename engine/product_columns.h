/* product_columns.h: products of quantised matrices that are stored transposed, column by column: the definition. */

/* The columns are read one after another, whole: each adds its codes, times the code of the vector, to integer sums that
 * its group's scales meet at the end of the group. A group of which no column is read has the sum 0, and adding 0 to a sum
 * that started at +0 changes nothing. */
static void product_by_columns(const chiplm_product *p) {
    const chiplm_tensor *w = p->w;
    const uint32_t group = w->group == 0 ? w->columns : w->group;
    const uint32_t block = p->first / w->block; /* an expert */
    const uint32_t from = p->first % w->block;
    const uint32_t per_block = 128 / w->bits;
    const size_t skipped = from / per_block * 16; /* CHIPLM_STEP rows are whole blocks of codes */
    const size_t bytes = ((size_t)p->rows + per_block - 1) / per_block * 16;
    int32_t *sums = p->scratch;
    int8_t *codes = (int8_t *)(sums + (p->rows + CHIPLM_PAD - 1) / CHIPLM_PAD * CHIPLM_PAD);
    const uint32_t count = p->list == NULL ? w->columns : p->listed;
    for (uint32_t i = 0; i < p->n; i++) {
        const size_t b = p->which[i];
        const int8_t *x = p->x.codes + b * p->x.stride;
        float *y = p->y + b * p->ldy;
        for (uint32_t r = 0; r < p->rows; r++) {
            y[r] = 0.0f;
        }
        for (uint32_t k = 0; k < count;) {
            const uint32_t g = (p->list == NULL ? k : p->list[k]) / group;
            memset(sums, 0, p->rows * sizeof *sums);
            for (; k < count; k++) {
                const uint32_t column = p->list == NULL ? k : p->list[k];
                if (column / group != g) {
                    break;
                }
                unpack(w->codes.at + ((size_t)block * w->columns + column) * w->stride + skipped, bytes, w->bits, codes);
                for (uint32_t r = 0; r < p->rows; r++) {
                    sums[r] += (int32_t)codes[r] * x[column];
                }
            }
            const size_t scales = ((size_t)block * w->groups + g) * w->block + from;
            for (uint32_t r = 0; r < p->rows; r++) {
                y[r] = y[r] + (float)sums[r] * scale_at(w, scales + r);
            }
        }
        for (uint32_t r = 0; r < p->rows; r++) {
            y[r] = y[r] * p->x.scales[b];
        }
    }
}
