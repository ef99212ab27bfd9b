/* Text to ids: byte-level byte-pair encoding, over words as GPT-2 splits them. data/bpe is the same in Go, and the two give
 * the same ids for every text.
 *
 * The tokenizer section lists the merges by rank. Which merge joins two ids is found in an index, the ranks in the order of
 * their pairs: it lies in the caller's memory, is sorted there once, and searched by halving. */
#include "image.h"

#include <string.h>

#include "encode_classes.h"

enum { OTHER, LETTER, NUMBER, SPACE };

static const uint32_t none = UINT32_MAX; /* no merge, no neighbour, no id */

/* ---------------------------------------------------------------------------------------------------------- words */

/* A character of a text: its class and its length in bytes. */
typedef struct character {
    uint32_t class;
    size_t bytes;
} character;

static uint32_t class_of_ascii(uint32_t c) {
    if ((c | 32U) - 'a' < 26) {
        return LETTER;
    }
    if (c - '0' < 10) {
        return NUMBER;
    }
    return c == ' ' || c - '\t' < 5 ? SPACE : OTHER;
}

static uint32_t class_of(uint32_t c) {
    const uint32_t plane = c >> 16;
    const uint16_t low = (uint16_t)c;
    uint32_t first = plane_starts[plane]; /* the last run that starts at c or before it, in this plane */
    uint32_t end = plane_starts[plane + 1];
    while (end - first > 1) {
        const uint32_t middle = (first + end) / 2;
        if (run_starts[middle] <= low) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return ((uint32_t)run_classes[first / 4] >> (first % 4 * 2)) & 3U;
}

static bool continues(uint8_t byte) { return (byte & 0xc0U) == 0x80U; }

/* The character at p, of which left bytes are there, at least one. A byte that is no part of valid UTF-8 is a character of
 * its own, of class OTHER. */
static character character_at(const uint8_t *p, size_t left) {
    const uint32_t a = p[0];
    if (a < 0x80) {
        return (character){class_of_ascii(a), 1};
    }
    uint32_t c = 0;
    size_t n = 1;
    if (a >= 0xc2 && a < 0xe0 && left >= 2 && continues(p[1])) {
        c = (a & 0x1fU) << 6 | (p[1] & 0x3fU);
        n = 2;
    } else if (a >= 0xe0 && a < 0xf0 && left >= 3 && continues(p[1]) && continues(p[2])) {
        c = (a & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
        n = c >= 0x800 && (c < 0xd800 || c > 0xdfff) ? 3 : 1;
    } else if (a >= 0xf0 && a < 0xf5 && left >= 4 && continues(p[1]) && continues(p[2]) && continues(p[3])) {
        c = (a & 7U) << 18 | (p[1] & 0x3fU) << 12 | (p[2] & 0x3fU) << 6 | (p[3] & 0x3fU);
        n = c >= 0x10000 && c <= 0x10ffff ? 4 : 1;
    }
    return (character){n == 1 ? OTHER : class_of(c), n};
}

/* The length of the English contraction that starts with the apostrophe at p, or 0. */
static size_t contraction(const uint8_t *p, size_t left) {
    if (left < 2) {
        return 0;
    }
    switch (p[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return 2;
    case 'r':
    case 'v':
        return left > 2 && p[2] == 'e' ? 3 : 0;
    case 'l':
        return left > 2 && p[2] == 'l' ? 3 : 0;
    default:
        return 0;
    }
}

/* The length of the word at p, of which left bytes are there, at least one: the match of
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
static size_t word_bytes(const uint8_t *p, size_t left) {
    if (p[0] == '\'') {
        const size_t n = contraction(p, left);
        if (n > 0) {
            return n;
        }
    }
    character c = character_at(p, left);
    size_t end = c.bytes;
    if (p[0] == ' ' && left > 1) {
        const character next = character_at(p + 1, left - 1);
        if (next.class != SPACE) { /* one space leads the word that follows it */
            c = next;
            end = 1 + next.bytes;
        }
    }
    size_t last = 0; /* where the last character of the run starts */
    while (end < left) {
        const character next = character_at(p + end, left - end);
        if (next.class != c.class) {
            /* White space before a word leaves its last character to that word. */
            return c.class == SPACE && last > 0 ? last : end;
        }
        last = end;
        end += next.bytes;
    }
    return end;
}

/* ---------------------------------------------------------------------------------------------------------- index */

enum { BYTE_IDS = 256 * sizeof(uint32_t) };

/* The tokenizer section, and the index over it: the id of each byte, then the ranks of all merges in the order of their
 * pairs, 16 bits each where these suffice. */
typedef struct tokenizer {
    const uint32_t *offsets, *merges; /* as they stand in the image, which is aligned and little endian as we are */
    const uint8_t *text;
    uint32_t n_entries, n_merges, end_of_text;
    const uint32_t *byte_ids;
    const uint16_t *narrow; /* or null */
    const uint32_t *wide;   /* or null */
} tokenizer;

static bool is_narrow(uint32_t n_merges) { return n_merges <= 1U << 16; }

static tokenizer open_tokenizer(const chiplm_image *image, const void *index) {
    const uint8_t *p = image->tokenizer.at;
    tokenizer t = {.n_entries = chiplm_get32(p + 4), .n_merges = chiplm_get32(p + 8), .end_of_text = chiplm_get32(p + 12)};
    t.offsets = (const uint32_t *)(const void *)(p + 20);
    t.merges = t.offsets + t.n_entries + 1;
    t.text = (const uint8_t *)(t.merges + (size_t)3 * t.n_merges);
    if (index != NULL) {
        const void *ranks = (const uint8_t *)index + BYTE_IDS;
        t.byte_ids = index;
        t.narrow = is_narrow(t.n_merges) ? ranks : NULL;
        t.wide = is_narrow(t.n_merges) ? NULL : ranks;
    }
    return t;
}

static uint64_t pair(uint32_t left, uint32_t right) { return (uint64_t)left << 32 | right; }

static uint64_t pair_of(const tokenizer *t, uint32_t rank) {
    const uint32_t *merge = t->merges + (size_t)3 * rank;
    return pair(merge[0], merge[1]);
}

static uint32_t result_of(const tokenizer *t, uint32_t rank) { return t->merges[(size_t)3 * rank + 2]; }

static uint32_t rank_at(const tokenizer *t, uint32_t place) { return t->narrow != NULL ? t->narrow[place] : t->wide[place]; }

/* The rank of the merge of two ids, or none. */
static uint32_t find(const tokenizer *t, uint32_t left, uint32_t right) {
    const uint64_t wanted = pair(left, right);
    uint32_t first = 0;
    uint32_t end = t->n_merges;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const uint32_t rank = rank_at(t, middle);
        const uint64_t found = pair_of(t, rank);
        if (found == wanted) {
            return rank;
        }
        if (found < wanted) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return none;
}

static void put_rank(uint8_t *ranks, const tokenizer *t, uint32_t place, uint32_t rank) {
    if (t->narrow != NULL) {
        ((uint16_t *)(void *)ranks)[place] = (uint16_t)rank;
    } else {
        ((uint32_t *)(void *)ranks)[place] = rank;
    }
}

/* Puts a rank into the heap of the first n places, where the place is free and those below it are in order. */
static void sift(uint8_t *ranks, const tokenizer *t, uint32_t place, uint32_t n, uint32_t rank) {
    const uint64_t key = pair_of(t, rank);
    for (uint32_t child = 2 * place + 1; child < n; child = 2 * place + 1) {
        uint64_t larger = pair_of(t, rank_at(t, child));
        if (child + 1 < n) {
            const uint64_t other = pair_of(t, rank_at(t, child + 1));
            child += other > larger ? 1 : 0;
            larger = other > larger ? other : larger;
        }
        if (larger <= key) {
            break;
        }
        put_rank(ranks, t, place, rank_at(t, child));
        place = child;
    }
    put_rank(ranks, t, place, rank);
}

/* Sorts the ranks by their pairs: a heap, since it needs no memory and its time no luck. */
static void sort(uint8_t *ranks, const tokenizer *t) {
    for (uint32_t i = 0; i < t->n_merges; i++) {
        put_rank(ranks, t, i, i);
    }
    for (uint32_t i = t->n_merges / 2; i-- > 0;) {
        sift(ranks, t, i, t->n_merges, rank_at(t, i));
    }
    for (uint32_t n = t->n_merges; n-- > 1;) {
        const uint32_t rank = rank_at(t, n);
        put_rank(ranks, t, n, rank_at(t, 0));
        sift(ranks, t, 0, n, rank);
    }
}

static chiplm_span entry(const tokenizer *t, uint32_t id) {
    return (chiplm_span){.at = t->text + t->offsets[id], .bytes = t->offsets[id + 1] - t->offsets[id]};
}

/* Whether a merge joins two entries to the one that holds the bytes of both. */
static bool joins(const tokenizer *t, uint32_t rank) {
    const uint64_t parts = pair_of(t, rank);
    const uint32_t left = (uint32_t)(parts >> 32);
    const uint32_t right = (uint32_t)parts;
    const chiplm_span l = entry(t, left);
    const chiplm_span r = entry(t, right);
    const chiplm_span both = entry(t, result_of(t, rank));
    return left != t->end_of_text && right != t->end_of_text && both.bytes == l.bytes + r.bytes && memcmp(both.at, l.at, l.bytes) == 0 &&
           memcmp(both.at + l.bytes, r.at, r.bytes) == 0;
}

static chiplm_status fill_byte_ids(uint32_t *byte_ids, const tokenizer *t, chiplm_fault *fault) {
    for (uint32_t b = 0; b < 256; b++) {
        byte_ids[b] = none;
    }
    for (uint32_t id = 0; id < t->n_entries; id++) {
        const chiplm_span bytes = entry(t, id);
        if (bytes.bytes == 1) {
            if (byte_ids[bytes.at[0]] != none) {
                return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: two entries of one byte, the second", id, 0);
            }
            byte_ids[bytes.at[0]] = id;
        }
    }
    for (uint32_t b = 0; b < 256; b++) {
        if (byte_ids[b] == none) {
            return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: no entry for byte", b, 0);
        }
    }
    return CHIPLM_OK;
}

size_t chiplm_encode_index_bytes(const chiplm_image *image) {
    if (image == NULL || image->tokenizer.at == NULL) {
        return 0;
    }
    const uint32_t n = chiplm_get32(image->tokenizer.at + 8);
    return BYTE_IDS + ((size_t)n * (is_narrow(n) ? 2 : 4) + 3) / 4 * 4; /* less than the merges themselves and 1 KB */
}

static chiplm_status make_index(const chiplm_image *image, void *memory, chiplm_fault *fault) {
    const tokenizer t = open_tokenizer(image, memory);
    const chiplm_status status = fill_byte_ids(memory, &t, fault);
    if (status != CHIPLM_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < t.n_merges; rank++) {
        if (!joins(&t, rank)) {
            return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: result of merge", rank, 0);
        }
    }
    sort((uint8_t *)memory + BYTE_IDS, &t);
    for (uint32_t i = 1; i < t.n_merges; i++) {
        if (pair_of(&t, rank_at(&t, i - 1)) == pair_of(&t, rank_at(&t, i))) {
            return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: two merges of one pair, one of them", rank_at(&t, i), 0);
        }
    }
    return CHIPLM_OK;
}

chiplm_status chiplm_encode_index(chiplm_image *image, void *memory, size_t bytes, chiplm_fault *fault) {
    if (fault != NULL) {
        memset(fault, 0, sizeof *fault);
    }
    if (image == NULL || image->tokenizer.at == NULL || memory == NULL) {
        return chiplm_fail(fault, CHIPLM_ERR_ARGUMENT, "image or memory of the index", 0, 0);
    }
    image->encode_index = NULL;
    if ((uintptr_t)memory % 4 != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_ALIGNMENT, "memory of the index", (uintptr_t)memory % 4, 0);
    }
    const size_t wanted = chiplm_encode_index_bytes(image);
    if (bytes < wanted) {
        return chiplm_fail(fault, CHIPLM_ERR_ARENA, "memory of the index", bytes, wanted);
    }
    const chiplm_status status = make_index(image, memory, fault);
    image->encode_index = status == CHIPLM_OK ? memory : NULL;
    return status;
}

/* --------------------------------------------------------------------------------------------------------- merging */

/* A token of the word that is being merged. */
typedef struct symbol {
    uint32_t id;
    uint32_t rank; /* of the merge with the next one; none when nothing joins them */
    uint32_t previous, next; /* places, or none */
} symbol;

/* A word, and a tournament over its symbols, n of them: node i, from 1 to n - 1, holds the place that wins among those below
 * it, and its children are 2 i and 2 i + 1; node n + i is symbol i itself. It wins who has the lowest rank, and of equals
 * the first. */
typedef struct word {
    symbol *symbols;
    uint32_t *winners;
    uint32_t n;
} word;

enum { SYMBOL_BYTES = sizeof(symbol) + sizeof(uint32_t), MOST_SYMBOLS = 0x7fffffff };

static uint32_t winner(const word *w, uint32_t node) { return node < w->n ? w->winners[node] : node - w->n; }

static void play(const word *w, uint32_t node) {
    const uint32_t a = winner(w, 2 * node);
    const uint32_t b = winner(w, 2 * node + 1);
    const uint32_t rank_a = w->symbols[a].rank;
    const uint32_t rank_b = w->symbols[b].rank;
    w->winners[node] = rank_a < rank_b || (rank_a == rank_b && a < b) ? a : b;
}

/* Gives a symbol its rank anew. */
static void rank_symbol(const tokenizer *t, const word *w, uint32_t place, bool live) {
    symbol *s = &w->symbols[place];
    s->rank = live && s->next != none ? find(t, s->id, w->symbols[s->next].id) : none;
    for (uint32_t node = (w->n + place) / 2; node > 0; node /= 2) {
        play(w, node);
    }
}

/* Merges a word: again and again the pair of lowest rank, the first of equals. Takes n log n steps for n bytes, however
 * they look. */
static void merge(const tokenizer *t, const word *w, const uint8_t *bytes) {
    const uint32_t n = w->n;
    for (uint32_t i = 0; i < n; i++) {
        w->symbols[i].id = t->byte_ids[bytes[i]];
        w->symbols[i].rank = none;
        w->symbols[i].previous = i > 0 ? i - 1 : none;
        w->symbols[i].next = i + 1 < n ? i + 1 : none;
        if (i > 0) {
            w->symbols[i - 1].rank = find(t, w->symbols[i - 1].id, w->symbols[i].id);
        }
    }
    for (uint32_t node = n; node-- > 1;) {
        play(w, node);
    }
    for (;;) {
        const uint32_t place = winner(w, 1);
        symbol *s = &w->symbols[place];
        if (s->rank == none) {
            return;
        }
        const uint32_t gone = s->next;
        s->id = result_of(t, s->rank);
        s->next = w->symbols[gone].next;
        if (s->next != none) {
            w->symbols[s->next].previous = place;
        }
        rank_symbol(t, w, gone, false);
        rank_symbol(t, w, place, true);
        if (s->previous != none) {
            rank_symbol(t, w, s->previous, true);
        }
    }
}

size_t chiplm_encode_scratch(const chiplm_image *image, size_t bytes) {
    if (image == NULL || image->tokenizer.at == NULL || bytes > MOST_SYMBOLS) {
        return 0;
    }
    const uint64_t index = image->encode_index == NULL ? chiplm_encode_index_bytes(image) : 0;
    const uint64_t all = index + (uint64_t)SYMBOL_BYTES * (bytes > 0 ? bytes : 1);
    return all <= SIZE_MAX ? (size_t)all : 0;
}

chiplm_status chiplm_encode(const chiplm_image *image, const void *text, size_t bytes, int32_t *ids, size_t room, void *scratch,
                            size_t scratch_bytes, size_t *n) {
    if (n != NULL) {
        *n = 0;
    }
    if (image == NULL || image->tokenizer.at == NULL || n == NULL || scratch == NULL || (text == NULL && bytes > 0) ||
        (ids == NULL && room > 0)) {
        return CHIPLM_ERR_ARGUMENT;
    }
    if ((uintptr_t)scratch % 4 != 0) {
        return CHIPLM_ERR_ALIGNMENT;
    }
    uint8_t *memory = scratch;
    const void *index = image->encode_index;
    if (index == NULL) {
        const size_t index_bytes = chiplm_encode_index_bytes(image);
        if (scratch_bytes < index_bytes) {
            return CHIPLM_ERR_ARENA;
        }
        const chiplm_status status = make_index(image, memory, NULL);
        if (status != CHIPLM_OK) {
            return status;
        }
        index = memory;
        memory += index_bytes;
        scratch_bytes -= index_bytes;
    }
    const tokenizer t = open_tokenizer(image, index);
    const size_t most = scratch_bytes / SYMBOL_BYTES;
    size_t count = 0;
    for (size_t done = 0; done < bytes;) {
        const uint8_t *at = (const uint8_t *)text + done;
        const size_t length = word_bytes(at, bytes - done);
        if (length > most || length > MOST_SYMBOLS) {
            return CHIPLM_ERR_ARENA;
        }
        const word w = {(symbol *)(void *)memory, (uint32_t *)(void *)(memory + length * sizeof(symbol)), (uint32_t)length};
        merge(&t, &w, at);
        for (uint32_t i = 0; i != none; i = w.symbols[i].next) {
            if (count < room) {
                ids[count] = (int32_t)w.symbols[i].id;
            }
            count++;
        }
        done += length;
    }
    *n = count;
    return count <= room ? CHIPLM_OK : CHIPLM_ERR_ROOM;
}
