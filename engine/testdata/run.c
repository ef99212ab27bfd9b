/* Runs the C engine without Go, for tests that need other compiler flags than the Go build: sanitizers, no vector code,
 * flushed subnormals.
 *
 *   run [-b batch] [-p path] [-d] [-f] [-c] IMAGE...
 *
 * path is a number of chiplm_path, 0 the best; the program ends with 4 if this processor does not have it. -d reads every
 * neuron. -f flushes subnormals to zero (x86). -c binds every tensor to a copy and then destroys the image's own. For each
 * image it prints "ok DIGEST", the digest of a fixed sequence fed in uneven pieces, or "error STATUS WHERE". Images and
 * arenas are allocated to the byte, so that a sanitizer sees every step outside. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "../chiplm.h"

static void *aligned(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes > 0 ? bytes : 1) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    memset(p, 0xa5, bytes);
    return p;
}

static void *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    *size = (size_t)ftell(f);
    rewind(f);
    void *p = aligned(*size);
    if (fread(p, 1, *size, f) != *size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    return p;
}

/* Copies of all tensors; the originals are overwritten. */
static void **bind_copies(chiplm *lm, const chiplm_image *image) {
    const uint32_t n = image->model.n_tensors;
    void **copies = calloc((size_t)n * 2, sizeof *copies);
    for (uint32_t i = 0; i < n; i++) {
        chiplm_tensor t;
        if (chiplm_image_tensor(image, i, &t) != CHIPLM_OK) {
            exit(2);
        }
        copies[2 * i] = aligned(t.codes.bytes);
        memcpy(copies[2 * i], t.codes.at, t.codes.bytes);
        if (t.scales.bytes > 0) {
            copies[2 * i + 1] = aligned(t.scales.bytes);
            memcpy(copies[2 * i + 1], t.scales.at, t.scales.bytes);
        }
        const chiplm_span codes = {copies[2 * i], t.codes.bytes};
        const chiplm_span scales = {copies[2 * i + 1], t.scales.bytes};
        if (chiplm_bind_tensor(lm, i, codes, scales) != CHIPLM_OK) {
            exit(2);
        }
    }
    memset((uint8_t *)(uintptr_t)image->data.at, 0x33, image->data.bytes);
    return copies;
}

static chiplm_status run(const chiplm_image *image, chiplm_options options, int copy, chiplm_fault *fault,
                         uint64_t *digest) {
    const size_t arena_bytes = chiplm_arena_bytes(image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(image);
    const uint32_t v = image->model.vocab_size;
    const uint32_t n = image->model.context_length;
    void *arena = aligned(arena_bytes);
    void *cache = aligned(cache_bytes);
    float *logits = aligned((size_t)n * v * sizeof *logits);
    int32_t *ids = aligned(n * sizeof *ids);
    void **copies = NULL;
    chiplm *lm = NULL;
    chiplm_status status = chiplm_start(&lm, image, &options, arena, arena_bytes, cache, cache_bytes);
    if (status == CHIPLM_OK && copy) {
        copies = bind_copies(lm, image);
    }
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)((7 * (uint64_t)i + 3) % v);
    }
    for (uint32_t done = 0, piece = 1; status == CHIPLM_OK && done < n; done += piece, piece = piece * 3 % 41 + 1) {
        piece = n - done < piece ? n - done : piece;
        status = chiplm_forward(lm, ids + done, piece, logits + (size_t)done * v);
    }
    if (status == CHIPLM_OK) {
        *digest = chiplm_digest_start();
        for (uint32_t i = 0; i < n; i++) {
            *digest = chiplm_digest_add(*digest, i, ids[i], logits + (size_t)i * v, v);
        }
        if (!copy) {
            status = chiplm_verify(lm, logits);
            if (status == CHIPLM_ERR_DIGEST) {
                status = CHIPLM_OK; /* a changed image may still be a good one */
            }
        }
        if (status == CHIPLM_OK) { /* the bounds of a changed image need not hold; its search must end */
            const chiplm_search search = chiplm_search_certified(image);
            const uint32_t n_best = v < 9 ? v : 9;
            int32_t *best = aligned(n_best * sizeof *best);
            float *their = aligned(n_best * sizeof *their);
            uint32_t found = 0;
            chiplm_reset(lm);
            status = chiplm_forward_best(lm, ids, n, &search, n_best, best, their, &found);
            free(best);
            free(their);
        }
        const uint32_t k = v < 5 ? v : 5;
        int32_t *order = aligned(k * sizeof *order);
        uint64_t random = 1;
        float sum, shift;
        int32_t id = -1;
        if (status == CHIPLM_OK) {
            status = chiplm_sample(logits, v, 0.7f, k, &random, order, &id);
        }
        if (status == CHIPLM_OK) {
            status = chiplm_score(logits, v, id, &sum, &shift);
        }
        free(order);
    }
    if (lm != NULL) {
        *fault = *chiplm_last_fault(lm);
    }
    for (uint32_t i = 0; copies != NULL && i < 2 * image->model.n_tensors; i++) {
        free(copies[i]);
    }
    free(copies);
    free(ids);
    free(logits);
    free(cache);
    free(arena);
    return status;
}

int main(int argc, char **argv) {
    chiplm_options options = {.batch = 1};
    int copy = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-b") == 0 && i + 1 < argc) {
            options.batch = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc) {
            options.path = (chiplm_path)strtoul(argv[++i], NULL, 10);
            if (chiplm_path_name(options.path) == NULL) {
                return 4;
            }
        } else if (strcmp(argv[i], "-d") == 0) {
            options.dense = true;
        } else if (strcmp(argv[i], "-c") == 0) {
            copy = 1;
        } else if (strcmp(argv[i], "-f") == 0) {
#ifdef __SSE2__
            _mm_setcsr(_mm_getcsr() | 0x8040U); /* results and operands */
#else
            return 3;
#endif
        } else {
            size_t size = 0;
            void *bytes = read_file(argv[i], &size);
            chiplm_image image;
            chiplm_fault fault;
            uint64_t digest = 0;
            chiplm_status status = chiplm_image_open(&image, bytes, size, &fault);
            if (status == CHIPLM_OK) {
                status = run(&image, options, copy, &fault, &digest);
            }
            if (status == CHIPLM_OK) {
                printf("ok %016" PRIx64 "\n", digest);
            } else {
                printf("error %d %s\n", (int)status, fault.where);
            }
            free(bytes);
        }
    }
    return 0;
}
