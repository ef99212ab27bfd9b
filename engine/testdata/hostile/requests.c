/* The calls beside feeding: searches, tensors in other memory, sampling, views, images that are no images. */
#include "calls.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- the search */

void call_best(world *w) {
    size_t n;
    chiplm_status want;
    const chiplm_model *m = &w->g->image.model;
    const uint32_t position = w->lm == NULL ? 0 : chiplm_position(w->lm);
    const int32_t *ids = some_ids(w, &n, &want);
    const float margins[] = {1.0f, 1.0f, 0.0f, 0.5f, -0.0f, -1.0f, 1.0001f, NAN, INFINITY, FLT_MIN};
    const uint32_t k = next_byte(w) < 220 ? 1 + next_byte(w) % m->vocab_size : next_number(w, m->vocab_size + 2);
    chiplm_search search = chiplm_search_certified(&w->g->image);
    if (next_byte(w) % 2 == 1) {
        search = (chiplm_search){next_byte(w) % 4 == 0, next_number(w, m->clusters + 1), margins[next_byte(w) % 10]};
    }
    const uint32_t missing = next_byte(w);
    const size_t room = k >= 1 && k <= m->vocab_size ? k : 0;
    int32_t *best = keep(w, hostile_memory(room * sizeof *best, 0xff));
    float *logits = keep(w, hostile_memory(room * sizeof *logits, 0xff));
    uint32_t found = 0xffffffff;
    if (w->lm == NULL || n == 0 || missing < 4 || k < 1 || k > m->vocab_size) {
        want = CHIPLM_ERR_ARGUMENT;
    } else if (!search.full && m->clusters == 0) {
        want = CHIPLM_ERR_CLUSTERS;
    } else if (!search.full && !(search.margin >= 0.0f && search.margin <= 1.0f)) {
        want = CHIPLM_ERR_ARGUMENT;
    }
    const chiplm_status status =
        chiplm_forward_best(w->lm, ids, n, missing == 0 ? NULL : &search, k, missing == 1 ? NULL : best, missing == 2 ? NULL : logits,
                            missing == 3 ? NULL : &found);
    expect_at(w, "forward_best", status, want, want == CHIPLM_OK ? position + (uint32_t)n : position);
    if (status != CHIPLM_OK) {
        return;
    }
    fed(w, ids, n);
    const bool proven = search.full || (search.clusters == 0 && search.margin == 1.0f);
    int32_t *order = keep(w, hostile_memory(k * sizeof *order, 0));
    WANT(chiplm_top(w->g->row, m->vocab_size, k, order) == CHIPLM_OK, "top");
    WANT(found == k || (!search.full && search.clusters != 0 && found < k), "%u of the %u best found", found, k);
    for (uint32_t i = 0; i < found; i++) {
        WANT(best[i] >= 0 && (uint32_t)best[i] < m->vocab_size && (!proven || best[i] == order[i]), "best id %d at %u", best[i], i);
        WANT(memcmp(&logits[i], &w->g->row[best[i]], sizeof *logits) == 0, "another logit of id %d", best[i]);
    }
}

void call_verify(world *w) {
    const size_t bytes = w->g->image.model.vocab_size * sizeof(float);
    float *logits = next_byte(w) < 240 ? keep(w, hostile_memory(bytes, 0xff)) : NULL;
    const chiplm_status want = w->lm == NULL || logits == NULL ? CHIPLM_ERR_ARGUMENT : CHIPLM_OK;
    const chiplm_status status = chiplm_verify(w->lm, logits);
    expect("verify", status, want);
    if (status == CHIPLM_OK) {
        WANT(chiplm_position(w->lm) == 0, "verify leaves position %u", chiplm_position(w->lm));
        chiplm_reset(w->g->reference);
    }
}

void call_reset(world *w) {
    if (w->lm != NULL) {
        chiplm_reset(w->lm);
        chiplm_reset(w->g->reference);
        WANT(chiplm_position(w->lm) == 0, "reset leaves position %u", chiplm_position(w->lm));
    }
}

/* ---------------------------------------------------------------------------------------------------- other memory */

/* A copy of a span, exact, or wrong in the way that kind says. */
static chiplm_span copy_span(world *w, chiplm_span from, uint32_t kind) {
    const size_t odd = kind == 1 ? 1 + next_byte(w) % 15 : 0;
    const size_t missing = kind == 2 && from.bytes > 0 ? 1 + next_byte(w) % (from.bytes < 64 ? from.bytes : 64) : 0;
    uint8_t *to = (uint8_t *)keep(w, hostile_memory(from.bytes + odd - missing, 0)) + odd;
    if (from.bytes > 0) {
        memcpy(to, from.at, from.bytes - missing);
    }
    return (chiplm_span){to, from.bytes - missing};
}

void call_bind(world *w) {
    const chiplm_model *m = &w->g->image.model;
    const uint32_t index = next_number(w, m->n_tensors);
    const uint32_t kind = next_byte(w) < 160 ? 0 : next_byte(w) % 4;
    const uint32_t which = next_byte(w) % 4; /* bit 0: codes, bit 1: scales */
    const chiplm_span nothing = {0};
    chiplm_tensor t;
    if (index >= m->n_tensors) {
        WANT(chiplm_image_tensor(&w->g->image, index, &t) == CHIPLM_ERR_ARGUMENT, "tensor %u", index);
        expect("bind a tensor past the last", chiplm_bind_tensor(w->lm, index, nothing, nothing), CHIPLM_ERR_ARGUMENT);
        return;
    }
    WANT(chiplm_image_tensor(&w->g->image, index, &t) == CHIPLM_OK, "tensor %u", index);
    const chiplm_span codes = (which & 1U) != 0 ? copy_span(w, t.codes, kind) : nothing;
    chiplm_span scales = (which & 2U) != 0 && t.scales.bytes > 0 ? copy_span(w, t.scales, kind) : nothing;
    chiplm_status want = CHIPLM_OK;
    if ((codes.at != NULL || scales.at != NULL) && (kind == 1 || kind == 2)) {
        want = kind == 1 ? CHIPLM_ERR_ALIGNMENT : CHIPLM_ERR_ARENA;
    }
    if (kind == 3 && t.scales.bytes == 0) { /* scales for a tensor that has none */
        scales = copy_span(w, t.codes, 0);
        want = CHIPLM_ERR_ARGUMENT;
    }
    if (w->lm == NULL) {
        want = CHIPLM_ERR_ARGUMENT;
    }
    expect("bind", chiplm_bind_tensor(w->lm, index, codes, scales), want);
}

/* --------------------------------------------------------------------------------------------------------- sampling */

static bool is_finite(float x) { return x - x == 0.0f; }

void call_sampling(world *w) {
    static const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-40f, -1e-40f, 88.0f, -88.0f, 1e30f, NAN, INFINITY, -INFINITY};
    static const float temperatures[] = {0.0f, 1.0f, 0.7f, 100.0f, FLT_MAX, 0x1p-100f, 0x1.fffffep-101f, -0.0f, 1e-40f, -1e-40f, NAN, INFINITY, -INFINITY};
    const uint32_t n = next_byte(w) % 40;
    const uint32_t mostly = next_byte(w);
    float *logits = keep(w, hostile_memory(n * sizeof *logits, 0));
    bool finite = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t b = next_byte(w);
        logits[i] = b < 32 && mostly < 128 ? values[b % 15] : (float)(int32_t)(b - 128) * 0.25f;
        finite = finite && is_finite(logits[i]);
    }
    const float temperature = temperatures[next_byte(w) % 13];
    const uint32_t k = next_number(w, n + 2);
    const uint32_t places = k == 0 || k > n ? n : k;
    const uint32_t missing = next_byte(w);
    int32_t *order = keep(w, hostile_memory(places * sizeof *order, 0xff));
    uint64_t random = next_byte(w);
    int32_t id = -1;
    const bool drawn = is_finite(temperature) && temperature >= 0x1p-100f;
    chiplm_status want = CHIPLM_OK;
    if (!is_finite(temperature) || temperature < 0.0f) {
        want = CHIPLM_ERR_TEMPERATURE;
    } else if (n == 0 || missing == 0 || (drawn && missing == 1)) {
        want = CHIPLM_ERR_ARGUMENT;
    } else if (!finite) {
        want = CHIPLM_ERR_NOT_FINITE;
    }
    chiplm_status status =
        chiplm_sample(missing == 0 ? NULL : logits, n, temperature, k, missing == 1 ? NULL : &random, order, &id);
    expect("sample", status, want);
    WANT(status != CHIPLM_OK || (id >= 0 && (uint32_t)id < n), "sample: id %d of %u", id, n);
    uint32_t index = n;
    status = chiplm_draw(missing == 0 ? NULL : logits, n, temperature, missing == 1 ? NULL : &random, &index);
    expect("draw", status, want);
    WANT(status != CHIPLM_OK || index < n, "draw: place %u of %u", index, n);

    want = n == 0 ? CHIPLM_ERR_ARGUMENT : finite ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
    status = chiplm_arg_max(logits, n, &id);
    expect("arg_max", status, want);
    WANT(chiplm_arg_max(NULL, n, &id) == CHIPLM_ERR_ARGUMENT && chiplm_arg_max(logits, n, NULL) == CHIPLM_ERR_ARGUMENT, "arg_max of null");
    WANT(status != CHIPLM_OK || (id >= 0 && (uint32_t)id < n), "arg_max %d", id);
    want = k == 0 || k > n ? CHIPLM_ERR_ARGUMENT : want;
    status = chiplm_top(logits, n, k, order);
    expect("top", status, want);
    for (uint32_t i = 1; status == CHIPLM_OK && i < k; i++) {
        const float a = logits[order[i - 1]];
        const float b = logits[order[i]];
        WANT(a > b || (a == b && order[i - 1] < order[i]), "top out of order at %u", i);
    }

    float sum, shift;
    const uint32_t asked = next_number(w, n);
    want = n == 0 ? CHIPLM_ERR_ARGUMENT : asked >= n ? CHIPLM_ERR_ID : finite ? CHIPLM_OK : CHIPLM_ERR_NOT_FINITE;
    expect("score", chiplm_score(logits, n, (int32_t)asked, &sum, &shift), want);
    WANT(chiplm_score(logits, n, 0, NULL, &shift) == CHIPLM_ERR_ARGUMENT && chiplm_score(NULL, n, 0, &sum, &shift) == CHIPLM_ERR_ARGUMENT, "score of null");
    WANT(chiplm_digest_add(chiplm_digest_start(), asked, id, logits, n) != chiplm_digest_add_choice(chiplm_digest_start(), id, 1.0f), "equal digests");
}

/* ------------------------------------------------------------------------------------------------------------ views */

static void count_values(void *self, const chiplm_step *step) {
    volatile float *last = self;
    for (uint32_t i = 0; i < step->count; i++) {
        *last = step->values[i];
    }
}

void call_views(world *w) {
    static volatile float last;
    const uint32_t number = next_number(w, CHIPLM_STATUS_COUNT);
    const char *text = chiplm_status_text((chiplm_status)number);
    WANT(text != NULL && strlen(text) > 0, "status %u has no text", number);
    WANT(number < CHIPLM_PATH_COUNT || chiplm_path_name((chiplm_path)number) == NULL, "path %u has a name", number);
    const chiplm_golden golden = chiplm_image_golden(&w->g->image);
    WANT(golden.n_prompt >= 1 && golden.n_top >= 1, "an empty golden");
    WANT(chiplm_image_tensor(NULL, 0, NULL) == CHIPLM_ERR_ARGUMENT && chiplm_image_tensor(&w->g->image, 0, NULL) == CHIPLM_ERR_ARGUMENT, "tensor of null");
    if (w->lm == NULL) {
        return;
    }
    const chiplm_reads *reads = chiplm_reads_of(w->lm);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->g->image.model.n_tensors; i++) {
        sum += reads->tensors[i];
    }
    WANT(sum > 0 || reads->positions == 0, "positions without reads");
    if (next_byte(w) % 4 == 0) {
        chiplm_clear_reads(w->lm);
        WANT(reads->positions == 0 && reads->tensors[0] == 0, "reads after clearing");
    }
    if (next_byte(w) % 2 == 0) {
        chiplm_trace(w->lm, next_byte(w) % 2 == 0 ? count_values : NULL, (void *)(uintptr_t)&last);
    }
}

/* ------------------------------------------------------------------------------------------- images that are no images */

void call_open(world *w) {
    enum { CUT, ODD, NO_BYTES, NO_IMAGE, WHOLE, KINDS };
    const uint32_t kind = next_byte(w) % KINDS;
    const size_t odd = 1 + next_byte(w) % 63;
    const size_t size = kind == CUT ? (next_byte(w) | next_byte(w) << 8) % w->g->size : w->g->size;
    uint8_t *p = hostile_memory(size + (kind == ODD ? odd : 0), 0);
    uint8_t *bytes = kind == ODD ? p + odd : p;
    memcpy(bytes, w->g->bytes, size);
    chiplm_image image;
    chiplm_fault fault;
    const chiplm_status status =
        chiplm_image_open(kind == NO_IMAGE ? NULL : &image, kind == NO_BYTES ? NULL : bytes, size, next_byte(w) % 4 == 0 ? NULL : &fault);
    const chiplm_status cut = size < HEADER ? CHIPLM_ERR_SIZE : CHIPLM_ERR_FILE_BYTES;
    const chiplm_status want[KINDS] = {cut, CHIPLM_ERR_ALIGNMENT, CHIPLM_ERR_ARGUMENT, CHIPLM_ERR_ARGUMENT, CHIPLM_OK};
    expect("open", status, want[kind]);
    free(p);
}
