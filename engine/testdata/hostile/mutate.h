/* mutate.h: what mutate.c and rules.c share: changes of an image in place, at random from r. */
#ifndef HOSTILE_MUTATE_H
#define HOSTILE_MUTATE_H

#include "hostile.h"

/* Other codes for some tensor. */
void hostile_change_codes(const tables *t, uint64_t *r);

/* Other numbers in some tensor of floats, or in scales. */
void hostile_change_scales(const tables *t, uint64_t *r);

/* Constants and choices of the model that need no other tensors. */
void hostile_change_model(const tables *t, uint64_t *r);

/* Fewer neurons, a shorter context; or some tensor of another shape than the model's sizes imply. */
void hostile_change_sizes(const tables *t, uint64_t *r);

/* Another format for some tensor. */
void hostile_change_format(const tables *t, uint64_t *r);

/* Other tokens and goldens in the same bytes. */
void hostile_change_lists(const tables *t, uint64_t *r);

#endif
