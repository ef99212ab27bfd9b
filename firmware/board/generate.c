/* Generating: the prompt in blocks, then a token at a time. */
#include "board.h"

uint32_t board_best(const board *b, uint32_t temperature, uint32_t top_k) {
    const chiplm_model *m = &b->image.model;
    const uint32_t k = temperature == 0 ? 1 : top_k;
    return m->clusters > 0 && k > 0 && k <= CHIPLM_SEARCH_MOST && k <= m->vocab_size ? k : 0;
}

chiplm_status board_feed(board *b, const int32_t *ids, size_t n, uint32_t k) {
    if (k == 0) {
        return chiplm_forward_last(b->lm, ids, n, b->logits);
    }
    const chiplm_search search = chiplm_search_certified(&b->image);
    uint32_t found;
    return chiplm_forward_best(b->lm, ids, n, &search, k, b->order, b->logits, &found);
}

/* Draws an id from what board_feed found. */
static chiplm_status draw(board *b, const board_request *r, uint32_t k, uint64_t *random, int32_t *id) {
    const float temperature = (float)r->temperature / 1000.0f;
    if (k == 0) {
        return chiplm_sample(b->logits, b->image.model.vocab_size, temperature, r->top_k, random, b->order, id);
    }
    uint32_t index;
    const chiplm_status status = chiplm_draw(b->logits, k, temperature, random, &index);
    if (status == CHIPLM_OK) {
        *id = b->order[index];
    }
    return status;
}

static void put_time(writer *w, uint64_t microseconds, unsigned decimals) {
    const uint64_t unit = decimals == 1 ? 100 : 10;
    put_decimal(w, (microseconds + unit / 2) / unit, decimals);
}

/* Feeds the prompt, block by block, so that X is seen. stopped says that it was. */
static chiplm_status read_prompt(board *b, const board_request *r, uint32_t k, bool *stopped) {
    const uint64_t before = port_microseconds(b->port);
    chiplm_status status = CHIPLM_OK;
    uint32_t done = 0;
    while (status == CHIPLM_OK && !*stopped && r->length - done > BOARD_BATCH) {
        status = chiplm_forward(b->lm, b->prompt + done, BOARD_BATCH, NULL);
        done += BOARD_BATCH;
        port_feed(b->port);
        *stopped = input_wants_stop(&b->in);
    }
    if (status == CHIPLM_OK && !*stopped) {
        status = board_feed(b, b->prompt + done, r->length - done, k);
    }
    if (status == CHIPLM_OK) {
        put(&b->out.w, "P ");
        put_time(&b->out.w, port_microseconds(b->port) - before, 1);
        output_line(&b->out);
    }
    return status;
}

static void put_token(board *b, const board_request *r, int32_t id, uint64_t microseconds) {
    writer *w = &b->out.w;
    put(w, "T ");
    put_number(w, (uint64_t)id);
    put(w, " ");
    put_number(w, microseconds);
    if (r->show) {
        const chiplm_span token = chiplm_image_token(&b->image, id);
        put(w, " ");
        put_escaped(w, token.at, token.bytes);
    }
    output_line(&b->out);
}

typedef struct run {
    uint32_t count;
    uint64_t microseconds; /* of all but the first */
    const char *why;
} run;

/* Feeds the token before the next one; from here on its time is profiled. */
static chiplm_status next(board *b, const int32_t *id, uint32_t k) {
    if (!b->profiling) {
        return board_feed(b, id, 1, k);
    }
    profile_begin(&b->profile);
    const chiplm_status status = board_feed(b, id, 1, k);
    profile_mark(&b->profile, "head");
    b->profile.tokens++;
    return status;
}

static chiplm_status write_tokens(board *b, const board_request *r, uint32_t k, run *result) {
    uint64_t random = r->seed;
    uint64_t mark = port_microseconds(b->port);
    for (uint32_t i = 0; i < r->most; i++) {
        int32_t id;
        const chiplm_status drawn = draw(b, r, k, &random, &id);
        if (drawn != CHIPLM_OK) {
            return drawn;
        }
        if (id == chiplm_image_end_of_text(&b->image)) {
            result->why = "end";
            return CHIPLM_OK;
        }
        const uint64_t now = port_microseconds(b->port);
        put_token(b, r, id, now - mark);
        result->microseconds += i == 0 ? 0 : now - mark;
        result->count++;
        mark = now;
        if (result->count == r->most) {
            break;
        }
        if (chiplm_position(b->lm) == b->image.model.context_length) {
            result->why = "context";
            return CHIPLM_OK;
        }
        port_feed(b->port);
        if (input_wants_stop(&b->in)) {
            result->why = "stopped";
            return CHIPLM_OK;
        }
        const chiplm_status fed = next(b, &id, k);
        if (fed != CHIPLM_OK) {
            return fed;
        }
    }
    result->why = "length";
    return CHIPLM_OK;
}

void board_generate(board *b, const board_request *r) {
    const uint32_t k = board_best(b, r->temperature, r->top_k);
    run result = {.why = "stopped"};
    bool stopped = false;
    chiplm_reset(b->lm);
    chiplm_status status = read_prompt(b, r, k, &stopped);
    if (status == CHIPLM_OK && !stopped) {
        if (b->profiling) {
            profile_start(&b->profile, b->port);
            chiplm_trace(b->lm, profile_step, &b->profile);
        }
        status = write_tokens(b, r, k, &result);
        chiplm_trace(b->lm, NULL, NULL);
    }
    if (status != CHIPLM_OK) {
        board_engine_error(b, status);
        return;
    }
    writer *w = &b->out.w;
    put(w, "E ");
    put_number(w, result.count);
    put(w, " ");
    put_time(w, result.count > 1 ? result.microseconds / (result.count - 1) : 0, 2);
    put(w, " ");
    put(w, result.why);
    output_line(&b->out);
}
