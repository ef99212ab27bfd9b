/* calls.h: what calls.c and requests.c share. */
#ifndef HOSTILE_CALLS_H
#define HOSTILE_CALLS_H

#include "hostile.h"

/* A good image, and a context in which one id at a time gives the right bits. */
typedef struct good_image {
    uint8_t *bytes;
    size_t size;
    chiplm_image image;
    chiplm *reference; /* at the position of the context under test, if there is one */
    float *row;        /* its last logits */
} good_image;

enum { MOST_KEPT = 4096 };

/* What one input does. */
typedef struct world {
    const uint8_t *at; /* bytes to come */
    size_t left;
    good_image *g;
    chiplm *lm; /* or null: then calls get a null pointer */
    void *arena, *cache;
    uint32_t members;
    float *rows; /* where fed puts the logits of every id; or null */
    void *kept[MOST_KEPT];
    size_t n_kept;
} world;

/* The next byte of the input; 0 past its end. */
uint32_t next_byte(world *w);

/* A number below usual, mostly; or one from the edge of something. */
uint32_t next_number(world *w, uint32_t usual);

/* Memory that is released after the last call. */
void *keep(world *w, void *p);

/* Ids for the context: n of them, which may be more than fit, and then there are fewer; null in place of them; or one out
 * of range. want is what a call must make of them. */
int32_t *some_ids(world *w, size_t *n, chiplm_status *want);

/* Feeds the reference what the context was fed. */
void fed(world *w, const int32_t *ids, size_t n);

/* Holds a call to the status that it must have, and counts it. */
void expect(const char *what, chiplm_status status, chiplm_status want);

/* The same for a call that must leave the context at a position. */
void expect_at(const world *w, const char *what, chiplm_status status, chiplm_status want, uint32_t position);

void call_best(world *w);
void call_verify(world *w);
void call_reset(world *w);
void call_bind(world *w);
void call_sampling(world *w);
void call_views(world *w);
void call_open(world *w);
void call_encode(world *w);

#endif
