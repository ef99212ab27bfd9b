/* Runs the model that is built into the program, on a processor without floats and without a C library.
 *
 * A fixed sequence as long as the context goes through the engine in three ways: token by token, all in blocks of
 * eight, and all in one block. For each a line "tokens DIGEST", "eights DIGEST", "whole DIGEST"; then "verify ok" when
 * the golden of the image holds; and, for an image whose tokenizer can encode, "ids COUNT DIGEST" of a text of every
 * 97th character, where the digest is FNV-1a-64 over the 32-bit ids. A failure prints "error WHAT STATUS WHERE: SENTENCE" (the
 * status in hexadecimal) and ends with 1. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../../chiplm.h"
#include "soft_float.h"

extern const uint8_t image_start[];
extern const uint8_t image_end[];
int32_t system_write(int32_t file, const void *bytes, uint32_t n);

enum { ARENA_BYTES = 4 << 20, CACHE_BYTES = 1 << 20, LOGITS = 1 << 16, CONTEXT = 256 };

static _Alignas(64) uint8_t arena[ARENA_BYTES];
static _Alignas(64) uint8_t cache[CACHE_BYTES];
static float logits[LOGITS];
static int32_t ids[CONTEXT];

float sqrtf(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = float_sqrt(bits);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void print(const char *text) {
    uint32_t n = 0;
    while (text[n] != 0) {
        n++;
    }
    system_write(1, text, n);
}

static void print_hex(uint64_t value) {
    char digits[17] = {0};
    for (uint32_t i = 0; i < 16; i++) {
        digits[i] = "0123456789abcdef"[(uint32_t)(value >> (60 - 4 * i)) & 15U];
    }
    print(digits);
}

static int failed(const char *what, chiplm_status status, const char *where) {
    print("error ");
    print(what);
    print(" ");
    print_hex((uint64_t)status);
    print(" ");
    print(where);
    print(": ");
    print(chiplm_status_text(status));
    print("\n");
    return 1;
}

/* Starts a context in the static memory; null after a failure, which it prints. */
static chiplm *start(const chiplm_image *image, uint32_t batch) {
    const chiplm_options options = {.batch = batch};
    const size_t arena_bytes = chiplm_arena_bytes(image, &options);
    const size_t cache_bytes = chiplm_cache_bytes(image);
    if (arena_bytes == 0 || arena_bytes > sizeof arena || cache_bytes == 0 || cache_bytes > sizeof cache) {
        failed("memory", CHIPLM_ERR_ARENA, "main.c");
        return NULL;
    }
    memset(arena, 0xa5, arena_bytes);
    memset(cache, 0xa5, cache_bytes);
    chiplm *lm = NULL;
    const chiplm_status status = chiplm_start(&lm, image, &options, arena, arena_bytes, cache, cache_bytes);
    if (status != CHIPLM_OK) {
        failed("start", status, "");
        return NULL;
    }
    return lm;
}

/* Feeds n ids in pieces, and prints the digest of the logits of all positions. Returns 0, or 1 after a failure. */
static int run(const chiplm_image *image, const char *what, uint32_t n, uint32_t batch, uint32_t piece) {
    const uint32_t v = image->model.vocab_size;
    chiplm *lm = start(image, batch);
    if (lm == NULL) {
        return 1;
    }
    for (uint32_t done = 0; done < n; done += piece) {
        piece = n - done < piece ? n - done : piece;
        const chiplm_status status = chiplm_forward(lm, ids + done, piece, logits + done * v);
        if (status != CHIPLM_OK) {
            return failed(what, status, chiplm_last_fault(lm)->where);
        }
    }
    uint64_t digest = chiplm_digest_start();
    for (uint32_t i = 0; i < n; i++) {
        digest = chiplm_digest_add(digest, i, ids[i], logits + i * v, v);
    }
    print(what);
    print(" ");
    print_hex(digest);
    print("\n");
    return 0;
}

/* Appends the UTF-8 of a character and returns its end. */
static uint8_t *put_character(uint8_t *p, uint32_t c) {
    const uint32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    *p++ = (uint8_t)(heads[more] | c >> (6 * more));
    for (uint32_t i = more; i-- > 0;) {
        *p++ = (uint8_t)(0x80U | (c >> (6 * i) & 0x3fU));
    }
    return p;
}

/* Encodes a text that tells classes apart and merges words. Returns 0, or 1 after a failure. */
static int encode(chiplm_image *image) {
    enum { TEXT = 1 << 18, MEMORY = 1 << 14 };
    static const char words[] = "Jack and Jill went up the hill, and they'd fetch 12 pails;  \t\xff\xe3\x80 ";
    static uint8_t text[TEXT + sizeof words + 16];
    static int32_t encoded[TEXT + sizeof words + 16];
    static uint32_t memory[MEMORY], scratch[MEMORY];
    const chiplm_status status = chiplm_encode_index(image, memory, sizeof memory, NULL);
    if (status != CHIPLM_OK) {
        return status == CHIPLM_ERR_TOKENIZER ? 0 : failed("index", status, "");
    }
    uint8_t *end = text;
    memcpy(end, words, sizeof words - 1);
    end += sizeof words - 1;
    for (uint32_t c = 0; c < 0x110000; c += 97) {
        end = put_character(end, c);
        *end++ = "x1! "[c & 3U];
    }
    size_t n = 0;
    const chiplm_status done =
        chiplm_encode(image, text, (size_t)(end - text), encoded, sizeof encoded / sizeof encoded[0], scratch, sizeof scratch, &n);
    if (done != CHIPLM_OK) {
        return failed("encode", done, "");
    }
    uint64_t digest = 0xcbf29ce484222325U;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < 32; j += 8) {
            digest = (digest ^ ((uint32_t)encoded[i] >> j & 0xffU)) * 0x100000001b3U;
        }
    }
    print("ids ");
    print_hex(n);
    print(" ");
    print_hex(digest);
    print("\n");
    return 0;
}

int main(void) {
    chiplm_image image;
    chiplm_fault fault;
    chiplm_status status = chiplm_image_open(&image, image_start, (size_t)(image_end - image_start), &fault);
    if (status != CHIPLM_OK) {
        return failed("image", status, fault.where);
    }
    const uint32_t n = image.model.context_length;
    const uint32_t v = image.model.vocab_size;
    if (n > CONTEXT || v > LOGITS / n) {
        return failed("memory", CHIPLM_ERR_ARGUMENT, "main.c");
    }
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)((7 * i + 3) % v);
    }
    if (run(&image, "tokens", n, 1, 1) != 0 || run(&image, "eights", n, 8, n) != 0 ||
        run(&image, "whole", n, n, n) != 0) {
        return 1;
    }
    chiplm *lm = start(&image, 1);
    if (lm == NULL) {
        return 1;
    }
    status = chiplm_verify(lm, logits);
    if (status != CHIPLM_OK) {
        return failed("verify", status, chiplm_last_fault(lm)->where);
    }
    print("verify ok\n");
    return encode(&image);
}
