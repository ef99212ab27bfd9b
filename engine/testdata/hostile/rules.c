/* Changes that keep to the rules of docs/image.md, or break one alone: other codes, scales at the ends of their range, fewer
 * neurons, formats that need no more room. What follows from what is changed is changed with it. */
#include "mutate.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- values */

enum { LARGEST, RANDOM, FLIP, KEEP }; /* ways to make codes */

/* Other codes for a tensor, all of them allowed: the largest, random ones, or the old ones, with a bit changed here and there
 * or none. Those past the last column become 0. */
static void clean_codes(const tables *t, uint32_t tensor, uint64_t kind, uint64_t *r) {
    const uint8_t *e = hostile_entry(t, tensor);
    const part codes = hostile_span(t, tensor, 72);
    const uint64_t bits = hostile_get(e + 56, 4);
    const uint64_t stride = hostile_get(e + 104, 4);
    const uint64_t block = hostile_get(e + 112, 4);
    const uint64_t columns = block != 0 ? block : hostile_get(e + 52, 4);
    if ((bits != 2 && bits != 4 && bits != 8) || stride == 0 || hostile_get(e + 64, 4) == 0) {
        return;
    }
    const unsigned sign = bits == 2 ? 0xaa : bits == 4 ? 0x88 : 0x80;
    for (size_t i = 0; i < codes.bytes; i++) {
        const uint64_t first = i % stride / 16 * (128 / bits) + i % 16; /* column of the lowest code of this byte */
        unsigned used = 0;                                              /* bits that columns of the tensor fill */
        for (unsigned shift = 0; shift < 8; shift += (unsigned)bits) {
            used |= first + shift / bits * 16 < columns ? ((1U << bits) - 1U) << shift : 0;
        }
        uint8_t *at = t->p + codes.at + i;
        unsigned code = *at & used;
        switch (kind) {
        case LARGEST:
            code = ~sign & used;
            break;
        case RANDOM:
            code = (unsigned)chiplm_random(r) & used;
            break;
        case FLIP:
            code ^= hostile_below(r, 8) == 0 ? (1U << hostile_below(r, 8)) & used : 0;
            break;
        default:
            break;
        }
        *at = (uint8_t)(code | ((code & sign) >> (bits - 1))); /* no code is its sign bit alone */
    }
}

void hostile_change_codes(const tables *t, uint64_t *r) {
    if (t->tensors > 0) {
        clean_codes(t, (uint32_t)hostile_below(r, t->tensors), hostile_below(r, KEEP), r);
    }
}

/* Other numbers in a tensor of floats, or in scales. */
void hostile_change_scales(const tables *t, uint64_t *r) {
    static const uint64_t plain[] = {0, 0x00800000, 0x7f7fffff, 0x3f800000, 0x5f000000, 0x20000000, 0x35800000, 0x49800000};
    static const uint64_t half[] = {0, 1, 0x7bff, 0x3c00};
    if (t->tensors == 0) {
        return;
    }
    const uint32_t tensor = (uint32_t)hostile_below(r, t->tensors);
    const uint8_t *e = hostile_entry(t, tensor);
    const bool floats = hostile_get(e + 56, 4) == 32;
    const part span = hostile_span(t, tensor, floats ? 72 : 88);
    const unsigned width = !floats && hostile_get(e + 64, 4) == CHIPLM_F16 ? 2 : 4;
    const bool all = hostile_below(r, 2) == 0;
    const uint64_t value = width == 2 ? half[hostile_below(r, 4)] : plain[hostile_below(r, 8)];
    for (size_t i = 0; i + width <= span.bytes; i += width) {
        uint8_t *at = t->p + span.at + i;
        if ((all || hostile_below(r, 8) == 0) && hostile_get(at, width) != 0) {
            hostile_put(at, width, floats && hostile_below(r, 2) == 0 ? value | 0x80000000U : value);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

/* Makes the part whose offset and bytes stand at entry shorter, and zeros of what was its end. */
static void shorten(const tables *t, uint8_t *entry, uint64_t bytes) {
    const uint64_t at = hostile_get(entry, 8);
    const uint64_t old = hostile_get(entry + 8, 8);
    if (bytes < old) {
        hostile_put(entry + 8, 8, bytes);
        if (at <= t->size && old <= t->size - at) {
            memset(t->p + at + bytes, 0, (size_t)(old - bytes));
        }
    }
}

/* Gives a tensor fewer rows or columns; what follows from its shape follows. */
static void reshape(const tables *t, uint32_t tensor, uint64_t rows, uint64_t columns) {
    uint8_t *e = hostile_entry(t, tensor);
    const uint64_t bits = hostile_get(e + 56, 4);
    const uint64_t group = hostile_get(e + 60, 4);
    const uint64_t scale = hostile_get(e + 64, 4);
    const uint64_t block = hostile_get(e + 112, 4);
    if (rows == 0 || columns == 0 || rows > 4096 || columns > 4096 || bits == 0 || bits > 32) {
        return;
    }
    const uint64_t stride = ((block != 0 ? block : columns) * bits + 127) / 128 * 16;
    const uint64_t groups = group == 0 ? 1 : (columns + group - 1) / group;
    hostile_put(e + 48, 4, rows);
    hostile_put(e + 52, 4, columns);
    hostile_put(e + 104, 4, stride);
    shorten(t, e + 72, stride * (block != 0 ? rows / block * columns : rows));
    shorten(t, e + 88, rows * groups * (scale == CHIPLM_F32 ? 4 : scale == CHIPLM_F16 ? 2 : 0));
}

static bool ends_in(const uint8_t *name, const char *end) {
    const size_t n = strlen(end);
    size_t at = 0;
    while (at < 48 && name[at] != 0) {
        at++;
    }
    return at >= n && memcmp(name + at - n, end, n) == 0;
}

/* Fewer neurons, a shorter context; or a tensor of another shape than the model's sizes imply. */
void hostile_change_sizes(const tables *t, uint64_t *r) {
    uint8_t *m = t->p + t->section[MODL].at;
    if (t->section[MODL].bytes != MODEL_BYTES || t->tensors == 0) {
        return;
    }
    const uint64_t neurons = hostile_get(m + 16, 4);
    const uint64_t context = hostile_get(m + 20, 4);
    switch (hostile_below(r, 4)) {
    case 0:
    case 1: {
        const uint64_t fewer = 1 + hostile_below(r, neurons % 4096 + 1);
        hostile_put(m + 16, 4, fewer);
        for (uint32_t i = 0; i < t->tensors && neurons > 0; i++) {
            const uint8_t *e = hostile_entry(t, i);
            const uint64_t rows = hostile_get(e + 48, 4);
            if (ends_in(e, ".gate") || ends_in(e, ".up")) {
                reshape(t, i, rows / neurons * fewer, hostile_get(e + 52, 4));
            } else if (ends_in(e, ".down")) {
                reshape(t, i, rows, fewer);
                clean_codes(t, i, KEEP, r);
            }
        }
        break;
    }
    case 2: {
        const uint64_t shorter = 1 + hostile_below(r, context % 4096 + 1);
        hostile_put(m + 20, 4, shorter);
        if (context > 0) {
            shorten(t, t->p + HEADER + ROPE * SECTION_ENTRY + 8, t->section[ROPE].bytes / context * shorter);
        }
        break;
    }
    default: {
        const uint32_t tensor = (uint32_t)hostile_below(r, t->tensors);
        const uint8_t *e = hostile_entry(t, tensor);
        const uint64_t rows = hostile_get(e + 48, 4);
        const uint64_t columns = hostile_get(e + 52, 4);
        const bool of_rows = hostile_below(r, 2) == 0;
        reshape(t, tensor, of_rows ? 1 + hostile_below(r, rows % 4096 + 1) : rows, of_rows ? columns : 1 + hostile_below(r, columns % 4096 + 1));
        clean_codes(t, tensor, KEEP, r);
        break;
    }
    }
}

/* Constants and choices of the model that need no other tensors. */
void hostile_change_model(const tables *t, uint64_t *r) {
    static const uint64_t factors[] = {0x1f800000, 0x5f800000, 0x3f800000, 0x3ec00000, 0x44000000};
    uint8_t *m = t->p + t->section[MODL].at;
    if (t->section[MODL].bytes != MODEL_BYTES) {
        return;
    }
    switch (hostile_below(r, 5)) {
    case 0: /* the gate */
        m[32] ^= 1U;
        break;
    case 1: /* qk_norm */
        m[36] ^= 2U;
        break;
    case 2: { /* other heads, and a context that the rotary tables are long enough for */
        const uint64_t d = hostile_get(m + 4, 4);
        const uint64_t heads = 1 + hostile_below(r, d % 1024 + 1);
        const uint64_t pairs = d / heads / 2;
        hostile_put(m + 12, 4, heads);
        if (pairs > 0) {
            hostile_put(m + 20, 4, t->section[ROPE].bytes / (8 * pairs));
        } else {
            shorten(t, t->p + HEADER + ROPE * SECTION_ENTRY + 8, 0);
        }
        break;
    }
    default:
        hostile_put(m + 40 + 4 * hostile_below(r, hostile_get(m + 24, 4) == 0 ? 2 : 5), 4, factors[hostile_below(r, 5)]);
        break;
    }
}

/* Another format for a tensor: where its rows are short, most need no more room. */
void hostile_change_format(const tables *t, uint64_t *r) {
    static const uint64_t groups[] = {0, 32, 64, 128};
    static const uint64_t widths[] = {2, 4, 8, 2, 4, 8, 2, 4, 8, 32};
    if (t->tensors == 0 || t->section[MODL].bytes != MODEL_BYTES) {
        return;
    }
    const uint32_t tensor = (uint32_t)hostile_below(r, t->tensors);
    uint8_t *e = hostile_entry(t, tensor);
    const uint64_t d = hostile_get(t->p + t->section[MODL].at + 4, 4);
    const uint64_t rows = hostile_get(e + 48, 4);
    const uint64_t columns = hostile_get(e + 52, 4);
    const uint64_t bits = hostile_get(e + 56, 4);
    switch (hostile_below(r, 5)) {
    case 0:
        if (bits != 32) {
            hostile_put(e + 56, 4, widths[hostile_below(r, 10)]);
        }
        break;
    case 1:
        hostile_put(e + 60, 4, groups[hostile_below(r, 4)]);
        break;
    case 2: /* half as wide scales; the other way round there is no room for sure */
        if (hostile_get(e + 64, 4) == CHIPLM_F32) {
            hostile_put(e + 64, 4, CHIPLM_F16);
            hostile_put(e + 96, 8, hostile_get(e + 96, 8) / 2);
        }
        break;
    case 3: /* stored the other way round */
        if (d > 0 && bits >= 2 && bits <= 8 && columns > 0) {
            const bool was = hostile_get(e + 112, 4) != 0;
            const uint64_t stride = ((was ? columns : d) * bits + 127) / 128 * 16;
            hostile_put(e + 112, 4, was ? 0 : d);
            hostile_put(e + 104, 4, stride);
            hostile_put(e + 80, 8, stride * (was ? rows : rows / d * columns));
        }
        break;
    default:
        hostile_put(e + 68, 4, hostile_below(r, 3));
        break;
    }
    clean_codes(t, tensor, KEEP, r);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

/* Other ranks for two merges, or the same merge for two ranks. */
static void exchange_merges(const part *tokn, uint8_t *p, uint64_t *r) {
    const uint64_t entries = hostile_get(p + 4, 4);
    const uint64_t merges = hostile_get(p + 8, 4);
    if (merges < 1 || merges > tokn->bytes || entries > tokn->bytes || 24 + 4 * entries + 12 * merges > tokn->bytes) {
        return;
    }
    uint8_t *first = p + 24 + 4 * entries;
    uint8_t *a = first + 12 * hostile_below(r, merges);
    uint8_t *b = first + 12 * hostile_below(r, merges);
    uint8_t kept[12];
    memcpy(kept, a, sizeof kept);
    memmove(a, b, sizeof kept);
    if (hostile_below(r, 4) != 0) {
        memcpy(b, kept, sizeof kept);
    }
}

/* Tokens and goldens that fill the same bytes otherwise. */
void hostile_change_lists(const tables *t, uint64_t *r) {
    const part tokn = t->section[TOKN];
    const part gold = t->section[GOLD];
    const bool more = hostile_below(r, 2) == 0;
    if (hostile_below(r, 2) == 0 && tokn.bytes >= 20) {
        exchange_merges(&tokn, t->p + tokn.at, r);
        return;
    }
    if (hostile_below(r, 2) == 0 && tokn.bytes >= 20) { /* three entries are as long as a merge; twelve bytes of text too */
        uint8_t *p = t->p + tokn.at;
        const unsigned other = hostile_below(r, 2) == 0 ? 4 : 16;
        const uint64_t unit = other == 4 ? 3 : 12;
        hostile_put(p + 8, 4, hostile_get(p + 8, 4) + (more ? 1 : -1ULL));
        hostile_put(p + other, 4, hostile_get(p + other, 4) + (more ? -unit : unit));
    } else if (gold.bytes >= 8) { /* two ids are as long as one best token */
        uint8_t *p = t->p + gold.at;
        hostile_put(p, 4, hostile_get(p, 4) + (more ? 2 : -2ULL));
        hostile_put(p + 4, 4, hostile_get(p + 4, 4) + (more ? -1ULL : 1));
    }
}
