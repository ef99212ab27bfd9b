/* Encoding: of texts with the tokenizer of any image that is accepted, and with wrong arguments. What the tokenizer must be to
 * encode at all, and the ids of a word, are worked out here in the slowest way. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* The tokenizer section of an image that was checked. */
typedef struct list {
    uint32_t entries, merges, end_of_text;
    const uint8_t *merge;
} list;

static list list_of(const chiplm_image *image) {
    const uint8_t *p = image->tokenizer.at;
    const uint32_t entries = (uint32_t)hostile_get(p + 4, 4);
    return (list){entries, (uint32_t)hostile_get(p + 8, 4), (uint32_t)hostile_get(p + 12, 4), p + 20 + 4 * ((size_t)entries + 1)};
}

static uint32_t part_of(const list *l, uint32_t rank, uint32_t field) {
    return (uint32_t)hostile_get(l->merge + 12 * (size_t)rank + 4 * field, 4);
}

/* The id of the one entry that is this byte, or -1. */
static int32_t id_of(const chiplm_image *image, const list *l, uint8_t byte) {
    int32_t found = -1;
    for (uint32_t id = 0; id < l->entries; id++) {
        const chiplm_span s = chiplm_image_token(image, (int32_t)id);
        if (s.bytes == 1 && s.at[0] == byte) {
            if (found >= 0) {
                return -1;
            }
            found = (int32_t)id;
        }
    }
    return found;
}

/* Whether a tokenizer can encode. */
static bool is_sound(const chiplm_image *image, const list *l) {
    for (unsigned b = 0; b < 256; b++) {
        if (id_of(image, l, (uint8_t)b) < 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < l->merges; i++) {
        const chiplm_span a = chiplm_image_token(image, (int32_t)part_of(l, i, 0));
        const chiplm_span b = chiplm_image_token(image, (int32_t)part_of(l, i, 1));
        const chiplm_span c = chiplm_image_token(image, (int32_t)part_of(l, i, 2));
        if (a.bytes == 0 || b.bytes == 0 || a.bytes + b.bytes != c.bytes || memcmp(c.at, a.at, a.bytes) != 0 ||
            memcmp(c.at + a.bytes, b.at, b.bytes) != 0) {
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (part_of(l, i, 0) == part_of(l, j, 0) && part_of(l, i, 1) == part_of(l, j, 1)) {
                return false;
            }
        }
    }
    return true;
}

/* The ids of one word: the first pair of the first merge that has one is joined, until none has. */
static size_t slow_ids(const chiplm_image *image, const list *l, const uint8_t *word, size_t n, int32_t *ids) {
    for (size_t i = 0; i < n; i++) {
        ids[i] = id_of(image, l, word[i]);
    }
    for (uint32_t rank = 0; rank < l->merges; rank++) {
        for (size_t i = 0; i + 1 < n; i++) {
            if ((uint32_t)ids[i] == part_of(l, rank, 0) && (uint32_t)ids[i + 1] == part_of(l, rank, 1)) {
                ids[i] = (int32_t)part_of(l, rank, 2);
                memmove(ids + i + 1, ids + i + 2, (n - i - 2) * sizeof *ids);
                n--;
                rank = UINT32_MAX; /* from the first merge on */
                break;
            }
        }
    }
    return n;
}

static bool is_letter(uint8_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* A text of tokens and bytes, or of letters alone, which are one word. */
static size_t some_text(const chiplm_image *image, const list *l, bool letters, uint8_t *text, size_t room, uint64_t *r) {
    const size_t wanted = (size_t)hostile_below(r, room + 1);
    size_t n = 0;
    for (size_t tries = 0; n < wanted && tries < 4 * room; tries++) {
        uint8_t byte = (uint8_t)chiplm_random(r);
        chiplm_span s = {&byte, 1};
        if (hostile_below(r, 4) != 0) {
            s = chiplm_image_token(image, (int32_t)hostile_below(r, l->entries));
        }
        for (size_t i = 0; i < s.bytes && n < wanted; i++) {
            if (!letters || is_letter(s.at[i])) {
                text[n++] = s.at[i];
            }
        }
    }
    return n;
}

static void encode(const chiplm_image *image, const list *l, bool letters, uint64_t *r) {
    uint8_t buffer[60];
    size_t bytes = some_text(image, l, letters, buffer, sizeof buffer, r);
    if (!letters && bytes > 3) { /* something that is not whole at its end */
        static const char *const ends[] = {"'", "'r", "'l", "'v", "\xc3", "\xe3\x80", "\xf0\x9f", "\xf0\x9f\x99", " ", "  "};
        const char *end = ends[hostile_below(r, sizeof ends / sizeof ends[0])];
        memcpy(buffer + bytes - strlen(end), end, strlen(end));
    }
    uint8_t *text = hostile_copy(buffer, bytes);
    const size_t scratch_bytes = chiplm_encode_scratch(image, bytes);
    void *scratch = hostile_memory(scratch_bytes, 0xff);
    int32_t *ids = hostile_memory(bytes * sizeof *ids, 0xff);
    size_t n = SIZE_MAX;
    WANT(chiplm_encode(image, text, bytes, ids, bytes, scratch, scratch_bytes, &n) == CHIPLM_OK && n <= bytes, "%zu ids of %zu bytes", n, bytes);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const chiplm_span s = chiplm_image_token(image, ids[i]);
        WANT(s.bytes > 0 && s.bytes <= bytes - at && memcmp(text + at, s.at, s.bytes) == 0, "id %d at byte %zu", ids[i], at);
        at += s.bytes;
    }
    WANT(at == bytes, "the ids of %zu bytes hold %zu", bytes, at);
    int32_t *other = hostile_memory(bytes * sizeof *other, 0xff);
    if (letters && bytes > 0) {
        WANT(slow_ids(image, l, text, bytes, other) == n && memcmp(ids, other, n * sizeof *ids) == 0, "a word of %zu bytes has other ids", bytes);
        void *shorter = hostile_memory(scratch_bytes - 1, 0xff);
        size_t none = SIZE_MAX;
        WANT(chiplm_encode(image, text, bytes, other, bytes, shorter, scratch_bytes - 1, &none) == CHIPLM_ERR_ARENA && none == 0, "a byte less");
        free(shorter);
    }
    if (n > 0) {
        const size_t room = (size_t)hostile_below(r, n);
        int32_t *few = room == 0 ? NULL : hostile_memory(room * sizeof *few, 0xff);
        size_t all = SIZE_MAX;
        WANT(chiplm_encode(image, text, bytes, few, room, scratch, scratch_bytes, &all) == CHIPLM_ERR_ROOM && all == n, "%zu ids in %zu", all, room);
        WANT(room == 0 || memcmp(few, ids, room * sizeof *few) == 0, "the first ids are others");
        free(few);
    }
    free(other);
    free(ids);
    free(scratch);
    free(text);
}

void hostile_texts(const chiplm_image *checked, uint64_t *random) {
    const list l = list_of(checked);
    const bool sound = is_sound(checked, &l);
    chiplm_image image = *checked;
    const size_t index_bytes = chiplm_encode_index_bytes(&image);
    void *index = hostile_memory(index_bytes, 0xff);
    chiplm_fault fault;
    const chiplm_status status = chiplm_encode_index(&image, index, index_bytes, &fault);
    WANT(status == (sound ? CHIPLM_OK : CHIPLM_ERR_TOKENIZER) && status == fault.status && (image.encode_index == index) == sound,
         "index: status %d at %s, the tokenizer is %s", (int)status, fault.where, sound ? "sound" : "not sound");
    if (sound) {
        encode(&image, &l, false, random);
        encode(&image, &l, true, random);
        encode(checked, &l, hostile_below(random, 2) == 0, random);
    } else {
        const size_t scratch_bytes = chiplm_encode_scratch(checked, 1);
        void *scratch = hostile_memory(scratch_bytes, 0xff);
        size_t n = SIZE_MAX;
        WANT(chiplm_encode(checked, "a", 1, NULL, 0, scratch, scratch_bytes, &n) == CHIPLM_ERR_TOKENIZER && n == 0, "encoded all the same");
        free(scratch);
    }
    free(index);
}

/* ------------------------------------------------------------------------------------------------------------- a call */

void call_encode(world *w) {
    enum { RIGHT, NO_IMAGE, CLOSED, NO_TEXT, NO_IDS, NO_SCRATCH, NO_COUNT, ODD, SHORT, KINDS };
    static const chiplm_image closed;
    const list l = list_of(&w->g->image);
    const bool sound = is_sound(&w->g->image, &l);
    chiplm_image image = w->g->image;

    const uint32_t index_kind = next_byte(w) % 8; /* 0: none, 1: odd, 2: short, 3: null */
    if (index_kind > 0) {
        const size_t all = chiplm_encode_index_bytes(&image);
        const size_t given = all - (index_kind == 2 ? 1 + next_byte(w) : 0);
        const size_t odd = index_kind == 1 ? 1 + next_byte(w) % 3 : 0;
        uint8_t *memory = keep(w, hostile_memory(given + odd, 0xff));
        const chiplm_status wrong[] = {CHIPLM_OK, CHIPLM_ERR_ALIGNMENT, CHIPLM_ERR_ARENA, CHIPLM_ERR_ARGUMENT};
        expect("encode_index", chiplm_encode_index(&image, index_kind == 3 ? NULL : memory + odd, given, NULL),
               index_kind < 4 ? wrong[index_kind] : sound ? CHIPLM_OK : CHIPLM_ERR_TOKENIZER);
    }
    WANT(chiplm_encode_index(NULL, w, 1 << 20, NULL) == CHIPLM_ERR_ARGUMENT && chiplm_encode_index_bytes(NULL) == 0 &&
             chiplm_encode_index_bytes(&closed) == 0 && chiplm_encode_scratch(NULL, 1) == 0 && chiplm_encode_scratch(&closed, 1) == 0 &&
             chiplm_encode_scratch(&image, SIZE_MAX) == 0,
         "an index, or scratch, for nothing");

    const uint32_t kind = next_byte(w) < 160 ? RIGHT : next_byte(w) % KINDS;
    const size_t bytes = next_byte(w) % 40;
    uint8_t *text = keep(w, hostile_memory(bytes, 0));
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (uint8_t)next_byte(w);
    }
    const size_t room = next_byte(w) < 200 ? bytes : next_byte(w) % 4;
    int32_t *ids = keep(w, hostile_memory(room * sizeof *ids, 0xff));
    const size_t wanted = chiplm_encode_scratch(&image, bytes);
    const size_t index_bytes = image.encode_index == NULL ? chiplm_encode_index_bytes(&image) : 0;
    const size_t given = kind == SHORT ? index_bytes + next_byte(w) % 20 : wanted; /* not a byte's */
    const size_t odd = kind == ODD ? 1 + next_byte(w) % 3 : 0;
    uint8_t *scratch = keep(w, hostile_memory(given + odd, 0xff));
    size_t n = SIZE_MAX;
    const chiplm_status status =
        chiplm_encode(kind == NO_IMAGE ? NULL : kind == CLOSED ? &closed : &image, kind == NO_TEXT ? NULL : text, bytes, kind == NO_IDS ? NULL : ids,
                      room, kind == NO_SCRATCH ? NULL : scratch + odd, given, kind == NO_COUNT ? NULL : &n);
    chiplm_status want = sound ? CHIPLM_OK : CHIPLM_ERR_TOKENIZER;
    if (kind == NO_IMAGE || kind == CLOSED || (kind == NO_TEXT && bytes > 0) || (kind == NO_IDS && room > 0) || kind == NO_SCRATCH || kind == NO_COUNT) {
        want = CHIPLM_ERR_ARGUMENT;
    } else if (kind == ODD) {
        want = CHIPLM_ERR_ALIGNMENT;
    } else if (sound && kind == SHORT && bytes > 0) {
        want = CHIPLM_ERR_ARENA;
    } else if (sound && status == CHIPLM_ERR_ROOM) {
        WANT(n > room && n <= bytes, "%zu ids wanted of %zu bytes, room for %zu", n, bytes, room);
        want = status;
    }
    expect("encode", status, want);
    WANT(kind == NO_COUNT || status == CHIPLM_ERR_ROOM || (status == CHIPLM_OK ? n <= room : n == 0), "status %d with %zu ids", (int)status, n);
}
