/* Rotary positions, and attention of one head over 8-bit keys and values. */
#ifndef CHIPLM_ATTENTION_H
#define CHIPLM_ATTENTION_H

#include "chiplm.h"

/* Turns the pairs (x_i, x_{i + d/2}) by the angles whose cosines and sines (d/2 of each) are given. */
void chiplm_rotate(float *x, uint32_t d, const float *cosine, const float *sine);

/* Keys and values of one head: codes [n, d] and one scale per position. */
typedef struct chiplm_head {
    const int8_t *keys;
    const float *key_scales;
    const int8_t *values;
    const float *value_scales;
} chiplm_head;

/* Scratch for attention over at most n positions of d values. */
typedef struct chiplm_attention {
    float *weights;  /* n */
    int16_t *shares; /* n */
    int32_t *sums;   /* n and d */
} chiplm_attention;

/* o = attention of the query (codes and scale) over n >= 1 positions; c is the scale of the scores. Returns false when
 * something was not finite. */
bool chiplm_attend(const int8_t *query, float query_scale, chiplm_head head, uint32_t n, uint32_t d, float c,
                   chiplm_attention scratch, float *o);

#endif
