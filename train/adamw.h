// One fused pass of AdamW over a range of a tensor.

#ifndef CHIPLM_ADAMW_H
#define CHIPLM_ADAMW_H

#include <stdint.h>

// chiplm_adamw updates n weights w and their moments m and v in place from the gradient g, every element on its own:
//
//   g' = g * grad_scale
//   m  = m + (g' - m) * one_minus_beta1
//   v  = v * beta2 + (g' * g') * one_minus_beta2
//   w  = w * decay - step_size * (m / (sqrt(v) * inv_sqrt_bias2 + eps))
//
// It returns 0 when every new weight is finite, 1 otherwise.
int chiplm_adamw(float *restrict w, float *restrict m, float *restrict v, const float *restrict g, int64_t n,
                 float grad_scale, float one_minus_beta1, float beta2, float one_minus_beta2, float inv_sqrt_bias2,
                 float eps, float decay, float step_size);

// chiplm_sum_squares adds up the squares of n floats in double. The order is fixed: eight partial sums over i mod 8.
double chiplm_sum_squares(const float *g, int64_t n);

// chiplm_add adds the n floats of src to dst.
void chiplm_add(float *restrict dst, const float *restrict src, int64_t n);

#endif
