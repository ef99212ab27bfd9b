/* The tensors of an image: the list that the model's sizes imply, and the checks that the table and the bytes agree
 * with it. */
#include "image.h"

#include "head.h"
#include "numerics.h"

/* ------------------------------------------------------------------------------------------------ the implied list */

static const char *const part_names[] = {
    [CHIPLM_ATTENTION_NORM] = "attention_norm",
    [CHIPLM_QKV] = "qkv",
    [CHIPLM_ATTENTION_OUTPUT] = "attention_output",
    [CHIPLM_FFN_NORM] = "ffn_norm",
    [CHIPLM_ROUTER] = "router",
    [CHIPLM_GATE] = "gate",
    [CHIPLM_UP] = "up",
    [CHIPLM_DOWN] = "down",
    [CHIPLM_PLE_GATE] = "ple_gate",
    [CHIPLM_PLE_OUTPUT] = "ple_output",
    [CHIPLM_PLE_NORM] = "ple_norm",
    [CHIPLM_TOKEN_EMBEDDING] = "token_embedding",
    [CHIPLM_NGRAM_TABLE] = "ngram_table",
    [CHIPLM_PLE_PROJECTION] = "ple_projection",
    [CHIPLM_PLE_PROJECTION_NORM] = "ple_projection_norm",
    [CHIPLM_PLE_TABLE] = "ple_table",
    [CHIPLM_OUTPUT_NORM] = "output_norm",
    [CHIPLM_HEAD] = "head",
    [CHIPLM_HEAD_ROTATION] = "head_rotation",
    [CHIPLM_HEAD_BOUNDS] = "head_bounds",
    [CHIPLM_HEAD_BLOCKS_0] = "head_blocks.0",
    [CHIPLM_HEAD_BLOCKS_1] = "head_blocks.1",
    [CHIPLM_HEAD_ORDER] = "head_order",
};

/* Whether a model has a part at all. */
static bool has(const chiplm_model *m, chiplm_part part) {
    switch (part) {
    case CHIPLM_ROUTER:
        return m->experts > 1;
    case CHIPLM_NGRAM_TABLE:
        return m->ngram_rows > 0;
    case CHIPLM_PLE_GATE:
    case CHIPLM_PLE_OUTPUT:
    case CHIPLM_PLE_NORM:
    case CHIPLM_PLE_PROJECTION:
    case CHIPLM_PLE_PROJECTION_NORM:
    case CHIPLM_PLE_TABLE:
        return m->ple_dim > 0;
    case CHIPLM_HEAD:
        return m->tied == 0;
    case CHIPLM_HEAD_ROTATION:
    case CHIPLM_HEAD_BOUNDS:
    case CHIPLM_HEAD_BLOCKS_0:
    case CHIPLM_HEAD_BLOCKS_1:
    case CHIPLM_HEAD_ORDER:
        return m->clusters > 0;
    default:
        return true;
    }
}

/* The part at index among those of [first, end) that a model has, or end. */
static chiplm_part nth(const chiplm_model *m, uint32_t index, chiplm_part first, chiplm_part end) {
    for (chiplm_part part = first; part < end; part++) {
        if (has(m, part) && index-- == 0) {
            return part;
        }
    }
    return end;
}

static uint32_t count(const chiplm_model *m, chiplm_part first, chiplm_part end) {
    uint32_t n = 0;
    for (chiplm_part part = first; part < end; part++) {
        n += has(m, part) ? 1U : 0U;
    }
    return n;
}

uint32_t chiplm_count_tensors(const chiplm_model *m) {
    return count(m, CHIPLM_LAYER_PARTS, CHIPLM_PARTS) + m->n_layers * count(m, 0, CHIPLM_LAYER_PARTS);
}

static void append(char name[48], const char *text) {
    size_t n = 0;
    while (n + 1 < 48 && name[n] != '\0') { /* without the bound, compilers make it a call of strlen */
        n++;
    }
    for (size_t i = 0; n + 1 < 48 && text[i] != '\0'; i++) {
        name[n++] = text[i];
    }
    name[n] = '\0';
}

static void append_number(char name[48], uint32_t value) {
    char digits[11] = {0};
    size_t i = sizeof digits - 1;
    do {
        digits[--i] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    append(name, digits + i);
}

chiplm_expected chiplm_expect(const chiplm_model *m, uint32_t index) {
    const uint32_t before = count(m, CHIPLM_LAYER_PARTS, CHIPLM_OUTPUT_NORM);
    const uint32_t per_layer = count(m, 0, CHIPLM_LAYER_PARTS);
    const uint32_t d = m->d_model;
    chiplm_expected e = {.rows = 1, .columns = d};
    if (index < before) {
        e.part = nth(m, index, CHIPLM_LAYER_PARTS, CHIPLM_OUTPUT_NORM);
    } else if (index - before < per_layer * m->n_layers) {
        e.layer = (index - before) / per_layer;
        e.part = nth(m, (index - before) % per_layer, 0, CHIPLM_LAYER_PARTS);
        append(e.name, "layers.");
        append_number(e.name, e.layer);
        append(e.name, ".");
    } else {
        e.part = nth(m, index - before - per_layer * m->n_layers, CHIPLM_OUTPUT_NORM, CHIPLM_PARTS);
    }
    append(e.name, part_names[e.part]);
    switch (e.part) {
    case CHIPLM_ATTENTION_NORM:
    case CHIPLM_FFN_NORM:
    case CHIPLM_PLE_NORM:
    case CHIPLM_OUTPUT_NORM:
        e.kind = CHIPLM_FLOATS;
        break;
    case CHIPLM_PLE_PROJECTION_NORM:
        e.columns = m->ple_dim;
        e.kind = CHIPLM_FLOATS;
        break;
    case CHIPLM_ROUTER:
        e.rows = m->experts;
        e.kind = CHIPLM_FLOATS;
        break;
    case CHIPLM_QKV:
        e.rows = 3 * d;
        break;
    case CHIPLM_ATTENTION_OUTPUT:
        e.rows = d;
        break;
    case CHIPLM_GATE:
    case CHIPLM_UP:
        e.rows = m->experts * m->d_ff;
        break;
    case CHIPLM_DOWN:
        e.rows = m->experts * d;
        e.columns = m->d_ff;
        break;
    case CHIPLM_PLE_GATE:
        e.rows = m->ple_dim;
        break;
    case CHIPLM_PLE_OUTPUT:
        e.rows = d;
        e.columns = m->ple_dim;
        break;
    case CHIPLM_PLE_PROJECTION:
        e.rows = m->n_layers * m->ple_dim;
        break;
    case CHIPLM_PLE_TABLE:
        e.rows = m->vocab_size;
        e.columns = m->n_layers * m->ple_dim;
        break;
    case CHIPLM_NGRAM_TABLE:
        e.rows = m->ngram_rows;
        break;
    case CHIPLM_TOKEN_EMBEDDING:
    case CHIPLM_HEAD:
        e.rows = m->vocab_size;
        break;
    case CHIPLM_HEAD_ROTATION:
        e.rows = d;
        break;
    case CHIPLM_HEAD_BOUNDS:
        e.columns = (uint32_t)chiplm_bounds_bytes(m);
        e.kind = CHIPLM_BYTES;
        break;
    case CHIPLM_HEAD_BLOCKS_0:
    case CHIPLM_HEAD_BLOCKS_1:
        e.rows = m->vocab_size;
        e.columns = 16;
        e.kind = CHIPLM_BYTES;
        break;
    case CHIPLM_HEAD_ORDER: /* rows of four ids */
        e.rows = (m->vocab_size + 3) / 4;
        e.columns = 16;
        e.kind = CHIPLM_BYTES;
        break;
    case CHIPLM_PARTS:
        break;
    }
    return e;
}

/* -------------------------------------------------------------------------------------------------------- the table */

static const uint8_t *entry_of(const chiplm_image *image, uint32_t index) {
    return image->table.at + (size_t)index * CHIPLM_TENSOR_BYTES;
}

/* Reads an entry whose ranges were checked. */
static chiplm_tensor read_entry(const chiplm_image *image, uint32_t index) {
    const uint8_t *p = entry_of(image, index);
    chiplm_tensor t = {
        .rows = chiplm_get32(p + 48),
        .columns = chiplm_get32(p + 52),
        .bits = chiplm_get32(p + 56),
        .group = chiplm_get32(p + 60),
        .scale_type = chiplm_get32(p + 64),
        .tier = chiplm_get32(p + 68),
        .block = chiplm_get32(p + 112),
        .stride = chiplm_get32(p + 104),
    };
    memcpy(t.name, p, sizeof t.name);
    t.codes = (chiplm_span){image->file.at + chiplm_get64(p + 72), (size_t)chiplm_get64(p + 80)};
    if (t.scale_type != 0) {
        t.groups = t.group == 0 ? 1 : (t.columns + t.group - 1) / t.group;
        t.scales = (chiplm_span){image->file.at + chiplm_get64(p + 88), (size_t)chiplm_get64(p + 96)};
    }
    return t;
}

chiplm_status chiplm_image_tensor(const chiplm_image *image, uint32_t index, chiplm_tensor *tensor) {
    if (image == NULL || tensor == NULL || index >= image->model.n_tensors) {
        return CHIPLM_ERR_ARGUMENT;
    }
    *tensor = read_entry(image, index);
    return CHIPLM_OK;
}

/* Whether [offset, offset + bytes) starts at a multiple of 64 inside DATA. */
static bool inside(const chiplm_image *image, uint64_t offset, uint64_t bytes) {
    const uint64_t first = (uint64_t)(image->data.at - image->file.at);
    return offset % 64 == 0 && offset >= first && offset - first <= image->data.bytes &&
           bytes <= image->data.bytes - (offset - first);
}

static bool apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a_bytes == 0 || b_bytes == 0 || a + a_bytes <= b || b + b_bytes <= a;
}

static chiplm_status check_entry(const chiplm_image *image, uint32_t index, chiplm_fault *fault) {
    const uint8_t *p = entry_of(image, index);
    const chiplm_expected want = chiplm_expect(&image->model, index);
    if (memcmp(p, want.name, sizeof want.name) != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_NAME, want.name, index, 0);
    }
    const uint32_t rows = chiplm_get32(p + 48);
    const uint32_t columns = chiplm_get32(p + 52);
    if (rows != want.rows) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_SHAPE, want.name, rows, want.rows);
    }
    if (columns != want.columns) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_SHAPE, want.name, columns, want.columns);
    }
    const uint32_t bits = chiplm_get32(p + 56);
    const uint32_t group = chiplm_get32(p + 60);
    const uint32_t scale = chiplm_get32(p + 64);
    const uint32_t tier = chiplm_get32(p + 68);
    if (bits != 2 && bits != 4 && bits != 8 && bits != 32) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, bits, 4);
    }
    const bool coded = want.kind == CHIPLM_CODES;
    if (bits == 32 && coded) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_FLOAT, want.name, bits, 4);
    }
    if (!coded && bits != (want.kind == CHIPLM_FLOATS ? 32U : 8U)) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, bits, want.kind == CHIPLM_FLOATS ? 32 : 8);
    }
    if (coded ? (group != 0 && group != 32 && group != 64 && group != 128) : group != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, group, 0);
    }
    if (coded ? (scale != CHIPLM_F32 && scale != CHIPLM_F16) : scale != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, scale, coded ? CHIPLM_F32 : 0);
    }
    if (tier > CHIPLM_TIER_FLASH) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, tier, CHIPLM_TIER_FLASH);
    }
    const uint32_t block = chiplm_get32(p + 112);
    if (block != 0 && (want.part != CHIPLM_DOWN || block != image->model.d_model)) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_BITS, want.name, block, 0);
    }
    if (!chiplm_zero(p + 116, 12)) {
        return chiplm_fail(fault, CHIPLM_ERR_RESERVED, want.name, 0, 0);
    }
    /* rows < 2^28 and columns < 2^25, so these products fit 64 bits */
    const uint64_t per_block = 128 / bits;
    const uint64_t stored_rows = block == 0 ? rows : (uint64_t)(rows / block) * columns;
    const uint64_t stored_columns = block == 0 ? columns : block;
    const uint64_t stride = (stored_columns + per_block - 1) / per_block * 16;
    if (chiplm_get32(p + 104) != stride) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get32(p + 104), stride);
    }
    const uint64_t code_bytes = stored_rows * stride;
    if (chiplm_get64(p + 80) != code_bytes) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + 80), code_bytes);
    }
    if (!inside(image, chiplm_get64(p + 72), code_bytes)) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + 72), 0);
    }
    uint64_t scale_bytes = 0;
    if (coded) {
        const uint64_t groups = group == 0 ? 1 : ((uint64_t)columns + group - 1) / group;
        scale_bytes = rows * groups * (scale == CHIPLM_F32 ? 4U : 2U);
    }
    if (chiplm_get64(p + 96) != scale_bytes) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + 96), scale_bytes);
    }
    if (!coded ? chiplm_get64(p + 88) != 0 : !inside(image, chiplm_get64(p + 88), scale_bytes)) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + 88), 0);
    }
    if (!apart(chiplm_get64(p + 72), code_bytes, chiplm_get64(p + 88), scale_bytes)) {
        return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + 88), 0);
    }
    for (uint32_t other = 0; other < index; other++) {
        const uint8_t *q = entry_of(image, other);
        for (uint32_t a = 72; a <= 88; a += 16) {
            for (uint32_t b = 72; b <= 88; b += 16) {
                if (!apart(chiplm_get64(p + a), chiplm_get64(p + a + 8), chiplm_get64(q + b),
                           chiplm_get64(q + b + 8))) {
                    return chiplm_fail(fault, CHIPLM_ERR_TENSOR_RANGE, want.name, chiplm_get64(p + a), 0);
                }
            }
        }
    }
    return CHIPLM_OK;
}

/* ------------------------------------------------------------------------------------------------------- the values */

/* Whether a byte holds a code that no quantiser writes. */
static bool has_forbidden(uint8_t byte, uint32_t bits) {
    switch (bits) {
    case 2: /* a field of binary 10: high bit set, low bit clear */
        return (byte & 0xaaU & ~((uint32_t)byte << 1)) != 0;
    case 4:
        return (byte & 15U) == 8 || byte >> 4 == 8;
    default:
        return byte == 128;
    }
}

/* Whether the last block of a stored row holds codes past its last one. */
static bool has_tail(const chiplm_tensor *t, const uint8_t *row) {
    const uint32_t per_block = 128 / t->bits;
    const uint8_t *block = row + t->stride - 16;
    const uint32_t columns = t->block == 0 ? t->columns : t->block;
    const uint32_t used = columns - (columns - 1) / per_block * per_block;
    for (uint32_t column = used; column < per_block; column++) {
        const uint32_t code = ((uint32_t)block[column % 16] >> (column / 16 * t->bits)) & ((1U << t->bits) - 1U);
        if (code != 0) {
            return true;
        }
    }
    return false;
}

/* Zero, or normal and finite: a subnormal would make results depend on the processor's flush mode. */
static bool is_plain(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffffffU;
    return magnitude < 0x7f800000U && (magnitude == 0 || magnitude >= 0x00800000U);
}

static chiplm_status check_floats(const chiplm_tensor *t, chiplm_fault *fault) {
    for (uint32_t r = 0; r < t->rows; r++) {
        const uint8_t *row = t->codes.at + (size_t)r * t->stride;
        for (uint32_t c = 0; c < t->columns; c++) {
            if (!is_plain(chiplm_get32(row + (size_t)4 * c))) {
                return chiplm_fail(fault, CHIPLM_ERR_FLOAT, t->name, chiplm_get32(row + (size_t)4 * c), 0);
            }
        }
        if (!chiplm_zero(row + (size_t)4 * t->columns, t->stride - (size_t)4 * t->columns)) {
            return chiplm_fail(fault, CHIPLM_ERR_RESERVED, t->name, r, 0);
        }
    }
    return CHIPLM_OK;
}

static chiplm_status check_codes(const chiplm_tensor *t, chiplm_fault *fault) {
    for (size_t i = 0; i < t->codes.bytes; i++) {
        if (has_forbidden(t->codes.at[i], t->bits)) {
            return chiplm_fail(fault, CHIPLM_ERR_CODE, t->name, t->codes.at[i], 0);
        }
    }
    const size_t stored_rows = t->block == 0 ? t->rows : (size_t)(t->rows / t->block) * t->columns;
    for (size_t r = 0; r < stored_rows; r++) {
        if (has_tail(t, t->codes.at + r * t->stride)) {
            return chiplm_fail(fault, CHIPLM_ERR_CODE, t->name, r, 0);
        }
    }
    const size_t width = t->scale_type == CHIPLM_F32 ? 4 : 2;
    for (size_t i = 0; i < t->scales.bytes; i += width) {
        const uint32_t bits = width == 4 ? chiplm_get32(t->scales.at + i) : chiplm_get16(t->scales.at + i);
        if (width == 4 ? (bits > 0x7f800000U || !is_plain(bits)) : bits >= 0x7c00U) {
            return chiplm_fail(fault, CHIPLM_ERR_SCALE, t->name, bits, 0);
        }
    }
    return CHIPLM_OK;
}

static uint64_t count_set(chiplm_span s) {
    uint64_t n = 0;
    for (size_t i = 0; i < s.bytes; i++) {
        n += s.at[i] != 0 ? 1U : 0U;
    }
    return n;
}

/* Whether bytes of DATA that belong to no tensor are 0: then no others are set than those of the tensors, of which no two
 * overlap. */
static bool zero_between(const chiplm_image *image) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < image->model.n_tensors; i++) {
        const chiplm_tensor t = read_entry(image, i);
        set += count_set(t.codes) + count_set(t.scales);
    }
    return set == count_set(image->data);
}

chiplm_status chiplm_check_tensors(const chiplm_image *image, chiplm_fault *fault) {
    const chiplm_model *m = &image->model;
    const uint64_t bytes = (uint64_t)m->n_tensors * CHIPLM_TENSOR_BYTES;
    if (image->table.bytes != bytes) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "TENS: bytes", image->table.bytes, bytes);
    }
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const chiplm_status status = check_entry(image, i, fault);
        if (status != CHIPLM_OK) {
            return status;
        }
    }
    if (!zero_between(image)) {
        return chiplm_fail(fault, CHIPLM_ERR_RESERVED, "DATA: bytes between the tensors", 0, 0);
    }
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const chiplm_tensor t = read_entry(image, i);
        const uint32_t stored = chiplm_get32(entry_of(image, i) + 108);
        uint32_t crc = chiplm_crc32(0, t.codes.at, t.codes.bytes);
        crc = chiplm_crc32(crc, t.scales.at, t.scales.bytes);
        if (stored != crc) {
            return chiplm_fail(fault, CHIPLM_ERR_TENSOR_CRC, t.name, stored, crc);
        }
    }
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const chiplm_tensor t = read_entry(image, i);
        const chiplm_kind kind = chiplm_expect(m, i).kind;
        chiplm_status status = CHIPLM_OK;
        if (kind == CHIPLM_FLOATS) {
            status = check_floats(&t, fault);
        } else if (kind == CHIPLM_CODES) {
            status = check_codes(&t, fault);
        }
        if (status != CHIPLM_OK) {
            return status;
        }
    }
    return m->clusters > 0 ? chiplm_check_clusters(image, fault) : CHIPLM_OK;
}
