/* The inside of a context: what chiplm_start lays out in the caller's memory. Internal. */
#ifndef CHIPLM_CONTEXT_H
#define CHIPLM_CONTEXT_H

#include "kernels.h"

/* The tensors of one layer. Those that a model lacks (router, ple_*) are null. */
typedef struct chiplm_layer {
    const chiplm_tensor *attention_norm, *qkv, *attention_output;
    const chiplm_tensor *ffn_norm, *router, *gate, *up, *down;
    const chiplm_tensor *ple_gate, *ple_output, *ple_norm;
} chiplm_layer;

struct chiplm {
    chiplm_image image;
    chiplm_fault fault;
    uint32_t batch;
    uint32_t position; /* of the next token */
    uint32_t last;     /* the id before it, at positions above 0 */
    bool dense;
    const chiplm_kernels *kernels;
    chiplm_team team;
    chiplm_tracer tracer; /* or null */
    void *tracer_self;
    chiplm_reads reads;
    uint64_t *counters; /* the arrays of reads, one after the other: n_tensors, then four of n_layers */
    bool finite;       /* no value of the running block was seen to be infinite or not a number */

    chiplm_tensor *tensors; /* image.model.n_tensors */
    chiplm_layer *layers;   /* image.model.n_layers */
    const chiplm_tensor *embedding, *ngram_table, *ple_projection, *ple_projection_norm, *ple_table, *output_norm, *head;
    const chiplm_tensor *head_rotation, *head_bounds, *head_blocks[2], *head_order; /* null without clusters */

    /* A block is up to batch positions. Buffers hold one row per position of it. */
    float *x;         /* [batch, d_model] the residual stream */
    float *h;         /* [batch, d_model] normalised, or the heads' outputs */
    float *y;         /* [batch, d_model] what a part adds to x */
    float *wide;      /* [batch, wide_columns] qkv; gate and up; ple_gate */
    size_t wide_columns;
    float *mix;       /* [batch, n_layers * ple_dim] the per-layer inputs */
    float *table_row; /* [n_layers * ple_dim] a row of ple_table */
    float *routes;    /* [experts] the router's outputs of a position */
    float *shares;    /* [batch] weight of the chosen expert */
    uint32_t *chosen; /* [batch] the chosen expert */
    uint32_t *all;    /* [batch] 0, 1, 2, ...: every position of a block */
    uint32_t *which;  /* [batch] the positions that chose an expert */
    uint32_t *open;   /* [d_ff] neurons whose gate is open at a position of the block */
    uint32_t *used;   /* [d_ff] neurons whose value is not 0 at a position of the block */
    uint8_t *marks;   /* [d_ff] scratch for these lists */
    int32_t *cluster_ids;   /* [clusters] in the order of their bounds */
    float *cluster_bounds;  /* [clusters] */
    chiplm_inputs inputs;

    /* What each member of the team has for itself. */
    uint8_t *scratch; /* [members, scratch_bytes] */
    size_t scratch_bytes;
    chiplm_attention attention[CHIPLM_MAX_MEMBERS];
    int8_t *queries; /* [members, kernels->queries, d_model / n_heads, padded] codes */
    bool member_finite[CHIPLM_MAX_MEMBERS];

    /* The cache: for layer l, head h and position t, codes at ((l * n_heads + h) * context_length + t) * head width, and
     * a scale each. */
    int8_t *key_codes, *value_codes;
    float *key_scales, *value_scales;
};

/* Runs n <= batch ids at the next positions, up to the last layer's output. Does not move the position. */
chiplm_status chiplm_run_block(chiplm *lm, const int32_t *ids, uint32_t n);

/* After chiplm_run_block: writes the logits of positions first..n-1 of the block, row after row, to logits. */
chiplm_status chiplm_run_head(chiplm *lm, uint32_t first, uint32_t n, float *logits);

/* After chiplm_run_block: normalises and quantises the positions first..n-1 as inputs of the head, rows 0..n-first-1. */
void chiplm_prepare_head(chiplm *lm, uint32_t first, uint32_t n);

#endif
