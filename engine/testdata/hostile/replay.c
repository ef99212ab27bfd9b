/* Feeds the engine without libFuzzer: cases drawn from a fixed seed.
 *
 *   replay images CASES SEED IMAGE...   the images, every truncation of the first, and CASES changes of them
 *   replay calls CASES SEED IMAGE...    CASES random sequences of calls on the images
 *
 * It ends with the number of images, or of calls, and how many there were of each status. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 14, MOST_CALL_BYTES = 600 };

/* Cuts an image at every byte, as it stands and with a header that admits it. These are not counted. */
static void cut_everywhere(const uint8_t *bytes, size_t size) {
    for (size_t n = 0; n < size; n++) {
        uint8_t *cut = hostile_copy(bytes, n);
        const chiplm_status status = hostile_image(cut, n);
        WANT(status == (n < HEADER ? CHIPLM_ERR_SIZE : CHIPLM_ERR_FILE_BYTES), "%zu of %zu bytes: status %d", n, size, (int)status);
        hostile_seal(cut, n, SEAL_FILE);
        WANT(hostile_image(cut, n) != CHIPLM_OK, "an image cut to %zu of %zu bytes is accepted", n, size);
        free(cut);
    }
}

static void replay_images(uint64_t cases, uint64_t seed, int files, char **paths) {
    static uint8_t buffer[ROOM];
    uint8_t *bytes[64];
    size_t sizes[64];
    WANT(files <= 64, "more than 64 images");
    for (int i = 0; i < files; i++) {
        bytes[i] = hostile_read_file(paths[i], &sizes[i]);
        WANT(sizes[i] <= ROOM - 1024, "%s is too large", paths[i]);
        const chiplm_status status = hostile_image(bytes[i], sizes[i]);
        WANT(status == CHIPLM_OK, "%s: status %d", paths[i], (int)status);
    }
    cut_everywhere(bytes[0], sizes[0]);
    for (uint64_t n = 0; n < cases; n++) {
        const size_t from = (size_t)hostile_below(&seed, (uint64_t)files);
        memcpy(buffer, bytes[from], sizes[from]);
        size_t size = hostile_mutate(buffer, sizes[from], ROOM, chiplm_random(&seed));
        hostile_count(hostile_image(buffer, size));
    }
    for (int i = 0; i < files; i++) {
        free(bytes[i]);
    }
}

static void replay_calls(uint64_t cases, uint64_t seed, int files, char **paths) {
    for (int i = 0; i < files; i++) {
        hostile_add_file(paths[i]);
    }
    for (uint64_t n = 0; n < cases; n++) {
        uint8_t bytes[MOST_CALL_BYTES];
        const size_t size = (size_t)hostile_below(&seed, MOST_CALL_BYTES);
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (uint8_t)chiplm_random(&seed);
        }
        hostile_calls(bytes, size);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: replay images|calls CASES SEED IMAGE...\n");
        return 2;
    }
    const bool calls = strcmp(argv[1], "calls") == 0;
    (calls ? replay_calls : replay_images)(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argc - 4, argv + 4);
    hostile_summary(argv[1]);
    return 0;
}
