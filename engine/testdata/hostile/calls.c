/* Calls on good images, in the order and with the arguments that an input's bytes say: right ones, and every kind of wrong
 * ones. What chiplm.h promises of each call is worked out here, and the call held to it: its status, its position, and the
 * bits of its results, which a second context computes one id at a time. */
#include "calls.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------- the good images */

static good_image images[32];
static size_t n_images;

void hostile_add_file(const char *path) {
    WANT(n_images < sizeof images / sizeof images[0], "more images than %zu", n_images);
    good_image *g = &images[n_images++];
    chiplm_fault fault;
    g->bytes = hostile_read_file(path, &g->size);
    const chiplm_status status = chiplm_image_open(&g->image, g->bytes, g->size, &fault);
    WANT(status == CHIPLM_OK, "%s: status %d at %s", path, (int)status, fault.where);
    const chiplm_options options = {.batch = 1, .path = CHIPLM_PATH_PLAIN, .dense = true};
    const size_t arena_bytes = chiplm_arena_bytes(&g->image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(&g->image);
    WANT(chiplm_start(&g->reference, &g->image, &options, hostile_memory(arena_bytes, 0), arena_bytes, hostile_memory(cache_bytes, 0),
                      cache_bytes) == CHIPLM_OK,
         "%s does not start", path);
    g->row = hostile_memory(g->image.model.vocab_size * sizeof *g->row, 0);
}

void hostile_add_folder(const char *path) {
    DIR *folder = opendir(path);
    WANT(folder != NULL, "%s cannot be listed", path);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char file[4096];
        if (entry->d_name[0] != '.') {
            WANT(snprintf(file, sizeof file, "%s/%s", path, entry->d_name) < (int)sizeof file, "%s: too long", path);
            hostile_add_file(file);
        }
    }
    closedir(folder);
}

/* ------------------------------------------------------------------------------------------------------------- input */

uint32_t next_byte(world *w) {
    if (w->left == 0) {
        return 0;
    }
    w->left--;
    return *w->at++;
}

uint32_t next_number(world *w, uint32_t usual) {
    static const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1024, 1025, 16, 17, 0x10000};
    const uint32_t kind = next_byte(w);
    if (kind < 200) {
        return usual == 0 ? 0 : next_byte(w) % usual;
    }
    if (kind < 230) {
        return edges[next_byte(w) % (sizeof edges / sizeof edges[0])];
    }
    if (kind < 245) {
        return usual + next_byte(w) % 3;
    }
    return next_byte(w) | next_byte(w) << 8 | next_byte(w) << 16 | next_byte(w) << 24;
}

void *keep(world *w, void *p) {
    WANT(w->n_kept < MOST_KEPT, "more memory than one input may keep");
    w->kept[w->n_kept++] = p;
    return p;
}

/* --------------------------------------------------------------------------------------------------------- the start */

static void run_in_order(void *self, void (*job)(void *argument, uint32_t index), void *argument) {
    for (uint32_t i = 0; i < *(const uint32_t *)self; i++) {
        job(argument, i);
    }
}

static void stop(world *w) {
    w->lm = NULL;
    free(w->arena);
    free(w->cache);
    w->arena = w->cache = NULL;
    chiplm_reset(w->g->reference);
}

/* A path, mostly one that this processor has. */
static chiplm_path some_path(world *w) {
    const uint32_t number = next_byte(w);
    const chiplm_path path = (chiplm_path)(number % CHIPLM_PATH_COUNT);
    if (number >= 250) {
        return (chiplm_path)next_number(w, 100);
    }
    return chiplm_path_name(path) != NULL ? path : CHIPLM_PATH_PLAIN;
}

/* Starts a context in memory of the right kind, or of a wrong one. */
static void start(world *w) {
    enum { RIGHT, SHORT_ARENA, SHORT_CACHE, ODD_ARENA, ODD_CACHE, NO_ARENA, NO_CACHE, NO_PLACE, NO_IMAGE, CLOSED, NO_OPTIONS, KINDS };
    static const chiplm_image closed;
    const uint32_t batches[] = {1, 1, 2, 3, 7, 8, 9, 31};
    stop(w);
    const chiplm_image *image = &w->g->image;
    w->members = next_byte(w) < 240 ? next_byte(w) % 4 : next_number(w, 20);
    const uint32_t batch = next_byte(w) < 245 ? batches[next_byte(w) % 8] : next_number(w, 70);
    const chiplm_options options = {
        .batch = batch,
        .path = some_path(w),
        .dense = next_byte(w) % 2 == 1,
        .team = {w->members, next_byte(w) < 245 ? run_in_order : NULL, &w->members},
    };
    const bool possible = batch >= 1 && batch <= 1024 && chiplm_path_name(options.path) != NULL &&
                          w->members <= CHIPLM_MAX_MEMBERS && (w->members <= 1 || options.team.run != NULL);
    const size_t arena_bytes = chiplm_arena_bytes(image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(image);
    WANT((arena_bytes != 0) == possible && cache_bytes != 0, "batch %u, path %d, %u members: an arena of %zu", batch, (int)options.path,
         w->members, arena_bytes);
    WANT(chiplm_arena_bytes(NULL, &options) == 0 && chiplm_arena_bytes(&closed, &options) == 0 && chiplm_arena_bytes(image, NULL) == 0 &&
             chiplm_cache_bytes(NULL) == 0 && chiplm_cache_bytes(&closed) == 0,
         "memory for nothing");

    const uint32_t kind = next_byte(w) < 200 ? RIGHT : next_byte(w) % KINDS;
    const size_t missing = 1 + next_byte(w) % 64;
    const size_t odd = 1 + next_byte(w) % 63;
    size_t arena_given = arena_bytes;
    size_t cache_given = cache_bytes;
    chiplm_status want = possible ? CHIPLM_OK : CHIPLM_ERR_ARGUMENT;
    if (kind >= NO_ARENA) {
        want = CHIPLM_ERR_ARGUMENT;
    } else if (possible && (kind == ODD_ARENA || kind == ODD_CACHE)) {
        want = CHIPLM_ERR_ALIGNMENT;
    } else if (possible && (kind == SHORT_ARENA || kind == SHORT_CACHE)) {
        want = CHIPLM_ERR_ARENA;
        arena_given -= kind == SHORT_ARENA ? missing : 0;
        cache_given -= kind == SHORT_CACHE ? (missing < cache_bytes ? missing : cache_bytes) : 0;
    }
    w->arena = hostile_memory(arena_given + (kind == ODD_ARENA ? odd : 0), 0xff);
    w->cache = hostile_memory(cache_given + (kind == ODD_CACHE ? odd : 0), 0xff);
    uint8_t *arena = kind == NO_ARENA ? NULL : (uint8_t *)w->arena + (kind == ODD_ARENA ? odd : 0);
    uint8_t *cache = kind == NO_CACHE ? NULL : (uint8_t *)w->cache + (kind == ODD_CACHE ? odd : 0);
    chiplm *lm = w->g->reference; /* anything but what comes out */
    const chiplm_status status = chiplm_start(kind == NO_PLACE ? NULL : &lm, kind == NO_IMAGE ? NULL : kind == CLOSED ? &closed : image,
                                              kind == NO_OPTIONS ? NULL : &options, arena, arena_given, cache, cache_given);
    expect("start", status, want);
    if (status == CHIPLM_OK) {
        WANT(lm != NULL && chiplm_position(lm) == 0, "a start at another position than 0");
        w->lm = lm;
        hostile_check_arena(lm);
    } else {
        WANT(kind == NO_PLACE || lm == NULL, "a context in spite of status %d", (int)status);
        stop(w);
    }
}

/* ----------------------------------------------------------------------------------------------------------- feeding */

void fed(world *w, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        WANT(chiplm_forward(w->g->reference, ids + i, 1, w->g->row) == CHIPLM_OK, "the reference fails at %zu", i);
        if (w->rows != NULL) {
            memcpy(w->rows + i * w->g->image.model.vocab_size, w->g->row, w->g->image.model.vocab_size * sizeof(float));
        }
    }
}

int32_t *some_ids(world *w, size_t *n, chiplm_status *want) {
    const chiplm_model *m = &w->g->image.model;
    const uint32_t left = w->lm == NULL ? 0 : m->context_length - chiplm_position(w->lm);
    const uint32_t asked = next_number(w, left + 1);
    const size_t room = asked <= left ? asked : next_byte(w) % 16;
    const uint32_t kind = next_byte(w);
    int32_t *ids = keep(w, hostile_memory(room * sizeof *ids, 0x11));
    *n = asked > left && kind % 2 == 1 ? SIZE_MAX - asked : asked;
    *want = *n > left ? CHIPLM_ERR_CONTEXT : CHIPLM_OK;
    for (size_t i = 0; i < room; i++) {
        ids[i] = (int32_t)(next_byte(w) % m->vocab_size);
    }
    if (kind >= 230 && asked <= left && asked > 0) {
        const int32_t wrong[] = {-1, (int32_t)m->vocab_size, INT32_MIN, INT32_MAX, (int32_t)m->vocab_size + 1};
        ids[next_byte(w) % asked] = wrong[kind % 5];
        *want = CHIPLM_ERR_ID;
    }
    if (kind < 4 && *n > 0) {
        *want = CHIPLM_ERR_ARGUMENT;
        return NULL;
    }
    return ids;
}

void expect(const char *what, chiplm_status status, chiplm_status want) {
    hostile_count(status);
    WANT(status == want, "%s: status %d, want %d", what, (int)status, (int)want);
}

void expect_at(const world *w, const char *what, chiplm_status status, chiplm_status want, uint32_t position) {
    expect(what, status, want);
    if (w->lm != NULL) {
        WANT(chiplm_position(w->lm) == position, "%s: status %d, position %u for %u", what, (int)status, chiplm_position(w->lm), position);
        const chiplm_fault *fault = chiplm_last_fault(w->lm);
        WANT(status == CHIPLM_OK || (fault->status == status && memchr(fault->where, 0, sizeof fault->where) != NULL), "%s: fault %d for status %d",
             what, (int)fault->status, (int)status);
    }
}

static void forward(world *w) {
    size_t n;
    chiplm_status want;
    const size_t vocabulary = w->g->image.model.vocab_size;
    const uint32_t position = w->lm == NULL ? 0 : chiplm_position(w->lm);
    const int32_t *ids = some_ids(w, &n, &want);
    if (w->lm == NULL) {
        want = CHIPLM_ERR_ARGUMENT;
    }
    const bool with_logits = next_byte(w) % 2 == 1;
    const size_t bytes = want == CHIPLM_OK && with_logits ? n * vocabulary * sizeof(float) : 0;
    float *logits = with_logits ? keep(w, hostile_memory(bytes, 0xff)) : NULL;
    const chiplm_status status = chiplm_forward(w->lm, ids, n, logits);
    expect_at(w, "forward", status, want, want == CHIPLM_OK ? position + (uint32_t)n : position);
    if (status == CHIPLM_OK) {
        w->rows = with_logits ? keep(w, hostile_memory(bytes, 0)) : NULL;
        fed(w, ids, n);
        WANT(!with_logits || memcmp(w->rows, logits, bytes) == 0, "forward: other logits");
        w->rows = NULL;
    }
}

static void forward_last(world *w) {
    size_t n;
    chiplm_status want;
    const size_t bytes = w->g->image.model.vocab_size * sizeof(float);
    const uint32_t position = w->lm == NULL ? 0 : chiplm_position(w->lm);
    const int32_t *ids = some_ids(w, &n, &want);
    float *logits = next_byte(w) < 240 ? keep(w, hostile_memory(bytes, 0xff)) : NULL;
    if (w->lm == NULL || n == 0 || logits == NULL) {
        want = CHIPLM_ERR_ARGUMENT;
    }
    const chiplm_status status = chiplm_forward_last(w->lm, ids, n, logits);
    expect_at(w, "forward_last", status, want, want == CHIPLM_OK ? position + (uint32_t)n : position);
    if (status == CHIPLM_OK) {
        fed(w, ids, n);
        WANT(memcmp(w->g->row, logits, bytes) == 0, "forward_last: other logits");
    }
}

/* ------------------------------------------------------------------------------------------------------ all of it */

void hostile_calls(const uint8_t *bytes, size_t size) {
    static void (*const calls[])(world *) = {
        start, forward, forward, forward_last, forward_last, call_best, call_best, call_verify, call_reset, call_bind, call_bind, call_sampling,
        call_views, call_open, call_encode, call_encode,
    };
    enum { MOST_CALLS = 24 };
    WANT(n_images > 0, "no good images");
    world w = {.at = bytes, .left = size};
    w.g = &images[next_byte(&w) % n_images];
    chiplm_reset(w.g->reference);
    start(&w);
    for (int i = 0; i < MOST_CALLS && w.left > 0; i++) {
        calls[next_byte(&w) % (sizeof calls / sizeof calls[0])](&w);
    }
    stop(&w);
    while (w.n_kept > 0) {
        free(w.kept[--w.n_kept]);
    }
}
