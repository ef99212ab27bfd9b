/* Cycles of kernels. What is computed is of no interest, but codes, scales and activations are such as a model has. */
#include "kernel_times.h"

#include <string.h>

#include "kernels.h"

enum { ROWS = 128, COLUMNS = 128, TURNS = 5 };

/* The engine's buffers, taken in pieces of which each starts at a multiple of 64. */
typedef struct room {
    uint8_t *at;
    size_t bytes;
} room;

static void *take(room *r, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (r->at == NULL || r->bytes < bytes) {
        r->at = NULL;
        return NULL;
    }
    void *at = r->at;
    r->at += bytes;
    r->bytes -= bytes;
    return at;
}

typedef struct bench {
    board *b;
    const chiplm_kernels *kernels;
    chiplm_product product;
    chiplm_tensor w;
    float *floats; /* [COLUMNS] */
    uint32_t written;
} bench;

static void put_times(bench *t, const char *symbol, const chiplm_tensor *w, uint32_t n, uint32_t cycles) {
    writer *out = &t->b->out.w;
    put(out, t->written++ == 0 ? "{" : ",{");
    put_key(out, "symbol");
    put_json(out, symbol);
    put_key(out, "rows");
    put_number(out, w == NULL ? 0 : w->rows);
    put_key(out, "columns");
    put_number(out, w == NULL ? 0 : w->columns);
    put_key(out, "bits");
    put_number(out, w == NULL ? 0 : w->bits);
    put_key(out, "group");
    put_number(out, w == NULL ? 0 : w->group);
    put_key(out, "n");
    put_number(out, n);
    put_key(out, "cycles");
    put_number(out, cycles);
    put(out, "}");
}

/* The least of some turns: interrupts only add. */
static uint32_t least(bench *t, void (*call)(bench *t)) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < TURNS; i++) {
        const uint32_t start = port_cycles(t->b->port);
        call(t);
        const uint32_t cycles = port_cycles(t->b->port) - start;
        best = cycles < best ? cycles : best;
    }
    port_feed(t->b->port);
    return best;
}

static void call_product(bench *t) { t->kernels->product(&t->product); }

static void call_quantise(bench *t) {
    (void)t->kernels->quantise(t->floats, COLUMNS, COLUMNS, t->product.x.codes, t->product.x.sums);
}

static void call_norm(bench *t) { t->kernels->rmsnorm(t->floats, t->floats, COLUMNS, 1e-6f, t->product.y); }

static void call_gelu(bench *t) { t->kernels->gelu_mix(t->product.y, t->floats, COLUMNS); }

static void measure_product(bench *t, room r, uint32_t bits, uint32_t group) {
    static const uint32_t which[1] = {0};
    const uint32_t groups = group == 0 ? 1 : COLUMNS / group;
    const size_t stride = COLUMNS * bits / 8;
    const size_t scratch = (size_t)t->kernels->scratch_bytes(1, COLUMNS, groups);
    uint8_t *codes = take(&r, ROWS * stride);
    float *scales = take(&r, ROWS * groups * sizeof(float));
    t->product.scratch = take(&r, scratch + 64);
    if (codes == NULL || scales == NULL || t->product.scratch == NULL) {
        return;
    }
    memset(codes, 0x31, ROWS * stride); /* codes 1 and 3, or 49 */
    for (uint32_t i = 0; i < ROWS * groups; i++) {
        scales[i] = 0.01f;
    }
    t->w = (chiplm_tensor){
        .rows = ROWS,
        .columns = COLUMNS,
        .bits = bits,
        .group = group,
        .groups = groups,
        .scale_type = CHIPLM_F32,
        .stride = (uint32_t)stride,
        .codes = {.at = codes, .bytes = ROWS * stride},
        .scales = {.at = (const uint8_t *)scales, .bytes = ROWS * groups * sizeof(float)},
    };
    t->product.w = &t->w;
    t->product.rows = ROWS;
    t->product.which = which;
    t->product.n = 1;
    t->product.ldy = ROWS;
    put_times(t, "product", &t->w, 1, least(t, call_product));
}

void board_kernel_times(board *b) {
    bench t = {.b = b, .kernels = chiplm_kernels_of(CHIPLM_PATH_BEST)};
    room r = {.at = b->arena, .bytes = b->arena_bytes};
    t.product.x.codes = take(&r, COLUMNS + 64);
    t.product.x.sums = take(&r, COLUMNS / CHIPLM_CHUNK * sizeof(int32_t));
    t.product.x.scales = take(&r, sizeof(float));
    t.product.x.stride = COLUMNS;
    t.product.y = take(&r, ROWS * sizeof(float));
    t.floats = take(&r, COLUMNS * sizeof(float));
    if (t.floats != NULL) {
        for (uint32_t i = 0; i < COLUMNS; i++) {
            t.floats[i] = (float)(i % 17) - 8.0f;
            t.product.y[i] = t.floats[i];
        }
        t.product.x.scales[0] = 0.01f;
        put_times(&t, "quantise", NULL, COLUMNS, least(&t, call_quantise));
        put_times(&t, "rmsnorm", NULL, COLUMNS, least(&t, call_norm));
        put_times(&t, "gelu_mix", NULL, COLUMNS, least(&t, call_gelu));
        measure_product(&t, r, 4, 64);
        measure_product(&t, r, 4, 0);
        measure_product(&t, r, 8, 64);
    }
    (void)board_start(b, MODE_BOTH); /* what succeeded at the boot succeeds again */
}
