/* The requests of firmware/PROTOCOL.md. */
#include "board.h"
#include "fields.h"

#include <string.h>

enum { QUOTED = 24, MOST_TOKENS = 1000000, MOST_TEMPERATURE = 1000000, ASK_TEXT = 1, TEXT_FIELD = 5 };

writer *board_error(board *b, const char *code) {
    writer *w = &b->out.w;
    put(w, "! ");
    put(w, code);
    put(w, " ");
    return w;
}

static void error(board *b, const char *code, const char *sentence) {
    put(board_error(b, code), sentence);
    output_line(&b->out);
}

void board_engine_error(board *b, chiplm_status status) {
    const chiplm_fault *fault = chiplm_last_fault(b->lm);
    writer *w = board_error(b, "engine");
    put(w, chiplm_status_text(status));
    if (fault->status == status && fault->where[0] != '\0') {
        put(w, " (");
        put_escaped(w, (const uint8_t *)fault->where, strlen(fault->where));
        put(w, " ");
        put_number(w, fault->found);
        put(w, ")");
    }
    output_line(&b->out);
}

/* ---------------------------------------------------------------------------------------------------------- fields */

static void put_quoted(writer *w, const char *field, size_t n) {
    put(w, "\"");
    put_escaped(w, (const uint8_t *)field, n < QUOTED ? n : QUOTED);
    put(w, n > QUOTED ? "...\"" : "\"");
}

/* What a number may be: from least to most; the answer to any other says from least to told, and why. */
typedef struct limits {
    uint64_t least, most, told;
    const char *why;
} limits;

/* The next field as a number within limits; answers with an error and returns false if it is none. */
static bool limited(board *b, fields *f, const char *name, limits l, uint64_t *v) {
    char *field;
    size_t n;
    if (!fields_next(f, &field, &n)) {
        put(board_error(b, "missing"), name);
        put(&b->out.w, " is missing: see PROTOCOL.md for the fields");
        output_line(&b->out);
        return false;
    }
    const number_kind kind = fields_number(field, n, l.most, v);
    if (kind == NUMBER_OK && *v >= l.least) {
        return true;
    }
    writer *w = board_error(b, kind == NUMBER_NONE ? "number" : "range");
    put(w, name);
    put(w, " is ");
    put_quoted(w, field, n);
    put(w, ", it must be a number from ");
    put_number(w, l.least);
    put(w, " to ");
    put_number(w, l.told);
    put(w, l.why);
    output_line(&b->out);
    return false;
}

static bool number(board *b, fields *f, const char *name, uint64_t least, uint64_t most, uint64_t *v) {
    return limited(b, f, name, (limits){least, most, most, ""}, v);
}

/* A number of tokens that are to lie in the context: one that is larger than that has an error of its own. */
static bool tokens(board *b, fields *f, const char *name, uint64_t *v) {
    return limited(b, f, name, (limits){1, UINT32_MAX, b->image.model.context_length, ", the context of this model"}, v);
}

/* Whether nothing is left; answers with an error if there is. */
static bool ended(board *b, const fields *f) {
    if (f->n == 0) {
        return true;
    }
    writer *w = board_error(b, "extra");
    put(w, "nothing may follow here: ");
    put_quoted(w, f->at, f->n);
    output_line(&b->out);
    return false;
}

/* How many bytes of a line lie before the text of S: all of any other request. */
static size_t before_text(const char *line, size_t n) {
    size_t at = 0;
    for (unsigned spaces = 0; at < n && (n < 2 || line[0] != 'S' || line[1] != ' ' || spaces < TEXT_FIELD); at++) {
        spaces += line[at] == ' ' ? 1 : 0;
    }
    return at;
}

static bool is_ascii(board *b, const char *line, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)line[i];
        if (c < 0x20 || c > 0x7e) {
            writer *w = board_error(b, "not-ascii");
            put(w, "byte ");
            put_number(w, i + 1);
            put(w, " of the line is 0x");
            put_hex(w, c, 2);
            put(w, ": only the text of S may hold such bytes");
            output_line(&b->out);
            return false;
        }
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------------- requests */

/* n, temperature, top_k and seed. */
static bool sampling(board *b, fields *f, board_request *r) {
    uint64_t most, temperature, top_k;
    if (!number(b, f, "n", 0, MOST_TOKENS, &most) || !number(b, f, "temperature", 0, MOST_TEMPERATURE, &temperature) ||
        !number(b, f, "top_k", 0, UINT32_MAX, &top_k) || !number(b, f, "seed", 0, UINT64_MAX, &r->seed)) {
        return false;
    }
    r->most = (uint32_t)most;
    r->temperature = (uint32_t)temperature;
    r->top_k = (uint32_t)top_k;
    return true;
}

static void too_long(board *b, uint64_t length) {
    writer *w = board_error(b, "context");
    put(w, "the prompt has ");
    put_number(w, length);
    put(w, " tokens, the context of this model ");
    put_number(w, b->image.model.context_length);
    put(w, ": shorten the prompt");
    output_line(&b->out);
}

static void run(board *b, const board_request *r) {
    team_wake(&b->team);
    board_generate(b, r);
    team_rest(&b->team);
}

static void answer_g(board *b, fields f) {
    const chiplm_model *m = &b->image.model;
    board_request r = {0};
    uint64_t flag, length;
    if (!sampling(b, &f, &r) || !number(b, &f, "flag", 0, ASK_TEXT, &flag) || !tokens(b, &f, "length", &length)) {
        return;
    }
    if (length > m->context_length) {
        too_long(b, length);
        return;
    }
    for (uint32_t i = 0; i < length; i++) {
        uint64_t id;
        if (!number(b, &f, "an id", 0, UINT64_MAX, &id)) {
            return;
        }
        if (id >= m->vocab_size) {
            writer *w = board_error(b, "id");
            put(w, "id ");
            put_number(w, id);
            put(w, " is outside the vocabulary of ");
            put_number(w, m->vocab_size);
            put(w, ": encode the text with the tokenizer of this image");
            output_line(&b->out);
            return;
        }
        b->prompt[i] = (int32_t)id;
    }
    if (!ended(b, &f)) {
        return;
    }
    r.show = flag == ASK_TEXT;
    r.length = (uint32_t)length;
    run(b, &r);
}

/* Encodes the text behind end-of-text into b->prompt. */
static bool encode(board *b, const char *text, size_t bytes, uint32_t *length) {
    const uint32_t context = b->image.model.context_length;
    size_t n;
    const chiplm_status status = chiplm_encode(&b->image, text, bytes, b->prompt + 1, context - 1, b->encode_scratch,
                                               b->encode_bytes, &n);
    if (status == CHIPLM_ERR_ROOM) {
        too_long(b, n + 1);
        return false;
    }
    if (status != CHIPLM_OK) {
        error(b, "encode", chiplm_status_text(status));
        return false;
    }
    b->prompt[0] = chiplm_image_end_of_text(&b->image);
    *length = (uint32_t)n + 1;
    return true;
}

static void answer_s(board *b, fields f) {
    board_request r = {.show = true};
    if (!sampling(b, &f, &r)) {
        return;
    }
    char *text = f.n > 0 ? f.at + 1 : f.at; /* behind the one space */
    size_t bytes = f.n > 0 ? f.n - 1 : 0;
    if (memchr(text, '\0', bytes) != NULL) {
        error(b, "not-ascii", "the text holds a NUL byte: write it as \\x00");
        return;
    }
    if (!fields_unescape(text, &bytes)) {
        writer *w = board_error(b, "escape");
        put(w, "byte ");
        put_number(w, bytes + 1);
        put(w, " of the text starts an escape that does not exist: there are \\n, \\\\ and \\xHH");
        output_line(&b->out);
        return;
    }
    if (encode(b, text, bytes, &r.length)) {
        run(b, &r);
    }
}

static void answer_d(board *b, fields f) {
    uint64_t n, mode;
    if (!tokens(b, &f, "n", &n) || !number(b, &f, "mode", 0, BOARD_MODES - 1, &mode) || !ended(b, &f)) {
        return;
    }
    if (n > b->image.model.context_length) {
        writer *w = board_error(b, "context");
        put(w, "n is ");
        put_number(w, n);
        put(w, ", the context of this model ");
        put_number(w, b->image.model.context_length);
        output_line(&b->out);
        return;
    }
    team_wake(&b->team);
    board_digest(b, (uint32_t)n, (board_mode)mode);
    team_rest(&b->team);
}

static void put_profile(board *b) {
    writer *w = &b->out.w;
    if (b->profile.tokens == 0) {
        error(b, "profile", "no token was profiled yet: switch profiling on with Q 1, then send a request of two tokens or more");
        return;
    }
    put(w, "{");
    put_key(w, "format");
    put_json(w, "chiplm-profile-1");
    put_key(w, "tokens");
    put_number(w, b->profile.tokens);
    put_key(w, "us");
    put_decimal(w, profile_total(&b->profile), 2);
    put_key(w, "profile");
    profile_put(&b->profile, w);
    put(w, "}");
    output_line(&b->out);
}

static void answer_q(board *b, fields f) {
    uint64_t on;
    if (f.n == 0) {
        put_profile(b);
    } else if (number(b, &f, "on or off", 0, 1, &on) && ended(b, &f)) {
        b->profiling = on == 1;
        put(&b->out.w, b->profiling ? "Q 1" : "Q 0");
        output_line(&b->out);
    }
}

/* -------------------------------------------------------------------------------------------------------- dispatch */

static void line(board *b, const char *text) {
    put(&b->out.w, text);
    output_line(&b->out);
}

/* Requests that a board without a model answers too. Returns whether this is one. */
static bool answer_always(board *b, char command, const fields *f, bool *restart) {
    if (command != 'I' && command != 'R' && command != 'V' && command != 'X') {
        return false;
    }
    if (!ended(b, f)) {
        return true;
    }
    if (command == 'I') {
        board_info(b);
    } else if (command != 'X') { /* nothing runs that it could stop */
        line(b, command == 'R' ? "R" : "V 1");
        *restart = command == 'R';
    }
    return true;
}

static void answer(board *b, char command, fields f) {
    switch (command) {
    case 'G':
        answer_g(b, f);
        return;
    case 'S':
        answer_s(b, f);
        return;
    case 'D':
        answer_d(b, f);
        return;
    case 'Q':
        answer_q(b, f);
        return;
    default:
        if (ended(b, &f)) {
            team_wake(&b->team);
            board_benchmark(b);
            team_rest(&b->team);
        }
    }
}

/* Returns whether the board is to restart. */
static bool request(board *b, char *at, size_t n) {
    fields f = {.at = at, .n = n};
    char *command;
    size_t length;
    bool restart = false;
    if (n == 0 || !is_ascii(b, at, before_text(at, n))) {
        return false; /* an empty line has no answer */
    }
    const bool spaced = at[0] == ' '; /* which fields_next would take for the end of another field */
    (void)fields_next(&f, &command, &length);
    if (spaced || length != 1 || memchr("GSXIQMDRV", command[0], 9) == NULL) {
        writer *w = board_error(b, "unknown");
        put(w, "there is no request ");
        put_quoted(w, spaced ? at : command, length + (spaced ? 1 : 0));
        put(w, ": there are G S X I Q M D R V");
        output_line(&b->out);
    } else if (!answer_always(b, command[0], &f, &restart)) {
        if (b->code != NULL) {
            error(b, b->code, b->failure);
        } else {
            answer(b, command[0], f);
        }
    }
    return restart;
}

board_end board_serve(board *b) {
    for (;;) {
        char *at;
        size_t n;
        switch (input_line(&b->in, &at, &n)) {
        case INPUT_STOPPED:
            return BOARD_STOP;
        case INPUT_TOO_LONG:
            error(b, "line-too-long", "a line has 4096 bytes at most: shorten the prompt");
            break;
        default:
            if (request(b, at, n)) {
                return BOARD_RESTART;
            }
        }
    }
}
