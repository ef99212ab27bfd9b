/* Changes of images: a field gets a value from the edge of something, bits flip, entries change places, sections move, the
 * file is cut or grows; and those of rules.c, after which the engine mostly has to run the result. */
#include "mutate.h"

#include <string.h>

/* Sizes, and floats by their bits, at which something begins or ends. */
static const uint64_t edges[] = {
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 192, 255, 256, 1023, 1024, 1025, 4096,
    65535, 65536, 131071, 131072, 131073, 1U << 24, (1U << 24) + 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffc0,
    0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffc0, 0xffffffffffffffff,
    /* floats: one and its neighbour; the smallest normal, subnormals; the largest, infinity, not a number; negative */
    0x3f800000, 0x3f800001, 0xbf800000, 0xbf800001, 0x00800000, 0x007fffff, 0x80800000, 0x807fffff, 0x7f7fffff, 0xff7fffff,
    0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff,
    /* the bounds of docs/image.md: 2^-64, 2^64; 2^-70, 2^60, 2^-42, 2^42, 2^-20, 2^20; and neighbours */
    0x1f800000, 0x1f7fffff, 0x5f800000, 0x5f800001, 0x1c800000, 0x1c7fffff, 0x5d800000, 0x5d800001, 0x2a800000, 0x2a7fffff,
    0x54800000, 0x54800001, 0x35800000, 0x357fffff, 0x49800000, 0x49800001,
    /* halves */
    0x7c00, 0x7bff, 0x7e00, 0x0400, 0x03ff, 0x8001, 0xfc00};
enum { EDGES = sizeof edges / sizeof edges[0] };

typedef struct place {
    size_t at;
    unsigned width;
} place;

static place inner(part p, unsigned width, uint64_t *r) {
    if (p.bytes < width) {
        return (place){0, 4};
    }
    return (place){p.at + (size_t)hostile_below(r, p.bytes / width) * width, width};
}

/* Codes or scales of some tensor. */
static part some_span(const tables *t, uint64_t *r) {
    if (t->tensors == 0) {
        return (part){0, 0};
    }
    const uint32_t tensor = (uint32_t)hostile_below(r, t->tensors);
    const part scales = hostile_span(t, tensor, 88);
    return hostile_below(r, 2) == 0 && scales.bytes > 0 ? scales : hostile_span(t, tensor, 72);
}

/* A field, or a number among others, anywhere in the file. */
static place some_place(const tables *t, uint64_t *r) {
    static const place header[] = {{0, 4}, {4, 4}, {8, 4}, {12, 4}, {16, 8}, {24, 4}, {28, 4}, {32, 8}, {60, 4}};
    static const place section[] = {{0, 4}, {4, 4}, {8, 8}, {16, 8}, {24, 8}};
    static const place entry[] = {{0, 4},  {44, 4}, {48, 4}, {52, 4}, {56, 4},  {60, 4},  {64, 4},  {68, 4},
                                  {72, 8}, {80, 8}, {88, 8}, {96, 8}, {104, 4}, {108, 4}, {112, 4}, {116, 4}};
    place p = {0, 4};
    switch (hostile_below(r, 16)) {
    case 0:
        p = header[hostile_below(r, sizeof header / sizeof header[0])];
        break;
    case 1:
        p = section[hostile_below(r, sizeof section / sizeof section[0])];
        p.at += HEADER + (size_t)hostile_below(r, SECTIONS) * SECTION_ENTRY;
        break;
    case 2:
    case 3:
    case 4:
        p = inner(t->section[MODL], 4, r);
        break;
    case 5:
    case 6:
    case 7:
        if (t->tensors > 0) {
            p = entry[hostile_below(r, sizeof entry / sizeof entry[0])];
            p.at += t->section[TENS].at + (size_t)hostile_below(r, t->tensors) * TENSOR_ENTRY;
        }
        break;
    case 8:
        p = inner(t->section[TOKN], 4, r);
        break;
    case 9:
        p = inner(t->section[GOLD], 4, r);
        break;
    case 10:
        p = inner(t->section[ROPE], 4, r);
        break;
    case 11:
        p = (place){(size_t)hostile_below(r, t->size), 1};
        break;
    default:
        p = inner(some_span(t, r), 1U << hostile_below(r, 3), r);
        break;
    }
    return p.at + p.width <= t->size ? p : (place){0, 4};
}

/* Gives a field another value. */
static void change(const tables *t, uint64_t *r) {
    const place p = some_place(t, r);
    uint8_t *at = t->p + p.at;
    uint64_t value = hostile_get(at, p.width);
    switch (hostile_below(r, 6)) {
    case 0:
        value ^= 1ULL << hostile_below(r, 8 * p.width);
        break;
    case 1:
        value += 1ULL << hostile_below(r, 9);
        break;
    case 2:
        value -= 1ULL << hostile_below(r, 9);
        break;
    case 3:
        value = chiplm_random(r);
        break;
    case 4: { /* what stands in another field */
        const place other = some_place(t, r);
        value = hostile_get(t->p + other.at, other.width);
        break;
    }
    default:
        value = edges[hostile_below(r, EDGES)];
        break;
    }
    hostile_put(at, p.width, value);
}

/* Exchanges n bytes, or copies them from b to a. */
static void exchange(uint8_t *a, uint8_t *b, size_t n, bool both) {
    uint8_t kept[TENSOR_ENTRY];
    memcpy(kept, a, n);
    memmove(a, b, n);
    if (both) {
        memcpy(b, kept, n);
    }
}

/* Exchanges entries of a table, or the places of two tensors. */
static void exchange_entries(const tables *t, uint64_t *r) {
    const bool both = hostile_below(r, 2) == 0;
    if (hostile_below(r, 4) == 0 || t->tensors == 0) {
        exchange(t->p + HEADER + hostile_below(r, SECTIONS) * SECTION_ENTRY,
                 t->p + HEADER + hostile_below(r, SECTIONS) * SECTION_ENTRY, SECTION_ENTRY, both);
        return;
    }
    uint8_t *a = hostile_entry(t, (uint32_t)hostile_below(r, t->tensors));
    uint8_t *b = hostile_entry(t, (uint32_t)hostile_below(r, t->tensors));
    switch (hostile_below(r, 4)) {
    case 0:
        exchange(a, b, TENSOR_ENTRY, both);
        break;
    case 1: /* codes of one length may change places */
        exchange(a + 72, b + 72, 8, true);
        break;
    case 2:
        exchange(a + 88, b + 88, 8, true);
        break;
    default:
        exchange(a + 72, b + 72, 16, both);
        break;
    }
}

/* ----------------------------------------------------------------------------------------------------------- places */

/* Moves everything from a section on by 64 bytes, up or down, and the offsets that point there with it. */
static size_t move_sections(tables *t, size_t room, uint64_t *r) {
    const size_t from = t->section[hostile_below(r, SECTIONS)].at;
    const bool up = hostile_below(r, 4) != 0;
    if (from < HEADER || (up && t->size + 64 > room) || (!up && from + 64 > t->size)) {
        return t->size;
    }
    for (uint32_t i = 0; i < t->tensors; i++) {
        for (unsigned field = 72; field <= 88; field += 16) {
            uint8_t *at = hostile_entry(t, i) + field;
            const uint64_t offset = hostile_get(at, 8);
            hostile_put(at, 8, offset >= from && offset > 0 ? offset + (up ? 64 : -64ULL) : offset);
        }
    }
    for (unsigned i = 0; i < SECTIONS; i++) {
        uint8_t *at = t->p + HEADER + i * SECTION_ENTRY + 8;
        const uint64_t offset = hostile_get(at, 8);
        hostile_put(at, 8, offset >= from ? offset + (up ? 64 : -64ULL) : offset);
    }
    if (up) {
        memmove(t->p + from + 64, t->p + from, t->size - from);
        memset(t->p + from, 0, 64);
        return t->size + 64;
    }
    memmove(t->p + from, t->p + from + 64, t->size - from - 64);
    return t->size - 64;
}

/* Cuts a section to a few bytes, or lets it end near the end of the file; or cuts the file, or lets it grow by zeros. */
static size_t resize(uint8_t *p, size_t size, size_t room, uint64_t *r) {
    if (hostile_below(r, 2) == 0) {
        uint8_t *entry = p + HEADER + hostile_below(r, SECTIONS) * SECTION_ENTRY;
        const uint64_t left = size - hostile_get(entry + 8, 8);
        hostile_put(entry + 16, 8, hostile_below(r, 2) == 0 ? hostile_below(r, 24) : left + hostile_below(r, 9) - 4 - 64 * hostile_below(r, 2));
        return size;
    }
    const size_t step = hostile_below(r, 2) == 0 ? 64 : 1 + (size_t)hostile_below(r, 200);
    if (hostile_below(r, 3) == 0) {
        return (size_t)hostile_below(r, hostile_below(r, 8) == 0 ? HEADER + 1 : size); /* a short file is a case of its own */
    }
    if (hostile_below(r, 2) == 0) {
        return size > step ? size - step : size;
    }
    if (size + step > room) {
        return size;
    }
    memset(p + size, 0, step);
    return size + step;
}

/* ----------------------------------------------------------------------------------------------------- the mutation */

size_t hostile_mutate(uint8_t *p, size_t size, size_t room, uint64_t seed) {
    uint64_t random = seed;
    uint64_t *r = &random;
    uint64_t times = 1;
    while (times < 6 && hostile_below(r, 3) == 0) {
        times++;
    }
    for (; times > 0; times--) {
        tables t;
        if (!hostile_tables(&t, p, size)) {
            if (size < room) {
                p[size++] = (uint8_t)chiplm_random(r);
            }
            if (size > 0) {
                p[hostile_below(r, size)] ^= (uint8_t)(1U << hostile_below(r, 8));
            }
            continue;
        }
        switch (hostile_below(r, 16)) {
        case 0:
        case 1:
        case 2:
        case 3:
            change(&t, r);
            break;
        case 4:
            exchange_entries(&t, r);
            break;
        case 5:
            size = hostile_below(r, 4) == 0 ? resize(p, size, room, r) : move_sections(&t, room, r);
            break;
        case 6:
            hostile_change_lists(&t, r);
            break;
        case 7:
            hostile_change_sizes(&t, r);
            break;
        case 8:
            hostile_change_model(&t, r);
            break;
        case 9:
        case 10:
            hostile_change_format(&t, r);
            break;
        case 11:
        case 12:
        case 13:
            hostile_change_scales(&t, r);
            break;
        default:
            hostile_change_codes(&t, r);
            break;
        }
    }
    /* Now and then a layer of CRCs stays wrong. */
    static const unsigned seals[8] = {0, SEAL_FILE, SEAL_FILE | SEAL_SECTIONS, SEAL_ALL, SEAL_ALL, SEAL_ALL, SEAL_ALL, SEAL_ALL};
    hostile_seal(p, size, hostile_below(r, 8) == 0 ? seals[hostile_below(r, 8)] : SEAL_ALL);
    return size;
}
