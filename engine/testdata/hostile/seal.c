/* The tables of an image, followed as far as they go, and its CRCs. */
#include "hostile.h"

#include <string.h>

uint64_t hostile_get(const uint8_t *p, unsigned width) {
    uint64_t value = 0;
    memcpy(&value, p, width);
    return value;
}

void hostile_put(uint8_t *p, unsigned width, uint64_t value) { memcpy(p, &value, width); }

uint64_t hostile_below(uint64_t *random, uint64_t n) { return (chiplm_random(random) >> 16) % n; }

/* -------------------------------------------------------------------------------------------------------------- CRC */

/* CRC-32 eight bytes at a time; table k takes a byte over k zeros that follow it. Made at the first use. */
static uint32_t crc_tables[8][256];

static void make_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) {
            c = (c & 1U) != 0 ? (c >> 1) ^ 0xedb88320U : c >> 1;
        }
        crc_tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            const uint32_t before = crc_tables[k - 1][i];
            crc_tables[k][i] = (before >> 8) ^ crc_tables[0][before & 255U];
        }
    }
}

static uint32_t crc32_of(uint32_t crc, const uint8_t *p, size_t n) {
    if (crc_tables[0][1] == 0) {
        make_tables();
    }
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        const uint64_t v = hostile_get(p, 8) ^ crc;
        crc = 0;
        for (unsigned k = 0; k < 8; k++) {
            crc ^= crc_tables[7 - k][(v >> (8 * k)) & 255U];
        }
    }
    for (; n > 0; n--, p++) {
        crc = crc_tables[0][(crc ^ *p) & 255U] ^ (crc >> 8);
    }
    return ~crc;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static part inside(size_t size, uint64_t at, uint64_t bytes) {
    return at <= size && bytes <= size - at ? (part){(size_t)at, (size_t)bytes} : (part){0, 0};
}

bool hostile_tables(tables *t, uint8_t *p, size_t size) {
    *t = (tables){.p = p, .size = size};
    if (size < HEADER + SECTIONS * SECTION_ENTRY) {
        return false;
    }
    for (unsigned i = 0; i < SECTIONS; i++) {
        const uint8_t *entry = p + HEADER + i * SECTION_ENTRY;
        t->section[i] = inside(size, hostile_get(entry + 8, 8), hostile_get(entry + 16, 8));
    }
    const size_t room = t->section[TENS].bytes / TENSOR_ENTRY;
    t->tensors = room < 4096 ? (uint32_t)room : 4096;
    return true;
}

uint8_t *hostile_entry(const tables *t, uint32_t tensor) {
    return t->p + t->section[TENS].at + (size_t)tensor * TENSOR_ENTRY;
}

part hostile_span(const tables *t, uint32_t tensor, unsigned field) {
    const uint8_t *entry = hostile_entry(t, tensor) + field;
    return inside(t->size, hostile_get(entry, 8), hostile_get(entry + 8, 8));
}

void hostile_seal(uint8_t *p, size_t size, unsigned what) {
    tables t;
    if (size < HEADER) {
        return;
    }
    const bool whole = hostile_tables(&t, p, size);
    for (uint32_t i = 0; whole && (what & SEAL_TENSORS) != 0 && i < t.tensors; i++) {
        const part codes = hostile_span(&t, i, 72);
        const part scales = hostile_span(&t, i, 88);
        const uint32_t crc = crc32_of(crc32_of(0, p + codes.at, codes.bytes), p + scales.at, scales.bytes);
        hostile_put(hostile_entry(&t, i) + 108, 4, crc);
    }
    for (unsigned i = 0; whole && (what & SEAL_SECTIONS) != 0 && i < SECTIONS; i++) {
        const part s = t.section[i];
        hostile_put(p + HEADER + i * SECTION_ENTRY + 4, 4, crc32_of(0, p + s.at, s.bytes));
    }
    if ((what & SEAL_FILE) != 0) {
        hostile_put(p + 16, 8, size);
        hostile_put(p + 28, 4, 0);
        hostile_put(p + 28, 4, crc32_of(0, p, size));
    }
}
