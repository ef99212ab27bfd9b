/* engine.c - the engine for the page: a model in an instance of this module, and its work in pieces so small that the page
 * can look between two of them whether it is to stop. What is computed is what the firmware computes for the requests S, G,
 * D and Q of PROTOCOL.md; page/engine-core.js calls these functions and documents the whole.
 *
 * An instance runs one model: the page makes another for another. Memory is taken once, when the image is opened, but for
 * that of encoding, which grows with the longest text. A function that can fail returns 0 or more when it did not, and else
 * a status of the engine, negative; engine_sentence says it in words. */
#include "chiplm.h"
#include "clock.h"
#include "profile.h"
#include "writer.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { BATCH = 8, ALIGN = 64, PAGE = 65536, TEXT = 4096, NO_MEMORY = -1000 };

typedef enum mode { MODE_BEST, MODE_PLAIN } mode;

typedef struct request {
    float temperature;
    uint32_t top_k;
    uint32_t best; /* tokens that a search of the head is to find; 0: all logits are read */
    uint64_t random;
    uint32_t length, done; /* of the prompt: in all, fed */
    bool profiled;
} request;

static struct {
    chiplm_image image;
    chiplm_fault fault; /* of the start; later ones are chiplm_last_fault's */
    chiplm *lm;
    void *arena, *cache;
    size_t arena_bytes, cache_bytes;
    uint8_t *file;
    float *logits;   /* [vocab_size] or the best ones */
    int32_t *order;  /* [vocab_size] ids beside them */
    int32_t *prompt; /* [context_length] */
    request request;
    profile profile; /* of the last request that ran with profiling on */
    int32_t id;      /* the next one of a digest */
    uint64_t digest;
    char text[TEXT]; /* the last answer in words or JSON */
    size_t text_bytes;
} page;

/* ---------------------------------------------------------------------------------------------------------- memory */

extern uint8_t __heap_base;
static uintptr_t taken; /* the end of what is taken; 0 before the first time */

/* Memory behind what is taken; null when the browser has no more. It is taken for good by setting taken to its end. */
static void *room_for(uint64_t bytes) {
    if (taken == 0) {
        taken = ((uintptr_t)&__heap_base + ALIGN - 1) / ALIGN * ALIGN;
    }
    const uint64_t pages = (taken + bytes + PAGE - 1) / PAGE;
    const size_t have = __builtin_wasm_memory_size(0);
    if (pages > 65536 || (pages > have && __builtin_wasm_memory_grow(0, (size_t)pages - have) == SIZE_MAX)) {
        return NULL;
    }
    return (void *)taken;
}

static void *take(uint64_t bytes) {
    void *at = room_for(bytes);
    if (at != NULL) {
        taken += (uintptr_t)((bytes + ALIGN - 1) / ALIGN * ALIGN);
    }
    return at;
}

/* ------------------------------------------------------------------------------------------------------------ words */

static writer words(void) { return (writer){.buffer = page.text, .room = TEXT}; }

static void say(const writer *w) { page.text_bytes = w->used; }

const char *EXPORT(engine_text)(void) { return page.text; }
uint32_t EXPORT(engine_text_bytes)(void) { return (uint32_t)page.text_bytes; }

/* Puts the sentence of a result below 0, with its place where that is known, into engine_text. */
void EXPORT(engine_sentence)(int32_t result) {
    const chiplm_status status = (chiplm_status)-result;
    const chiplm_fault *fault = page.lm != NULL ? chiplm_last_fault(page.lm) : &page.fault;
    writer w = words();
    put(&w, chiplm_status_text(status));
    if (fault->status == status && fault->where[0] != '\0') {
        put(&w, " (");
        put(&w, fault->where);
        put(&w, " ");
        put_number(&w, fault->found);
        put(&w, ")");
    }
    say(&w);
}

static void put_field(writer *w, const char *key, uint64_t v) {
    put_key(w, key);
    put_number(w, v);
}

static void put_hashed(writer *w, const char *key, const uint8_t *hash) {
    put_key(w, key);
    put(w, "\"");
    put_hash(w, hash, 32);
    put(w, "\"");
}

/* What the browser calls the vectors that the path neon runs on here. */
static const char *path_name(void) {
    return chiplm_path_name(CHIPLM_PATH_NEON) != NULL ? "simd128" : chiplm_path_name(CHIPLM_PATH_BEST);
}

/* Puts what "model" of the answer to I holds into engine_text, and the path. */
void EXPORT(engine_info)(void) {
    const chiplm_model *m = &page.image.model;
    writer w = words();
    put(&w, "{");
    put_field(&w, "image_bytes", page.image.file.bytes);
    put_hashed(&w, "model_sha256", m->model_sha256);
    put_hashed(&w, "tokenizer_sha256", m->tokenizer_sha256);
    put_field(&w, "vocab_size", m->vocab_size);
    put_field(&w, "d_model", m->d_model);
    put_field(&w, "n_layers", m->n_layers);
    put_field(&w, "n_heads", m->n_heads);
    put_field(&w, "d_ff", m->d_ff);
    put_field(&w, "ple_dim", m->ple_dim);
    put_field(&w, "experts", m->experts);
    put_field(&w, "context_length", m->context_length);
    put_field(&w, "clusters", m->clusters);
    put_field(&w, "end_of_text", (uint64_t)chiplm_image_end_of_text(&page.image));
    put_key(&w, "path");
    put_json(&w, path_name());
    put(&w, "}");
    say(&w);
}

/* ------------------------------------------------------------------------------------------------------------ start */

static chiplm_options options_of(mode m) {
    return (chiplm_options){.batch = BATCH, .path = m == MODE_PLAIN ? CHIPLM_PATH_PLAIN : CHIPLM_PATH_BEST};
}

static chiplm_status start(mode m) {
    const chiplm_options options = options_of(m);
    return chiplm_start(&page.lm, &page.image, &options, page.arena, page.arena_bytes, page.cache, page.cache_bytes);
}

/* An image whose merges encode no text runs all the same: encoding then has a sentence. */
static bool take_buffers(void) {
    const chiplm_model *m = &page.image.model;
    for (mode which = MODE_BEST; which <= MODE_PLAIN; which++) {
        const chiplm_options options = options_of(which);
        const size_t bytes = chiplm_arena_bytes(&page.image, &options);
        page.arena_bytes = bytes > page.arena_bytes ? bytes : page.arena_bytes;
    }
    page.cache_bytes = chiplm_cache_bytes(&page.image);
    const size_t index = chiplm_encode_index_bytes(&page.image);
    void *merges = take(index);
    if (merges == NULL || (page.arena = take(page.arena_bytes)) == NULL || (page.cache = take(page.cache_bytes)) == NULL ||
        (page.logits = take((uint64_t)m->vocab_size * sizeof *page.logits)) == NULL ||
        (page.order = take((uint64_t)m->vocab_size * sizeof *page.order)) == NULL ||
        (page.prompt = take((uint64_t)m->context_length * sizeof *page.prompt)) == NULL) {
        return false;
    }
    (void)chiplm_encode_index(&page.image, merges, index, NULL);
    return true;
}

/* Where the page writes the image; null when there is no memory for it. */
uint8_t *EXPORT(engine_file)(uint32_t bytes) { return page.file = take(bytes); }

/* Checks the image and makes the model ready. */
int32_t EXPORT(engine_open)(uint32_t bytes) {
    chiplm_status status = chiplm_image_open(&page.image, page.file, bytes, &page.fault);
    if (status == CHIPLM_OK && !take_buffers()) {
        return NO_MEMORY;
    }
    if (status == CHIPLM_OK) {
        status = start(MODE_BEST);
        page.fault = (chiplm_fault){.status = status, .where = "start of the engine"};
    }
    return -(int32_t)status;
}

/* Runs the golden: image, compiler and browser are as the exporter wants them. */
int32_t EXPORT(engine_prove)(void) { return -(int32_t)chiplm_verify(page.lm, page.logits); }

/* ------------------------------------------------------------------------------------------------------------- text */

static size_t ids_at(size_t bytes) { return (bytes + 3) / 4 * 4; }

/* Where the page writes a text of so many bytes; null when there is no memory to encode it. Its ids go behind it, and the
 * scratch behind these. */
uint8_t *EXPORT(engine_text_room)(uint32_t bytes) {
    const uint64_t ids = ids_at(bytes) + (uint64_t)bytes * sizeof(int32_t);
    return room_for(ids + chiplm_encode_scratch(&page.image, bytes));
}

/* Where the ids of that text are once it is encoded: as many as bytes at most. */
const int32_t *EXPORT(engine_ids)(uint32_t bytes) { return (const int32_t *)(taken + ids_at(bytes)); }

/* Encodes that text, and returns the number of its ids. */
int32_t EXPORT(engine_encode)(uint32_t bytes) {
    int32_t *ids = (int32_t *)(taken + ids_at(bytes));
    size_t n = 0;
    const chiplm_status status = chiplm_encode(&page.image, (const void *)taken, bytes, ids, bytes, ids + bytes,
                                               chiplm_encode_scratch(&page.image, bytes), &n);
    return status == CHIPLM_OK ? (int32_t)n : -(int32_t)status;
}

const uint8_t *EXPORT(engine_token)(int32_t id) { return chiplm_image_token(&page.image, id).at; }
uint32_t EXPORT(engine_token_bytes)(int32_t id) { return (uint32_t)chiplm_image_token(&page.image, id).bytes; }

/* -------------------------------------------------------------------------------------------------------- generate */

/* As board_best and board_feed of the firmware: a search of the head where it is worth its while. */
static uint32_t best_of(uint32_t temperature, uint32_t top_k) {
    const chiplm_model *m = &page.image.model;
    const uint32_t k = temperature == 0 ? 1 : top_k;
    return m->clusters > 0 && k > 0 && k <= CHIPLM_SEARCH_MOST && k <= m->vocab_size ? k : 0;
}

static chiplm_status feed(const int32_t *ids, size_t n) {
    if (page.request.best == 0) {
        return chiplm_forward_last(page.lm, ids, n, page.logits);
    }
    const chiplm_search search = chiplm_search_certified(&page.image);
    uint32_t found;
    return chiplm_forward_best(page.lm, ids, n, &search, page.request.best, page.order, page.logits, &found);
}

/* Where the page writes the ids of a prompt, up to context_length of them. */
int32_t *EXPORT(engine_prompt)(void) { return page.prompt; }

/* Begins a request whose prompt is there, at position 0. temperature is in thousandths. */
void EXPORT(engine_begin)(uint32_t length, uint32_t temperature, uint32_t top_k, uint64_t seed, uint32_t profiled) {
    page.request = (request){
        .temperature = (float)temperature / 1000.0f,
        .top_k = top_k,
        .best = best_of(temperature, top_k),
        .random = seed,
        .length = length,
        .profiled = profiled != 0,
    };
    chiplm_trace(page.lm, NULL, NULL);
    chiplm_reset(page.lm);
}

/* Feeds a block of the prompt, and returns how many tokens of it are left. */
int32_t EXPORT(engine_read)(void) {
    request *r = &page.request;
    const uint32_t left = r->length - r->done;
    const uint32_t n = left > BATCH ? BATCH : left;
    const int32_t *ids = page.prompt + r->done;
    const chiplm_status status = left > BATCH ? chiplm_forward(page.lm, ids, n, NULL) : feed(ids, n);
    if (status != CHIPLM_OK) {
        return -(int32_t)status;
    }
    r->done += n;
    if (r->done == r->length && r->profiled) {
        profile_start(&page.profile, NULL);
        chiplm_trace(page.lm, profile_step, &page.profile);
    }
    return (int32_t)(r->length - r->done);
}

/* Draws a token after what was fed, and returns its id. */
int32_t EXPORT(engine_draw)(void) {
    request *r = &page.request;
    chiplm_status status;
    int32_t id = 0;
    if (r->best == 0) {
        status = chiplm_sample(page.logits, page.image.model.vocab_size, r->temperature, r->top_k, &r->random, page.order, &id);
    } else {
        uint32_t index = 0;
        status = chiplm_draw(page.logits, r->best, r->temperature, &r->random, &index);
        id = page.order[index];
    }
    return status == CHIPLM_OK ? id : -(int32_t)status;
}

/* Feeds a token, so that the next one can be drawn. */
int32_t EXPORT(engine_feed)(int32_t id) {
    if (!page.request.profiled) {
        return -(int32_t)feed(&id, 1);
    }
    profile_begin(&page.profile);
    const chiplm_status status = feed(&id, 1);
    profile_mark(&page.profile, "head");
    page.profile.tokens++;
    return -(int32_t)status;
}

/* How many tokens were fed. */
uint32_t EXPORT(engine_position)(void) { return chiplm_position(page.lm); }

/* Puts the profile of the last request with profiling into engine_text, as JSON, and returns over how many tokens it is. */
uint32_t EXPORT(engine_profile)(void) {
    writer w = words();
    profile_put(&page.profile, &w);
    say(&w);
    return page.profile.tokens;
}

/* ---------------------------------------------------------------------------------------------------------- digest */

/* Begins a digest: of the fastest path, or that of plain C. */
int32_t EXPORT(engine_digest_begin)(uint32_t plain) {
    page.id = chiplm_image_end_of_text(&page.image);
    page.digest = chiplm_digest_start();
    return -(int32_t)start(plain != 0 ? MODE_PLAIN : MODE_BEST);
}

/* Feeds the best token, end-of-text at first, and adds all its logits. */
int32_t EXPORT(engine_digest_add)(void) {
    const uint32_t vocabulary = page.image.model.vocab_size;
    const uint32_t position = chiplm_position(page.lm);
    chiplm_status status = chiplm_forward_last(page.lm, &page.id, 1, page.logits);
    if (status == CHIPLM_OK) {
        page.digest = chiplm_digest_add(page.digest, position, page.id, page.logits, vocabulary);
        status = chiplm_arg_max(page.logits, vocabulary, &page.id);
    }
    return -(int32_t)status;
}

/* Ends a digest, whole or not: the model is on its fastest path again. */
void EXPORT(engine_digest_end)(void) { (void)start(MODE_BEST); /* what succeeded at the start succeeds again */ }

/* The digest of what was added. */
uint64_t EXPORT(engine_digest)(void) { return page.digest; }
