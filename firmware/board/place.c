/* The placement of an image, obeyed: tensors of the tiers sram and psram are copied there, those of flash stay mapped. */
#include "board.h"

#include <string.h>

enum { ALIGN = 64, PAD = 64 }; /* vector loads may run past the end of codes and scales */

const char *board_memory_name(unsigned memory) {
    static const char *const names[] = {"sram", "psram", "flash"};
    return names[memory];
}

static size_t padded(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* What the copy of a tensor takes. */
static size_t copy_bytes(const chiplm_tensor *t) { return padded(t->codes.bytes) + padded(t->scales.bytes) + PAD; }

/* What the image wants of a memory for its weights. */
static uint64_t wanted_weights(const board *b, port_memory memory) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->image.model.n_tensors; i++) {
        chiplm_tensor t;
        (void)chiplm_image_tensor(&b->image, i, &t);
        sum += t.tier == (uint32_t)memory ? copy_bytes(&t) : 0;
    }
    return sum;
}

static void put_amount(writer *w, const char *before, uint64_t bytes, const char *after) {
    put(w, before);
    put_number(w, bytes);
    put(w, after);
}

void *board_take(board *b, port_memory memory, size_t bytes, const char *purpose, bool weights) {
    bytes = padded(bytes); /* what is told adds up to what is taken */
    void *at = bytes == 0 ? NULL : port_take(b->port, memory, bytes);
    if (at != NULL) {
        *(weights ? &b->use[memory].weights : &b->use[memory].buffers) += bytes;
        return at;
    }
    const port_room room = port_room_of(b->port, memory);
    writer w = board_fail(b, "memory");
    put(&w, "not enough ");
    put(&w, board_memory_name(memory));
    put(&w, " for ");
    put_escaped(&w, (const uint8_t *)purpose, strlen(purpose));
    put_amount(&w, ": it wants ", bytes, " bytes; ");
    put_amount(&w, "", room.free, " are free, ");
    put_amount(&w, "", room.largest, " of them in one block, of ");
    put_amount(&w, "", room.total, "");
    if (room.lent > 0) {
        put_amount(&w, " (", room.lent, " of them lent to a virtual board)");
    }
    put(&w, "; before it came ");
    put_amount(&w, "", b->use[memory].buffers, " of buffers and ");
    put_amount(&w, "", b->use[memory].weights, " of the image's ");
    put_amount(&w, "", wanted_weights(b, memory), " of weights: lower usable of this memory in the target file and "
                                                  "export again, or choose a smaller model");
    put_end(&w);
    return NULL;
}

bool board_place(board *b) {
    for (uint32_t i = 0; i < b->image.model.n_tensors; i++) {
        chiplm_tensor t;
        (void)chiplm_image_tensor(&b->image, i, &t);
        if (t.tier == CHIPLM_TIER_FLASH) {
            continue;
        }
        const port_memory memory = t.tier == CHIPLM_TIER_SRAM ? PORT_SRAM : PORT_PSRAM;
        const size_t codes = padded(t.codes.bytes);
        uint8_t *at = board_take(b, memory, copy_bytes(&t), t.name, true);
        if (at == NULL) {
            return false;
        }
        memset(at + codes + padded(t.scales.bytes), 0, PAD);
        memcpy(at, t.codes.at, t.codes.bytes);
        b->copies[i].codes = at;
        if (t.scales.bytes > 0) {
            memcpy(at + codes, t.scales.at, t.scales.bytes);
            b->copies[i].scales = at + codes;
        }
    }
    return true;
}
