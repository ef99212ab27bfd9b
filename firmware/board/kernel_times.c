/* Cycles of kernels. What is computed is of no interest, but codes, scales and activations are such as a model has. */
#include "kernel_times.h"

#include <string.h>

#include "kernels.h"
#include "pie/pie.h"

enum { ROWS = 128, COLUMNS = 128, LISTED = 32, TURNS = 5, WIDTH = 32, POSITIONS = 128, SOME = 64, BOUNDS = 16 };

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
    /* Of a kernel of the vector unit: */
    uint8_t *codes;
    float *scales;
    int32_t *sums; /* [ROWS] */
    chiplm_pie_work *work;
    float *weights; /* [POSITIONS] */
    float *out;     /* [COLUMNS] */
    uint8_t *marks; /* [COLUMNS] */
    uint32_t list[LISTED];
    chiplm_level *level;
    volatile int32_t sink;
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

/* ------------------------------------------------------------------- the kernels of the vector unit, by their symbols */

static const uint32_t one = 0x3f800000; /* the bits of 1.0f */

static void call_c128g64(bench *t) {
    chiplm_pie_rows4_c128g64(t->codes, t->scales, t->product.x.codes, t->product.y, ROWS, one);
}

static void call_c128g128(bench *t) {
    chiplm_pie_rows4_c128g128(t->codes, t->scales, t->product.x.codes, t->product.y, ROWS, one);
}

static void call_rows4(bench *t) {
    const chiplm_pie_rows shape = {.rows = ROWS, .blocks = COLUMNS / 32, .group = 32, .groups = COLUMNS / 32, .scale = one};
    chiplm_pie_rows4(t->codes, t->scales, t->product.x.codes, t->product.y, &shape);
}

static void call_rows8(bench *t) {
    const chiplm_pie_rows shape = {.rows = ROWS / 2, .blocks = COLUMNS / 16, .group = 64, .groups = COLUMNS / 64, .scale = one};
    chiplm_pie_rows8(t->codes, t->scales, t->product.x.codes, t->product.y, &shape);
}

static void call_listed(bench *t) {
    const chiplm_pie_listed shape = {.count = LISTED, .scale = one};
    chiplm_pie_listed4_c128g64(t->codes, t->scales, t->product.x.codes, t->product.y, t->list, &shape);
}

static void call_c64g64(bench *t) {
    chiplm_pie_rows4_c64g64(t->codes, t->scales, t->product.x.codes, t->product.y, ROWS, one);
}

static void call_rows2(bench *t) {
    const chiplm_pie_rows shape = {.rows = ROWS, .blocks = COLUMNS / 64, .group = 64, .groups = COLUMNS / 64, .scale = one};
    chiplm_pie_rows2(t->codes, t->scales, t->product.x.codes, t->product.y, &shape);
}

static void call_columns(bench *t) {
    t->work->count = LISTED;
    t->work->blocks = ROWS / 32;
    t->work->stride = ROWS / 2;
    chiplm_pie_add_columns4(t->codes, t->list, t->product.x.codes, t->scales, t->out, t->work);
}

static void call_scale(bench *t) { chiplm_pie_scale(t->out, ROWS, one); }

static void call_bounds(bench *t) {
    chiplm_pie_bounds(t->codes, BOUNDS, one, t->level, (chiplm_bound *)(void *)t->out);
}

/* What decides the time of these are the bounds near the end. Weights go from 0.5 to exp(0.5 - 1), and never leave them. */
static const float exp_constants[16] __attribute__((aligned(16))) = {
    0.0f, 1.5f, 0x1.8p23f, 0.7f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.2f, 0.5f, 1.0f, -86.0f, 86.0f, 43.0f, 0.0f};
static const float gelu_constants[2] = {-1.6f, 0.04f};

static void call_scores(bench *t) {
    const chiplm_pie_scoring how = {.width = WIDTH, .scale = one, .c = one};
    t->sink = (int32_t)chiplm_pie_scores(t->product.x.codes, (const int8_t *)t->codes, t->scales, POSITIONS, &how, t->out);
}

static void call_exp(bench *t) { chiplm_pie_exp(t->weights, POSITIONS, one, exp_constants); }

static void call_weigh(bench *t) { t->sink = (int32_t)chiplm_pie_weigh(t->weights, t->scales, POSITIONS); }

/* Shares of 49, of which 84 fill the lanes of sums before these are read out. */
static void call_mix(bench *t) {
    chiplm_pie_mix((const int8_t *)t->codes, (const int8_t *)t->codes, POSITIONS, WIDTH, t->sums);
}

static void call_divide(bench *t) { chiplm_pie_divide(t->sums, WIDTH, one, one, one, t->out); }

static void call_top(bench *t) { t->sink = (int32_t)chiplm_pie_top(t->floats, COLUMNS); }

static void call_codes(bench *t) {
    chiplm_pie_codes(t->floats, COLUMNS, one, t->product.x.codes, COLUMNS);
}

static void call_sums(bench *t) { chiplm_pie_sums(t->product.x.codes, COLUMNS / CHIPLM_CHUNK, t->product.x.sums); }

static void call_squares(bench *t) { t->sink = (int32_t)chiplm_pie_squares(t->floats, COLUMNS); }

static void call_gain(bench *t) { chiplm_pie_gain(t->floats, one, t->scales, COLUMNS, t->out); }

static void call_add(bench *t) { chiplm_pie_add(t->out, t->floats, COLUMNS); }

static void call_blend(bench *t) { chiplm_pie_blend(t->out, t->floats, one, one, COLUMNS); }

static void call_gate(bench *t) { chiplm_pie_gate(t->out, t->floats, COLUMNS); }

static void call_rotate(bench *t) { chiplm_pie_rotate(t->out, COLUMNS / 2, t->scales, t->scales); }

static void call_gelu_argument(bench *t) { chiplm_pie_gelu(t->floats, SOME, t->out, gelu_constants); }

static void call_negate(bench *t) { chiplm_pie_negate(t->floats, SOME, t->out); }

static void call_sigmoid(bench *t) {
    chiplm_pie_sigmoid(t->floats, t->scales, t->scales, SOME, t->out, 0x7ef311c7);
}

static void call_open(bench *t) { t->sink = (int32_t)chiplm_pie_open(t->floats, COLUMNS, t->marks); }

static void call_used(bench *t) { t->sink = (int32_t)chiplm_pie_used(t->product.x.codes, COLUMNS, t->marks); }

static void call_floats(bench *t) { chiplm_pie_floats4(t->codes, COLUMNS / 32, one, t->out); }

static void measure_pie(bench *t, room r) {
    static const struct {
        const char *symbol;
        void (*call)(bench *t);
        uint32_t rows, columns, bits, group, n;
    } all[] = {
        {"chiplm_pie_rows4_c128g64", call_c128g64, ROWS, COLUMNS, 4, 64, 0},
        {"chiplm_pie_rows4_c128g128", call_c128g128, ROWS, COLUMNS, 4, 128, 0},
        {"chiplm_pie_rows4", call_rows4, ROWS, COLUMNS, 4, 32, 0},
        {"chiplm_pie_rows8", call_rows8, ROWS / 2, COLUMNS, 8, 64, 0},
        {"chiplm_pie_listed4_c128g64", call_listed, ROWS, COLUMNS, 4, 64, LISTED},
        {"chiplm_pie_rows4_c64g64", call_c64g64, ROWS, 64, 4, 64, 0},
        {"chiplm_pie_rows2", call_rows2, ROWS, COLUMNS, 2, 64, 0},
        {"chiplm_pie_add_columns4", call_columns, ROWS, COLUMNS, 4, 0, LISTED},
        {"chiplm_pie_scale", call_scale, ROWS, 0, 0, 0, 0},
        {"chiplm_pie_bounds", call_bounds, BOUNDS, 32, 4, 0, 0},
        {"chiplm_pie_exp", call_exp, 0, 0, 0, 0, POSITIONS},
        {"chiplm_pie_scores", call_scores, 0, WIDTH, 0, 0, POSITIONS},
        {"chiplm_pie_weigh", call_weigh, 0, 0, 0, 0, POSITIONS},
        {"chiplm_pie_mix", call_mix, 0, WIDTH, 0, 0, POSITIONS},
        {"chiplm_pie_divide", call_divide, 0, WIDTH, 0, 0, 0},
        {"chiplm_pie_top", call_top, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_codes", call_codes, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_sums", call_sums, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_squares", call_squares, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_gain", call_gain, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_add", call_add, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_blend", call_blend, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_gate", call_gate, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_rotate", call_rotate, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_gelu", call_gelu_argument, 0, SOME, 0, 0, 0},
        {"chiplm_pie_negate", call_negate, 0, SOME, 0, 0, 0},
        {"chiplm_pie_sigmoid", call_sigmoid, 0, SOME, 0, 0, 0},
        {"chiplm_pie_open", call_open, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_used", call_used, 0, COLUMNS, 0, 0, 0},
        {"chiplm_pie_floats4", call_floats, 0, COLUMNS, 0, 0, 0},
    };
    t->codes = take(&r, ROWS * COLUMNS / 2 + 64);
    t->scales = take(&r, ROWS * COLUMNS / 32 * sizeof(float));
    t->sums = take(&r, ROWS * sizeof(int32_t));
    t->work = take(&r, sizeof *t->work);
    t->weights = take(&r, POSITIONS * sizeof(float));
    t->out = take(&r, COLUMNS * sizeof(float));
    t->level = take(&r, sizeof *t->level);
    t->marks = take(&r, COLUMNS);
    if (t->marks == NULL) {
        return;
    }
    memset(t->marks, 0, COLUMNS);
    memset(t->sums, 0, ROWS * sizeof(int32_t));
    for (uint32_t i = 0; i < POSITIONS; i++) {
        t->weights[i] = 0.5f;
        t->out[i] = 1.0f;
    }
    memset(t->codes, 0x31, ROWS * COLUMNS / 2 + 64);
    memset(t->level->lanes, 0x31, sizeof t->level->lanes);
    t->level->unit = t->level->norm = t->level->slack = t->level->scale = 0.01f;
    for (uint32_t i = 0; i < ROWS * COLUMNS / 32; i++) {
        t->scales[i] = 0.01f;
    }
    for (uint32_t i = 0; i < LISTED; i++) {
        t->list[i] = 3 * i;
    }
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const chiplm_tensor shape = {.rows = all[i].rows, .columns = all[i].columns, .bits = all[i].bits, .group = all[i].group};
        put_times(t, all[i].symbol, &shape, all[i].n, least(t, all[i].call));
    }
}

void board_kernel_times(board *b) {
    bench t = {.b = b, .kernels = chiplm_kernels_of(CHIPLM_PATH_BEST)};
    room r = {.at = b->arena, .bytes = b->arena_bytes};
    t.product.x.codes = take(&r, COLUMNS + 128);
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
        measure_pie(&t, r);
    }
    (void)board_start(b, MODE_BOTH); /* what succeeded at the boot succeeds again */
}
