/* The values of the sections beside the tensors: rotary tables, tokenizer, golden. */
#include "image.h"

#include "numerics.h"

chiplm_status chiplm_check_rope(const chiplm_image *image, chiplm_fault *fault) {
    const chiplm_model *m = &image->model;
    const uint64_t entries = (uint64_t)m->context_length * (m->d_model / m->n_heads / 2) * 2;
    if (image->rope.bytes != entries * 4) {
        return chiplm_fail(fault, CHIPLM_ERR_ROPE, "ROPE: bytes", image->rope.bytes, entries * 4);
    }
    for (size_t i = 0; i < image->rope.bytes; i += 4) {
        const uint32_t magnitude = chiplm_get32(image->rope.at + i) & 0x7fffffffU;
        if (magnitude > 0x3f800000U || (magnitude != 0 && magnitude < 0x00800000U)) { /* above 1, or subnormal */
            return chiplm_fail(fault, CHIPLM_ERR_ROPE, "ROPE: entry at byte", i, 0);
        }
    }
    return CHIPLM_OK;
}

/* The section of a model without a tokenizer: no entries, no merges, no text, and an end-of-text of the vocabulary. */
static chiplm_status check_no_tokenizer(const chiplm_image *image, chiplm_fault *fault) {
    const chiplm_span s = image->tokenizer;
    if (s.bytes != 24) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: bytes", s.bytes, 24);
    }
    for (uint32_t i = 4; i < 24; i += 4) {
        const uint32_t v = chiplm_get32(s.at + i);
        const uint32_t limit = i == 12 ? image->model.vocab_size - 1 : 0;
        if (v > limit) {
            return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: word of no tokenizer at byte", i, limit);
        }
    }
    return CHIPLM_OK;
}

chiplm_status chiplm_check_tokenizer(const chiplm_image *image, chiplm_fault *fault) {
    const chiplm_span s = image->tokenizer;
    if (s.bytes < 20) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: bytes", s.bytes, 20);
    }
    const uint32_t kind = chiplm_get32(s.at);
    const uint32_t entries = chiplm_get32(s.at + 4);
    const uint32_t merges = chiplm_get32(s.at + 8);
    const uint32_t end_of_text = chiplm_get32(s.at + 12);
    const uint32_t text = chiplm_get32(s.at + 16);
    if (kind > 1) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: kind", kind, 1);
    }
    if (kind == 0) { /* none: tokens stand for no text */
        return check_no_tokenizer(image, fault);
    }
    if (entries == 0 || entries > image->model.vocab_size) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: entries", entries, image->model.vocab_size);
    }
    if (end_of_text >= entries) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: end-of-text", end_of_text, entries - 1);
    }
    const uint64_t bytes = 20 + 4 * ((uint64_t)entries + 1) + 12 * (uint64_t)merges + text;
    if (s.bytes != bytes) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: bytes", s.bytes, bytes);
    }
    const uint8_t *offsets = s.at + 20;
    if (chiplm_get32(offsets) != 0 || chiplm_get32(offsets + (size_t)4 * entries) != text) {
        return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: ends of the entries' bytes",
                           chiplm_get32(offsets + (size_t)4 * entries), text);
    }
    for (uint32_t i = 0; i < entries; i++) {
        const uint32_t first = chiplm_get32(offsets + (size_t)4 * i);
        const uint32_t end = chiplm_get32(offsets + (size_t)4 * i + 4);
        if (i == end_of_text ? end != first : end <= first) {
            return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: bytes of entry", i, 0);
        }
    }
    const uint8_t *merge = offsets + 4 * ((size_t)entries + 1);
    for (uint32_t i = 0; i < merges; i++) {
        for (size_t j = 0; j < 3; j++) {
            const uint32_t id = chiplm_get32(merge + (size_t)12 * i + 4 * j);
            if (id >= entries) {
                return chiplm_fail(fault, CHIPLM_ERR_TOKENIZER, "TOKN: id in merge", id, entries - 1);
            }
        }
    }
    return CHIPLM_OK;
}

int32_t chiplm_image_end_of_text(const chiplm_image *image) {
    return image == NULL || image->tokenizer.at == NULL ? -1 : (int32_t)chiplm_get32(image->tokenizer.at + 12);
}

chiplm_span chiplm_image_token(const chiplm_image *image, int32_t id) {
    if (image == NULL || image->tokenizer.at == NULL) {
        return (chiplm_span){.at = NULL, .bytes = 0};
    }
    const uint8_t *p = image->tokenizer.at;
    const uint32_t entries = chiplm_get32(p + 4);
    const uint32_t merges = chiplm_get32(p + 8);
    if (id < 0 || (uint32_t)id >= entries) {
        return (chiplm_span){.at = NULL, .bytes = 0};
    }
    const uint8_t *offset = p + 20 + (size_t)4 * (uint32_t)id;
    const uint8_t *text = p + 20 + 4 * ((size_t)entries + 1) + (size_t)12 * merges;
    const uint32_t first = chiplm_get32(offset);
    return (chiplm_span){.at = text + first, .bytes = chiplm_get32(offset + 4) - first};
}

chiplm_golden chiplm_image_golden(const chiplm_image *image) {
    if (image == NULL || image->golden.at == NULL) {
        return (chiplm_golden){.n_prompt = 0};
    }
    const uint8_t *p = image->golden.at;
    const uint32_t n = chiplm_get32(p);
    return (chiplm_golden){
        .n_prompt = n,
        .n_top = chiplm_get32(p + 4),
        .digest = chiplm_get64(p + 8),
        .prompt = (const int32_t *)(const void *)(p + 16),
        .top = (const uint32_t *)(const void *)(p + 16 + (size_t)4 * n),
    };
}

chiplm_status chiplm_check_golden(const chiplm_image *image, chiplm_fault *fault) {
    const chiplm_model *m = &image->model;
    const chiplm_span s = image->golden;
    if (s.bytes < 16) {
        return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: bytes", s.bytes, 16);
    }
    const uint32_t n = chiplm_get32(s.at);
    const uint32_t k = chiplm_get32(s.at + 4);
    if (n < 1 || n > m->context_length) {
        return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: prompt length", n, m->context_length);
    }
    if (k < 1 || k > m->vocab_size) {
        return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: number of best tokens", k, m->vocab_size);
    }
    const uint64_t bytes = 16 + 4 * (uint64_t)n + 8 * (uint64_t)k;
    if (s.bytes != bytes) {
        return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: bytes", s.bytes, bytes);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = chiplm_get32(s.at + 16 + (size_t)4 * i);
        if (id >= m->vocab_size) {
            return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: prompt id", id, m->vocab_size - 1);
        }
    }
    const uint8_t *top = s.at + 16 + (size_t)4 * n;
    for (uint32_t i = 0; i < k; i++, top += 8) {
        const uint32_t id = chiplm_get32(top);
        const float logit = chiplm_getf(top + 4);
        if (id >= m->vocab_size) {
            return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: best id", id, m->vocab_size - 1);
        }
        if (!chiplm_finite(logit)) {
            return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: logit", chiplm_get32(top + 4), 0);
        }
        if (i > 0) {
            const float above = chiplm_getf(top - 4);
            if (!(logit < above || (logit == above && id > chiplm_get32(top - 8)))) {
                return chiplm_fail(fault, CHIPLM_ERR_GOLDEN, "GOLD: order of the best tokens", i, 0);
            }
        }
    }
    return CHIPLM_OK;
}
