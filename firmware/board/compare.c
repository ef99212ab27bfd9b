/* The digest of a run, to be compared with that of a host: docs/numerics.md, section "Digest". */
#include "board.h"

/* Feeds end-of-text, then the best token each time, with all logits. */
static chiplm_status digest_of(board *b, uint32_t n, uint64_t *digest, bool *stopped) {
    const uint32_t vocabulary = b->image.model.vocab_size;
    int32_t id = chiplm_image_end_of_text(&b->image);
    *digest = chiplm_digest_start();
    for (uint32_t i = 0; i < n && !*stopped; i++) {
        chiplm_status status = chiplm_forward_last(b->lm, &id, 1, b->logits);
        if (status != CHIPLM_OK) {
            return status;
        }
        *digest = chiplm_digest_add(*digest, i, id, b->logits, vocabulary);
        status = chiplm_arg_max(b->logits, vocabulary, &id);
        if (status != CHIPLM_OK) {
            return status;
        }
        port_feed(b->port);
        *stopped = input_wants_stop(&b->in);
    }
    return CHIPLM_OK;
}

void board_digest(board *b, uint32_t n, board_mode mode) {
    uint64_t digest = 0;
    bool stopped = false;
    chiplm_status status = board_start(b, mode);
    if (status == CHIPLM_OK) {
        status = digest_of(b, n, &digest, &stopped);
    }
    writer *w = &b->out.w;
    if (status != CHIPLM_OK) {
        board_engine_error(b, status);
    } else if (stopped) {
        put(board_error(b, "stopped"), "the digest was stopped by X");
        output_line(&b->out);
    } else {
        put(w, "D ");
        put_number(w, n);
        put(w, " ");
        put_number(w, (uint64_t)mode);
        put(w, " 0x");
        put_hex(w, digest, 16);
        output_line(&b->out);
    }
    (void)board_start(b, MODE_BOTH); /* what succeeded at the boot succeeds again */
}
