/* What the board says of itself. */
#include "board.h"

static const uint8_t *header_crc(const board *b) { return b->image.file.at + 28; }

static void put_crc(writer *w, const uint8_t *at) {
    for (int i = 3; i >= 0; i--) { /* little endian */
        put_hex(w, at[i], 2);
    }
}

static void remark(board *b, const char *label) {
    put(&b->out.w, "# ");
    put(&b->out.w, label);
}

static void amount(writer *w, uint64_t v, const char *after) {
    put_number(w, v);
    put(w, after);
}

static void report_machine(board *b) {
    writer *w = &b->out.w;
    const port_chip *chip = port_chip_of(b->port);
    remark(b, "chiplm firmware ");
    put(w, chip->firmware);
    put(w, " on ");
    put(w, chip->chip);
    put(w, ", ");
    amount(w, chip->cores, " cores at ");
    amount(w, chip->clock_mhz, " MHz");
    output_line(&b->out);
    remark(b, "PSRAM: ");
    if (chip->psram_bytes == 0) {
        put(w, "none answers in ");
        put(w, chip->psram_mode);
        put(w, " mode");
    } else {
        amount(w, chip->psram_bytes, " bytes, ");
        put(w, chip->psram_mode);
        put(w, " at ");
        amount(w, chip->psram_mhz, " MHz");
    }
    output_line(&b->out);
}

static void report_model(board *b) {
    writer *w = &b->out.w;
    const chiplm_model *m = &b->image.model;
    remark(b, "image: ");
    amount(w, b->image.file.bytes, " bytes, crc32 ");
    put_crc(w, header_crc(b));
    put(w, ", model ");
    put_hash(w, m->model_sha256, sizeof m->model_sha256);
    output_line(&b->out);
    remark(b, "sizes: vocabulary ");
    amount(w, m->vocab_size, ", d_model ");
    amount(w, m->d_model, ", layers ");
    amount(w, m->n_layers, ", heads ");
    amount(w, m->n_heads, ", d_ff ");
    amount(w, m->d_ff, ", context ");
    amount(w, m->context_length, ", clusters ");
    put_number(w, m->clusters);
    output_line(&b->out);
}

static void report_memories(board *b) {
    writer *w = &b->out.w;
    for (unsigned i = 0; i <= PORT_MEMORIES; i++) {
        remark(b, board_memory_name(i));
        put(w, ": ");
        if (i < PORT_MEMORIES) {
            const port_room room = port_room_of(b->port, (port_memory)i);
            amount(w, b->use[i].buffers, " bytes of buffers, ");
            amount(w, b->use[i].weights, " of weights, ");
            amount(w, room.free, " free; ");
        }
        put(w, "read at ");
        put_decimal(w, b->speeds[i][0], 2);
        put(w, " MB/s by one core, ");
        put_decimal(w, b->speeds[i][1], 2);
        put(w, " by two");
        output_line(&b->out);
    }
}

void board_report(board *b) {
    writer *w = &b->out.w;
    report_machine(b);
    if (b->image.file.at != NULL) {
        report_model(b);
    }
    if (b->code != NULL) {
        remark(b, "not ready: ");
        put(w, b->code);
        put(w, " ");
        put(w, b->failure);
        output_line(&b->out);
        return;
    }
    report_memories(b);
    remark(b, "golden: equal to the bit, path ");
    put(w, chiplm_path_name(CHIPLM_PATH_BEST));
    put(w, ", ");
    put_decimal(w, (b->verify_us + 50) / 100, 1);
    put(w, " ms");
    output_line(&b->out);
    remark(b, "ready");
    output_line(&b->out);
}

static void put_field(writer *w, const char *key, uint64_t v) {
    put_key(w, key);
    put_number(w, v);
}

static void put_text(writer *w, const char *key, const char *text) {
    put_key(w, key);
    put_json(w, text);
}

static void put_sha(writer *w, const char *key, const uint8_t *hash) {
    put_key(w, key);
    put(w, "\"");
    put_hash(w, hash, 32);
    put(w, "\"");
}

static void put_model(writer *w, const board *b) {
    const chiplm_model *m = &b->image.model;
    put_key(w, "model");
    put(w, "{");
    put_field(w, "image_bytes", b->image.file.bytes);
    put_key(w, "image_crc32");
    put(w, "\"");
    put_crc(w, header_crc(b));
    put(w, "\"");
    put_sha(w, "model_sha256", m->model_sha256);
    put_sha(w, "tokenizer_sha256", m->tokenizer_sha256);
    put_field(w, "vocab_size", m->vocab_size);
    put_field(w, "d_model", m->d_model);
    put_field(w, "n_layers", m->n_layers);
    put_field(w, "n_heads", m->n_heads);
    put_field(w, "d_ff", m->d_ff);
    put_field(w, "ple_dim", m->ple_dim);
    put_field(w, "experts", m->experts);
    put_field(w, "context_length", m->context_length);
    put_field(w, "clusters", m->clusters);
    put_field(w, "end_of_text", (uint64_t)chiplm_image_end_of_text(&b->image));
    put(w, "}");
}

static void put_memories(writer *w, const board *b) {
    put_key(w, "memories");
    put(w, "[");
    for (unsigned i = 0; i < PORT_MEMORIES; i++) {
        const port_room room = port_room_of(b->port, (port_memory)i);
        put(w, i == 0 ? "{" : ",{");
        put_text(w, "name", board_memory_name(i));
        put_field(w, "total", room.total);
        put_field(w, "free", room.free);
        put_field(w, "largest", room.largest);
        put_field(w, "lent", room.lent);
        put_field(w, "buffers", b->use[i].buffers);
        put_field(w, "weights", b->use[i].weights);
        put(w, "}");
    }
    put(w, "]");
}

void board_info(board *b) {
    writer *w = &b->out.w;
    const port_chip *chip = port_chip_of(b->port);
    put(w, "{");
    put_text(w, "format", "chiplm-info-1");
    put_field(w, "protocol", BOARD_PROTOCOL);
    put_text(w, "firmware", chip->firmware);
    put_text(w, "target", chip->target);
    put_text(w, "chip", chip->chip);
    put_field(w, "cores", chip->cores);
    put_field(w, "clock_mhz", chip->clock_mhz);
    put_text(w, "path", chiplm_path_name(CHIPLM_PATH_BEST));
    put_text(w, "psram_mode", chip->psram_mode);
    put_field(w, "psram_mhz", chip->psram_mhz);
    put_field(w, "psram_bytes", chip->psram_bytes);
    put_field(w, "line_bytes", INPUT_MOST);
    put_key(w, "error");
    if (b->code == NULL) {
        put(w, "null");
    } else {
        put(w, "{");
        put_text(w, "code", b->code);
        put_text(w, "message", b->failure);
        put(w, "}");
    }
    if (b->image.file.at != NULL) {
        put_model(w, b);
    }
    put_memories(w, b);
    put(w, "}");
    output_line(&b->out);
}
