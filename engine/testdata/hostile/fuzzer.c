/* What libFuzzer calls. Compiled once for images and, with HOSTILE_CALLS defined, once for calls; then the environment
 * variable CHIPLM_FUZZ_SEEDS names the folder of good images that calls are made on. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

#ifdef HOSTILE_CALLS

/* libFuzzer's own mutation. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static void print_summary(void) { hostile_summary("calls"); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    const char *folder = getenv("CHIPLM_FUZZ_SEEDS");
    WANT(folder != NULL, "CHIPLM_FUZZ_SEEDS is not set: let it name a folder of images");
    hostile_add_folder(folder);
    return atexit(print_summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hostile_calls(data, size);
    return 0;
}

/* Any bytes are a sequence of calls: from some place on they become random ones, up to a new end. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t random = seed;
    if (hostile_below(&random, 4) == 0) {
        return LLVMFuzzerMutate(data, size, room);
    }
    const size_t end = (size_t)hostile_below(&random, room < 600 ? room : 600) + 1;
    for (size_t at = (size_t)hostile_below(&random, (size < end ? size : end) + 1); at < end; at++) {
        data[at] = (uint8_t)chiplm_random(&random);
    }
    return end;
}

#else

/* Most of libFuzzer's corpus are images that are refused, each at another place, and changing those reaches nothing behind
 * that place. So it is remembered which images were accepted, by their CRCs; and in place of a refused one, an accepted one
 * that libFuzzer chose before is changed mostly. */
enum { PLACES = 1 << 16, CHOSEN = 128, MOST_BYTES = 1 << 14 };
static uint32_t accepted[PLACES];
static struct {
    size_t size;
    uint8_t bytes[MOST_BYTES];
} chosen[CHOSEN];
static size_t n_chosen;

static uint32_t crc_of(const uint8_t *data) { return (uint32_t)hostile_get(data + 28, 4); }

static void print_summary(void) { hostile_summary("images"); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return atexit(print_summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const chiplm_status status = hostile_image(data, size);
    hostile_count(status);
    if (status == CHIPLM_OK) {
        accepted[crc_of(data) % PLACES] = crc_of(data);
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t random = seed;
    if (size >= HEADER && size <= MOST_BYTES && accepted[crc_of(data) % PLACES] == crc_of(data)) {
        const size_t at = n_chosen < CHOSEN ? n_chosen++ : (size_t)hostile_below(&random, CHOSEN);
        memcpy(chosen[at].bytes, data, size);
        chosen[at].size = size;
    } else if (n_chosen > 0 && hostile_below(&random, 8) != 0) {
        const size_t at = (size_t)hostile_below(&random, n_chosen);
        if (chosen[at].size <= room) {
            size = chosen[at].size;
            memcpy(data, chosen[at].bytes, size);
        }
    }
    return hostile_mutate(data, size, room, chiplm_random(&random));
}

#endif
