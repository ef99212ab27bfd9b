/* kernels.h - what a path of the engine provides: the loops in which it spends its time, as a table of functions.
 *
 * A path is a set of instructions: plain C, AVX2, AVX-512, NEON, PIE. plain.c is the definition, in C that any compiler takes;
 * each other path gives the same bits (docs/numerics.md) and differs in speed alone, and in the scratch it wants. A file
 * per path sets its macros and includes path.h, which holds all bodies; paths.c chooses. Internal. */
#ifndef CHIPLM_KERNELS_H
#define CHIPLM_KERNELS_H

#include "chiplm.h"

enum {
    CHIPLM_PAD = 64,             /* codes of inputs are padded to a multiple of this with zeros */
    CHIPLM_CHUNK = 32,           /* codes of inputs that share a sum; every group is a whole number of chunks */
    CHIPLM_STEP = 64,            /* products are cut between members of a team at multiples of this many rows */
    CHIPLM_TURN = 32,            /* positions that attention takes in one turn */
    CHIPLM_MOST_QUERIES = 4,
    CHIPLM_MAX_COLUMNS = 131072, /* 127 * 127 * 131072 < 2^31 */
};

/* Vectors quantised to 8 bits, the inputs of products. Vector b has the codes codes[b * stride ..], zeros from its end to
 * stride; the scale scales[b]; and the sum of the codes of chunk c in sums[b * stride / CHIPLM_CHUNK + c], which paths
 * whose instructions multiply unsigned with signed bytes need. */
typedef struct chiplm_inputs {
    int8_t *codes;
    int32_t *sums;
    float *scales;
    size_t stride;
} chiplm_inputs;

/* A product y = W x, or some rows of it: y[which[i] * ldy + r] for i < n and r < rows is row first + r of W times vector
 * which[i]. With list not null, only for the `listed` values of r that it holds, ascending. */
typedef struct chiplm_product {
    const chiplm_tensor *w;
    uint32_t first, rows;
    const uint32_t *list;
    uint32_t listed;
    chiplm_inputs x;
    const uint32_t *which;
    uint32_t n;
    float *y;
    size_t ldy;
    void *scratch; /* scratch_bytes, at a multiple of 64 */
} chiplm_product;

/* The same for a W that is stored transposed (chiplm_tensor.block): rows must lie in one block. list holds the columns
 * to read, ascending: the codes of all others are zero in every vector; null: all columns. first is a multiple of
 * CHIPLM_STEP, counted from the start of the block. */

/* Keys and values of one head: codes [n, d] and one scale per position. */
typedef struct chiplm_head {
    const int8_t *keys;
    const float *key_scales;
    const int8_t *values;
    const float *value_scales;
} chiplm_head;

/* Queries of one head at consecutive positions: codes of query i at codes + i * stride, and a scale each. */
typedef struct chiplm_queries {
    const int8_t *codes;
    size_t stride;
    const float *scales;
    uint32_t n;
} chiplm_queries;

/* Scratch for attention of so many queries over at most n positions of d values. columns is the larger of n and d, rounded
 * up to CHIPLM_TURN. */
typedef struct chiplm_attention {
    float *weights;  /* [columns] */
    int16_t *shares; /* [queries, columns] */
    int32_t *sums;   /* [queries, columns] */
} chiplm_attention;

/* What bounds of rows of the head are computed from: a token's query at a level (docs/numerics.md). */
typedef struct chiplm_level {
    _Alignas(16) int16_t lanes[32]; /* in units of unit, by the columns of a block; those of the norm are 0 */
    float unit, norm, slack;
    float scale; /* of the input of the head */
} chiplm_level;

typedef struct chiplm_bound {
    _Alignas(8) float sum; /* of the products of this level and those before */
    float bound;           /* of the logit */
} chiplm_bound;

typedef struct chiplm_kernels {
    const char *name;

    /* Whether this path was compiled with contraction, and so gives wrong bits. */
    bool (*is_fused)(void);

    /* Bytes of scratch of a product over at most batch vectors, of a matrix of at most groups scales a row, and of at most
     * padded columns, and rows in a block where it is stored transposed. */
    uint64_t (*scratch_bytes)(uint32_t batch, uint64_t padded, uint64_t groups);

    /* Products of quantised matrices: stored by rows, and transposed. */
    void (*product)(const chiplm_product *p);
    void (*product_transposed)(const chiplm_product *p);

    /* y_r = sum8 of W_rj * x_j for a matrix of floats. */
    void (*product_floats)(const chiplm_tensor *w, const float *x, float *y);

    /* Writes row r of W as floats, code * scale. */
    void (*dequantise)(const chiplm_tensor *w, uint32_t row, float *y);

    /* Quantises n activations; writes zeros up to padded; sums is null or has padded / CHIPLM_CHUNK places. Returns the
     * scale: 0 for the zero vector, NaN if a value is not finite. */
    float (*quantise)(const float *x, size_t n, size_t padded, int8_t *codes, int32_t *sums);

    /* y_i = (x_i * r) * gain_i, r from the root mean square; gain null: y_i = x_i * r. y may be x. */
    void (*rmsnorm)(const float *x, const float *gain, size_t n, float eps, float *y);

    /* gate_i = silu(gate_i) * up_i; or gate_i > 0 ? gate_i * up_i : 0. */
    void (*gate)(float *gate, const float *up, size_t n, bool swiglu);

    /* x_i = x_i + y_i, and y_i = (y_i + x_i * a) * b. */
    void (*add)(float *x, const float *y, size_t n);
    void (*blend)(float *y, const float *x, float a, float b, size_t n);

    /* x_i = gelu(x_i) * e_i. */
    void (*gelu_mix)(float *x, const float *e, size_t n);

    /* Turns the pairs (x_i, x_{i + d/2}) by the angles whose cosines and sines (d/2 of each) are given. */
    void (*rotate)(float *x, uint32_t d, const float *cosine, const float *sine);

    /* o[i * ldo ..] = attention of query i over the positions 0 .. first + i; c is the scale of the scores. Takes `queries`
     * queries at most, and sharing the reads of keys and values, is fastest then. Returns false when something was not
     * finite. */
    bool (*attend)(chiplm_queries queries, chiplm_head head, uint32_t first, uint32_t d, float c, chiplm_attention scratch,
                   float *o, size_t ldo);
    uint32_t queries; /* at most CHIPLM_MOST_QUERIES */

    /* The largest of n >= 1 values, and sum8 of exp(v_i - most). Returns false when a value is not finite. */
    bool (*soft_sum)(const float *v, size_t n, float *most, float *sum);

    /* Whether all values are finite. */
    bool (*all_finite)(const float *v, size_t n);

    /* Sets marks to 1 for the neurons whose gate is above 0, or whose code is not 0, and returns how many these are. */
    uint32_t (*mark_open)(const float *gate, uint32_t n, uint8_t *marks);
    uint32_t (*mark_used)(const int8_t *codes, uint32_t n, uint8_t *marks);

    /* Row r of W times one input, padded as inputs are: the same bits as product. */
    float (*row_logit)(const chiplm_tensor *w, uint32_t row, const int8_t *x, float scale);

    /* Bounds of n >= 1 rows of the head, whose blocks (docs/image.md) of a level follow each other from a multiple of 16 on.
     * prior is what the levels before gave the sum. */
    void (*row_bounds)(const uint8_t *blocks, uint32_t n, float prior, const chiplm_level *level, chiplm_bound *bounds);
} chiplm_kernels;

/* The paths that were compiled for this kind of processor, in the order of chiplm_path; null where there is none. */
extern const chiplm_kernels chiplm_plain, chiplm_pie;
/* Whether this processor has the vector unit that the path pie is for: the firmware's build says so. Elsewhere that path
 * runs on twins of its kernels (pie/pie.h). */
#ifndef CHIPLM_HAS_PIE
#define CHIPLM_HAS_PIE 0
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define CHIPLM_X86 1
extern const chiplm_kernels chiplm_avx2, chiplm_avx512;
#else
#define CHIPLM_X86 0
#endif
/* Whether there are the operations of arm_neon.h: on arm64, and where a build brings a header of that name for vectors that
 * are alike, as that for WebAssembly does (firmware/web/wasm), and says so. */
#ifndef CHIPLM_HAS_NEON
#if defined(__aarch64__) && defined(__GNUC__)
#define CHIPLM_HAS_NEON 1
#else
#define CHIPLM_HAS_NEON 0
#endif
#endif
#if CHIPLM_HAS_NEON
extern const chiplm_kernels chiplm_neon;
#endif

/* The table of a path; null when this processor does not have it. */
const chiplm_kernels *chiplm_kernels_of(chiplm_path path);

#endif
