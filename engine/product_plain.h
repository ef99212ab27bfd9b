/* product_plain.h: products in plain C, as product_rows.h and product_columns.h define them. */

#include "product_columns.h"

static uint64_t scratch_bytes(uint32_t batch, uint64_t padded, uint64_t groups) {
    (void)groups;
    (void)batch;
    return padded * 5; /* an unpacked row, and the sums of a transposed product */
}

static void product(const chiplm_product *p) { product_by_rows(p); }
static void product_transposed(const chiplm_product *p) { product_by_columns(p); }
