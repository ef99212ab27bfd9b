/* From power to a model that is proved: each step says what is wrong and what to do about it. */
#include "board.h"

#include <string.h>

writer board_fail(board *b, const char *code) {
    b->code = code;
    return (writer){.buffer = b->failure, .room = sizeof b->failure};
}

static bool fail(board *b, const char *code, const char *sentence) {
    writer w = board_fail(b, code);
    put(&w, sentence);
    put_end(&w);
    return false;
}

/* Checksums and magic numbers are read in hexadecimal; so many digits, 0 for a plain number. */
static unsigned digits_of(chiplm_status status) {
    switch (status) {
    case CHIPLM_ERR_MAGIC:
    case CHIPLM_ERR_FILE_CRC:
    case CHIPLM_ERR_SECTION_CRC:
    case CHIPLM_ERR_TENSOR_CRC:
        return 8;
    case CHIPLM_ERR_DIGEST:
        return 16;
    default:
        return 0;
    }
}

static void put_found(writer *w, const char *before, uint64_t v, unsigned digits) {
    put(w, before);
    if (digits == 0) {
        put_number(w, v);
    } else {
        put(w, "0x");
        put_hex(w, v, digits);
    }
}

/* A fault of the engine: where it is, what was found, what to do. */
static bool fail_at(board *b, const char *code, const chiplm_fault *fault) {
    writer w = board_fail(b, code);
    put_escaped(&w, (const uint8_t *)fault->where, strlen(fault->where));
    if (fault->found != 0 || fault->wanted != 0) {
        put_found(&w, " (found ", fault->found, digits_of(fault->status));
        put_found(&w, ", wanted ", fault->wanted, digits_of(fault->status));
        put(&w, ")");
    }
    put(&w, fault->where[0] == '\0' ? "" : ": ");
    put(&w, chiplm_status_text(fault->status));
    put_end(&w);
    return false;
}

static bool find(board *b) {
    switch (port_find_model(b->port, &b->found)) {
    case PORT_MODEL_FOUND:
        return true;
    case PORT_MODEL_MISSING:
        return fail(b, "model-missing", "the partition table has no partition named model of type 0x40: flash the table of "
                                        "this firmware (chiplm flash writes it)");
    case PORT_MODEL_EMPTY:
        return fail(b, "model-empty", "the model partition is empty: write an image into it with chiplm flash");
    default:
        break;
    }
    writer w = board_fail(b, "model");
    put(&w, "the model cannot be read (error ");
    put_number(&w, (uint64_t)(uint32_t)b->found.error);
    put(&w, "): write it again with chiplm flash; if that does not help, the flash is damaged");
    put_end(&w);
    return false;
}

static bool open_image(board *b) {
    chiplm_fault fault;
    if (chiplm_image_open(&b->image, b->found.at, b->found.bytes, &fault) == CHIPLM_OK) {
        return true;
    }
    memset(&b->image, 0, sizeof b->image);
    return fail_at(b, "model", &fault);
}

static bool check_psram(board *b) {
    const port_chip *chip = port_chip_of(b->port);
    if (chip->psram_bytes > 0) {
        return true;
    }
    writer w = board_fail(b, "psram");
    put(&w, "no PSRAM answers in ");
    put(&w, chip->psram_mode);
    put(&w, " mode, for which this firmware was built: take a board whose module name ends in R8 (8 MB, octal); for quad "
            "PSRAM build with CONFIG_SPIRAM_MODE_QUAD=y");
    put_end(&w);
    return false;
}

static bool start_team(board *b) {
    b->team_started = team_start(&b->team, b->port);
    return b->team_started || fail(b, "core", "the second core did not start its task: there is no memory for its stack; "
                                              "build again with the sdkconfig.defaults of this firmware");
}

static chiplm_options options_of(board *b, board_mode mode) {
    return (chiplm_options){
        .batch = BOARD_BATCH,
        .path = mode == MODE_PLAIN ? CHIPLM_PATH_PLAIN : CHIPLM_PATH_BEST,
        .team = {.members = mode == MODE_BOTH ? 2 : 1, .run = team_run, .self = &b->team},
    };
}

/* An image whose merges encode no text runs all the same: requests with a text get the error then. */
static bool take_encoder(board *b) {
    const size_t index = chiplm_encode_index_bytes(&b->image);
    b->encode_index = board_take(b, PORT_PSRAM, index, "the index of merges", false);
    if (b->encode_index == NULL) {
        return false;
    }
    (void)chiplm_encode_index(&b->image, b->encode_index, index, NULL);
    b->encode_bytes = chiplm_encode_scratch(&b->image, INPUT_MOST);
    return (b->encode_scratch = board_take(b, PORT_PSRAM, b->encode_bytes, "encoding", false)) != NULL;
}

/* Buffers first: they are used all the time, and so small that weights can make room for them. */
static bool take_buffers(board *b) {
    const chiplm_model *m = &b->image.model;
    for (board_mode mode = MODE_BOTH; mode <= MODE_PLAIN; mode++) {
        const chiplm_options options = options_of(b, mode);
        const size_t bytes = chiplm_arena_bytes(&b->image, &options);
        b->arena_bytes = bytes > b->arena_bytes ? bytes : b->arena_bytes;
    }
    chiplm_options chips = options_of(b, MODE_BOTH);
    chips.path = CHIPLM_PATH_PIE;
    const size_t need = chiplm_arena_bytes(&b->image, &chips);
    port_lend(b->port, PORT_SRAM, b->arena_bytes > need ? b->arena_bytes - need : 0);
    b->cache_bytes = chiplm_cache_bytes(&b->image);
    return (b->arena = board_take(b, PORT_SRAM, b->arena_bytes, "the engine's buffers", false)) != NULL &&
           (b->logits = board_take(b, PORT_SRAM, m->vocab_size * sizeof(float), "logits", false)) != NULL &&
           (b->copies = board_take(b, PORT_PSRAM, m->n_tensors * sizeof(board_copy), "the table of tensors", false)) != NULL &&
           (b->order = board_take(b, PORT_PSRAM, m->vocab_size * sizeof(int32_t), "the order of tokens", false)) != NULL &&
           (b->prompt = board_take(b, PORT_PSRAM, m->context_length * sizeof(int32_t), "the prompt", false)) != NULL &&
           take_encoder(b) && (b->cache = board_take(b, PORT_PSRAM, b->cache_bytes, "keys and values", false)) != NULL;
}

chiplm_status board_start(board *b, board_mode mode) {
    const chiplm_options options = options_of(b, mode);
    chiplm_status status = chiplm_start(&b->lm, &b->image, &options, b->arena, b->arena_bytes, b->cache, b->cache_bytes);
    for (uint32_t i = 0; status == CHIPLM_OK && i < b->image.model.n_tensors; i++) {
        chiplm_tensor t;
        (void)chiplm_image_tensor(&b->image, i, &t);
        status = chiplm_bind_tensor(b->lm, i, (chiplm_span){.at = b->copies[i].codes, .bytes = t.codes.bytes},
                                    (chiplm_span){.at = b->copies[i].scales, .bytes = t.scales.bytes});
    }
    b->mode = mode;
    return status;
}

/* Runs the golden: image, compiler, memory and cores are as the exporter wants them. */
static bool prove(board *b) {
    chiplm_status status = board_start(b, MODE_BOTH);
    if (status != CHIPLM_OK) {
        b->lm = NULL;
        return fail_at(b, "memory", &(chiplm_fault){.status = status, .where = "start of the engine"});
    }
    team_wake(&b->team);
    const uint64_t before = port_microseconds(b->port);
    status = chiplm_verify(b->lm, b->logits);
    b->verify_us = port_microseconds(b->port) - before;
    team_rest(&b->team);
    return status == CHIPLM_OK || fail_at(b, "golden", chiplm_last_fault(b->lm));
}

static bool boot(board *b) {
    if (!find(b) || !open_image(b) || !check_psram(b) || !start_team(b) || !take_buffers(b)) {
        return false;
    }
    memset(b->copies, 0, b->image.model.n_tensors * sizeof *b->copies);
    return board_place(b) && prove(b);
}

void board_boot(board *b) {
    if (boot(b)) {
        board_measure_memories(b);
    } else {
        b->lm = NULL;
    }
}

/* Forgets everything but the machine. */
static void clear(board *b, port *p) {
    memset(b, 0, sizeof *b);
    b->port = p;
    output_start(&b->out, p);
    input_start(&b->in, p);
}

void board_run(board *b, port *p) {
    for (;;) {
        clear(b, p);
        board_boot(b);
        port_booted(p, b->code, b->code == NULL ? NULL : b->failure);
        board_report(b);
        const board_end end = board_serve(b);
        if (b->team_started) {
            team_end(&b->team);
        }
        if (end == BOARD_STOP) {
            return;
        }
        port_restart(p);
    }
}
