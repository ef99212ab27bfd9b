/* Opens an image. If it is accepted it must run: on every path, in blocks of one and of seven, alone and in a team, from
 * the image and from copies of its tensors, all with the same bits. The one error that values can cause is that something
 * is not finite, and the golden may be wrong. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 9 };

/* An accepted image and what the reference, plain C and one id at a time, made of it. */
typedef struct trial {
    const chiplm_image *image;
    uint64_t random;
    int32_t ids[MOST_IDS];
    uint32_t n;     /* ids to feed */
    uint32_t good;  /* of them have finite logits; the next, if there is one, does not */
    float *logits;  /* [good, vocab_size] */
    chiplm_span *copies; /* of the codes and the scales of every tensor */
    bool verified;
} trial;

/* A way to run it. */
typedef struct way {
    chiplm_path path;
    uint32_t batch, members;
    bool dense, bound;
    int fill; /* what the memory holds before */
} way;

/* ----------------------------------------------------------------------------------------------------------- a run */

/* A team that works in one thread, in reverse. */
static void run_in_turn(void *self, void (*job)(void *argument, uint32_t index), void *argument) {
    for (uint32_t i = *(const uint32_t *)self; i-- > 0;) {
        job(argument, i);
    }
}

typedef struct seen {
    uint64_t steps;
    uint32_t context_length;
    volatile float last; /* every value is read */
} seen;

static void trace(void *self, const chiplm_step *step) {
    seen *s = self;
    s->steps++;
    WANT(step->position < s->context_length && step->name != NULL, "a step at position %u", step->position);
    for (uint32_t i = 0; i < step->count; i++) {
        s->last = step->values[i];
    }
}

static void *some_memory(size_t bytes, int fill) {
    WANT(bytes > 0, "no memory is wanted");
    return hostile_memory(bytes, fill);
}

/* The counters after so many positions, each of which is read. */
static void check_reads(const chiplm *lm, const chiplm_image *image, uint64_t positions) {
    const chiplm_reads *r = chiplm_reads_of(lm);
    uint64_t sum = 0;
    WANT(r->positions == positions && r->blocks <= positions, "%llu positions counted in %llu blocks", (unsigned long long)r->positions,
         (unsigned long long)r->blocks);
    for (uint32_t i = 0; i < image->model.n_tensors; i++) {
        sum += r->tensors[i];
    }
    for (uint32_t l = 0; l < image->model.n_layers; l++) {
        sum += r->open[l] + r->used[l] + r->up_rows[l] + r->down_columns[l];
    }
    WANT((positions > 0) == (sum > 0), "%llu numbers counted in %llu positions", (unsigned long long)sum, (unsigned long long)positions);
}

/* Searches after the last of the ids and compares what is found with the logits of the reference. */
static void check_best(chiplm *lm, trial *t, const int32_t *ids, size_t n, const float *logits) {
    const uint32_t vocabulary = t->image->model.vocab_size;
    const uint32_t clusters = t->image->model.clusters;
    const uint32_t k = 1 + (uint32_t)hostile_below(&t->random, vocabulary);
    chiplm_search search = chiplm_search_certified(t->image);
    switch (hostile_below(&t->random, 4)) {
    case 0:
        search.full = true;
        break;
    case 1:
        search.clusters = clusters == 0 ? 0 : 1 + (uint32_t)hostile_below(&t->random, clusters + 1);
        break;
    case 2:
        search.margin = (float)hostile_below(&t->random, 5) / 4.0f;
        break;
    default:
        break;
    }
    int32_t *best = hostile_memory(k * sizeof *best, 0xff);
    float *values = hostile_memory(k * sizeof *values, 0xff);
    int32_t *order = hostile_memory(k * sizeof *order, 0xff);
    uint32_t found = 0;
    const chiplm_status status = chiplm_forward_best(lm, ids, n, &search, k, best, values, &found);
    WANT(status == CHIPLM_OK, "a search among finite logits: status %d", (int)status);
    WANT(found <= k && (found == k || (!search.full && search.clusters != 0)), "%u of the %u best found", found, k);
    for (uint32_t i = 0; i < found; i++) {
        WANT(best[i] >= 0 && (uint32_t)best[i] < vocabulary, "best id %d", best[i]);
        WANT(memcmp(&values[i], &logits[best[i]], sizeof *values) == 0, "the logit of best id %d is another", best[i]);
        WANT(i == 0 || values[i] < values[i - 1] || (values[i] == values[i - 1] && best[i] >= best[i - 1]), "best ids out of order");
    }
    if (search.full) {
        WANT(chiplm_top(logits, vocabulary, k, order) == CHIPLM_OK && memcmp(order, best, k * sizeof *best) == 0, "not the best");
    }
    free(order);
    free(values);
    free(best);
}

static void verify(chiplm *lm, const chiplm_image *image) {
    float *row = hostile_memory(image->model.vocab_size * sizeof *row, 0xff);
    const chiplm_status status = chiplm_verify(lm, row);
    WANT(status == CHIPLM_OK || status == CHIPLM_ERR_DIGEST || status == CHIPLM_ERR_NOT_FINITE, "golden: status %d", (int)status);
    WANT(chiplm_position(lm) == 0, "position %u after the golden", chiplm_position(lm));
    free(row);
}

static void run(trial *t, const way *w) {
    const chiplm_image *image = t->image;
    const size_t row = image->model.vocab_size * sizeof(float);
    uint32_t members = w->members;
    const chiplm_options options = {.batch = w->batch, .path = w->path, .dense = w->dense, .team = {members, run_in_turn, &members}};
    const size_t arena_bytes = chiplm_arena_bytes(image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(image);
    void *arena = some_memory(arena_bytes, w->fill);
    void *cache = some_memory(cache_bytes, w->fill);
    chiplm *lm = NULL;
    chiplm_status status = chiplm_start(&lm, image, &options, arena, arena_bytes, cache, cache_bytes);
    WANT(status == CHIPLM_OK && lm != NULL, "start: status %d", (int)status);
    hostile_check_arena(lm);
    check_reads(lm, image, 0);
    for (uint32_t i = 0; w->bound && i < image->model.n_tensors; i++) {
        status = chiplm_bind_tensor(lm, i, t->copies[2 * i], t->copies[2 * i + 1]);
        WANT(status == CHIPLM_OK, "bind tensor %u: status %d", i, (int)status);
    }

    float *logits = hostile_memory(t->good * row, 0xff);
    status = chiplm_forward(lm, t->ids, t->good, logits);
    WANT(status == CHIPLM_OK && chiplm_position(lm) == t->good, "status %d at position %u", (int)status, chiplm_position(lm));
    WANT(memcmp(logits, t->logits, t->good * row) == 0, "path %d, batch %u, %u members, dense %d, bound %d: other logits", (int)w->path,
         w->batch, members, w->dense, w->bound);
    free(logits);
    check_reads(lm, image, t->good);
    if (t->good < t->n) { /* the next id alone, or all again up to it */
        const bool again = hostile_below(&t->random, 2) == 0;
        const uint32_t first = again ? 0 : t->good;
        if (again) {
            chiplm_reset(lm);
        }
        logits = hostile_memory((t->good + 1 - first) * row, 0xff);
        status = chiplm_forward(lm, t->ids + first, t->good + 1 - first, logits);
        WANT(status == CHIPLM_ERR_NOT_FINITE && chiplm_last_fault(lm)->status == status && chiplm_position(lm) == first,
             "status %d at position %u after logits that are not finite", (int)status, chiplm_position(lm));
        free(logits);
    }

    if (t->good > 0 && hostile_below(&t->random, 2) == 0) { /* again in two pieces */
        const uint32_t half = t->good / 2;
        const float *want = t->logits + (size_t)(t->good - 1) * image->model.vocab_size;
        chiplm_reset(lm);
        chiplm_clear_reads(lm);
        status = chiplm_forward(lm, t->ids, half, NULL);
        WANT(status == CHIPLM_OK, "without logits: status %d", (int)status);
        if (hostile_below(&t->random, 3) == 0) {
            logits = hostile_memory(row, 0xff);
            status = chiplm_forward_last(lm, t->ids + half, t->good - half, logits);
            WANT(status == CHIPLM_OK && memcmp(logits, want, row) == 0, "last: status %d, or other logits", (int)status);
            free(logits);
        } else {
            check_best(lm, t, t->ids + half, t->good - half, want);
        }
        check_reads(lm, image, t->good);
    }
    if (!t->verified && hostile_below(&t->random, 4) == 0) {
        t->verified = true;
        verify(lm, image);
    }
    free(cache);
    free(arena);
}

/* Feeds the reference, and keeps its logits. */
static void run_reference(trial *t) {
    const chiplm_image *image = t->image;
    const uint32_t vocabulary = image->model.vocab_size;
    const chiplm_options options = {.batch = 1, .path = CHIPLM_PATH_PLAIN, .dense = true};
    const size_t arena_bytes = chiplm_arena_bytes(image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(image);
    void *arena = some_memory(arena_bytes, 0xa5);
    void *cache = some_memory(cache_bytes, 0xa5);
    chiplm *lm = NULL;
    chiplm_status status = chiplm_start(&lm, image, &options, arena, arena_bytes, cache, cache_bytes);
    WANT(status == CHIPLM_OK, "start: status %d", (int)status);
    hostile_check_arena(lm);
    seen s = {.context_length = image->model.context_length};
    chiplm_trace(lm, trace, &s);
    float *row = hostile_memory(vocabulary * sizeof *row, 0xff);
    for (t->good = 0; t->good < t->n; t->good++) {
        status = chiplm_forward(lm, t->ids + t->good, 1, row);
        if (status != CHIPLM_OK) {
            WANT(status == CHIPLM_ERR_NOT_FINITE, "forward: status %d", (int)status);
            break;
        }
        memcpy(t->logits + (size_t)t->good * vocabulary, row, vocabulary * sizeof *row);
    }
    WANT(s.steps > 0, "no step was shown");
    free(row);
    free(cache);
    free(arena);
}

/* --------------------------------------------------------------------------------------------------------- sampling */

/* From the last row of logits to ids, scores and digests. */
static void draw(trial *t) {
    const uint32_t n = t->image->model.vocab_size;
    const float *logits = hostile_copy(t->logits + (size_t)(t->good - 1) * n, n * sizeof *logits);
    const uint32_t k = 1 + (uint32_t)hostile_below(&t->random, n);
    int32_t *order = hostile_memory(k * sizeof *order, 0xff);
    float *sorted = hostile_memory(k * sizeof *sorted, 0xff);
    const float temperature = (float)hostile_below(&t->random, 4) * 0.5f;
    uint64_t one = t->random;
    uint64_t two = t->random;
    int32_t id = -1;
    int32_t top = -1;
    uint32_t index = n;
    float sum, shift;
    WANT(chiplm_sample(logits, n, temperature, k, &one, order, &id) == CHIPLM_OK && id >= 0 && (uint32_t)id < n, "drawn %d", id);
    WANT(chiplm_top(logits, n, k, order) == CHIPLM_OK && chiplm_arg_max(logits, n, &top) == CHIPLM_OK && order[0] == top, "top %d", top);
    for (uint32_t i = 0; i < k; i++) {
        sorted[i] = logits[order[i]];
    }
    WANT(chiplm_draw(sorted, k, temperature, &two, &index) == CHIPLM_OK && index < k && order[index] == id && one == two, "drawn twice");
    WANT(chiplm_score(logits, n, id, &sum, &shift) == CHIPLM_OK && sum >= 1.0f && shift <= 0.0f, "score %g %g", (double)sum, (double)shift);
    uint64_t digest = chiplm_digest_add(chiplm_digest_start(), t->good - 1, id, logits, n);
    digest = chiplm_digest_add_choice(digest, id, logits[id]);
    WANT(digest != 0, "a digest of 0");
    free(sorted);
    free(order);
    free((void *)(uintptr_t)logits);
}

/* --------------------------------------------------------------------------------------------------------- an image */

static void copy_tensors(trial *t) {
    const uint32_t n = t->image->model.n_tensors;
    t->copies = calloc((size_t)n * 2, sizeof *t->copies);
    WANT(t->copies != NULL, "no memory");
    for (uint32_t i = 0; i < n; i++) {
        chiplm_tensor w;
        WANT(chiplm_image_tensor(t->image, i, &w) == CHIPLM_OK && memchr(w.name, 0, sizeof w.name) != NULL, "tensor %u", i);
        t->copies[2 * i] = (chiplm_span){hostile_copy(w.codes.at, w.codes.bytes), w.codes.bytes};
        t->copies[2 * i + 1] = (chiplm_span){w.scales.bytes > 0 ? hostile_copy(w.scales.at, w.scales.bytes) : NULL, w.scales.bytes};
    }
    chiplm_tensor none;
    WANT(chiplm_image_tensor(t->image, n, &none) == CHIPLM_ERR_ARGUMENT, "a tensor past the last");
}

/* Walks over entries and merges, as those do who use the tokenizer. */
static void read_tokenizer(const chiplm_image *image) {
    const uint8_t *p = image->tokenizer.at;
    const size_t entries = hostile_get(p + 4, 4);
    const size_t merges = hostile_get(p + 8, 4);
    const uint8_t *offsets = p + 20;
    const uint8_t *merge = offsets + 4 * (entries + 1);
    const uint8_t *text = merge + 12 * merges;
    const uint8_t *end = p + image->tokenizer.bytes;
    for (size_t i = 0; i < entries; i++) {
        const size_t from = hostile_get(offsets + 4 * i, 4);
        const size_t to = hostile_get(offsets + 4 * i + 4, 4);
        WANT(from <= to && to <= (size_t)(end - text) && (from == to) == (i == hostile_get(p + 12, 4)), "entry %zu: %zu to %zu", i, from, to);
    }
    for (size_t i = 0; i < 3 * merges; i++) {
        WANT(hostile_get(merge + 4 * i, 4) < entries, "a merge of entry %llu", (unsigned long long)hostile_get(merge + 4 * i, 4));
    }
}

static void run_all(const chiplm_image *image) {
    static const way ways[] = {
        {CHIPLM_PATH_PLAIN, 1, 1, false, true, 0xff},  {CHIPLM_PATH_PLAIN, 7, 3, false, false, 0x7f},
        {CHIPLM_PATH_AVX2, 1, 1, false, true, 0x7f},   {CHIPLM_PATH_AVX2, 7, 1, true, true, 0xff},
        {CHIPLM_PATH_AVX512, 1, 1, false, true, 0xff}, {CHIPLM_PATH_AVX512, 7, 1, true, true, 0x7f},
        {CHIPLM_PATH_NEON, 1, 1, false, true, 0x7f},   {CHIPLM_PATH_NEON, 7, 1, true, true, 0xff},
    };
    const chiplm_golden golden = chiplm_image_golden(image);
    const uint32_t context = image->model.context_length;
    trial t = {.image = image, .random = hostile_get(image->file.at + 28, 4), .n = context < MOST_IDS ? context : MOST_IDS};
    t.n -= (uint32_t)hostile_below(&t.random, t.n); /* mostly a few, for speed */
    t.n -= (uint32_t)hostile_below(&t.random, t.n);
    for (uint32_t i = 0; i < t.n; i++) {
        t.ids[i] = (int32_t)hostile_below(&t.random, image->model.vocab_size);
    }
    t.ids[0] = golden.prompt[0];
    t.ids[t.n - 1] = (int32_t)golden.top[2 * (golden.n_top - 1)];
    t.logits = hostile_memory((size_t)t.n * image->model.vocab_size * sizeof *t.logits, 0xff);
    read_tokenizer(image);
    hostile_texts(image, &t.random);
    copy_tensors(&t);
    run_reference(&t);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (chiplm_path_name(ways[i].path) != NULL) {
            run(&t, &ways[i]);
        }
    }
    hostile_count_positions(t.good);
    if (t.good > 0) {
        draw(&t);
    }
    for (uint32_t i = 0; i < 2 * image->model.n_tensors; i++) {
        free((void *)(uintptr_t)t.copies[i].at);
    }
    free(t.copies);
    free(t.logits);
}

/* Of accepted images one in so many is run: CHIPLM_FUZZ_EVERY, or each. Opening is most of the cases' point, running most of
 * their time. */
static bool is_run(void) {
    static unsigned long every, accepted;
    if (every == 0) {
        const char *given = getenv("CHIPLM_FUZZ_EVERY");
        every = given == NULL ? 1 : strtoul(given, NULL, 10);
        every = every == 0 ? 1 : every;
    }
    return accepted++ % every == 0;
}

chiplm_status hostile_image(const uint8_t *bytes, size_t size) {
    uint8_t *copy = hostile_copy(bytes, size);
    chiplm_image image;
    chiplm_fault fault;
    memset(&image, 0xff, sizeof image);
    const chiplm_status status = chiplm_image_open(&image, copy, size, &fault);
    WANT(status == fault.status && memchr(fault.where, 0, sizeof fault.where) != NULL, "status %d, fault %d", (int)status,
         (int)fault.status);
    if (status == CHIPLM_OK) {
        if (is_run()) {
            run_all(&image);
        }
    } else {
        static const chiplm_image none;
        WANT(fault.where[0] != 0 && memcmp(&image, &none, sizeof image) == 0, "a refused image leaves something behind");
    }
    WANT(size == 0 || memcmp(copy, bytes, size) == 0, "the image was written to");
    free(copy);
    return status;
}
