/* Opens an image: header, sections, model sizes; the values inside the sections are checked in tensors.c and
 * sections.c. Every length is compared before it is used; sums of untrusted numbers are made in 64 bits from parts that
 * were bounded first. */
#include "image.h"

#include "kernels.h"
#include "numerics.h"

uint16_t chiplm_get16(const uint8_t *p) { return (uint16_t)(p[0] | ((uint32_t)p[1] << 8)); }

uint32_t chiplm_get32(const uint8_t *p) {
    return p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

uint64_t chiplm_get64(const uint8_t *p) { return chiplm_get32(p) | ((uint64_t)chiplm_get32(p + 4) << 32); }

float chiplm_getf(const uint8_t *p) { return chiplm_from_bits(chiplm_get32(p)); }

bool chiplm_zero(const uint8_t *p, size_t n) {
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= p[i];
    }
    return any == 0;
}

chiplm_status chiplm_fail(chiplm_fault *fault, chiplm_status status, const char *where, uint64_t found,
                          uint64_t wanted) {
    if (fault != NULL) {
        memset(fault, 0, sizeof *fault);
        fault->status = status;
        for (size_t i = 0; i + 1 < sizeof fault->where && where[i] != '\0'; i++) {
            fault->where[i] = where[i];
        }
        fault->found = found;
        fault->wanted = wanted;
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------- the header */

static chiplm_status check_header(const uint8_t *p, size_t size, chiplm_fault *fault) {
    static const uint8_t magic[4] = {'C', 'L', 'M', 0};
    if (size < CHIPLM_HEADER_BYTES) {
        return chiplm_fail(fault, CHIPLM_ERR_SIZE, "file", size, CHIPLM_HEADER_BYTES);
    }
    if (memcmp(p, magic, sizeof magic) != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_MAGIC, "header: magic", chiplm_get32(p), chiplm_get32(magic));
    }
    if (chiplm_get32(p + 4) != CHIPLM_VERSION) {
        return chiplm_fail(fault, CHIPLM_ERR_VERSION, "header: version", chiplm_get32(p + 4), CHIPLM_VERSION);
    }
    if (chiplm_get32(p + 8) != CHIPLM_HEADER_BYTES) {
        return chiplm_fail(fault, CHIPLM_ERR_HEADER_BYTES, "header: header bytes", chiplm_get32(p + 8),
                           CHIPLM_HEADER_BYTES);
    }
    if (chiplm_get32(p + 12) != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_FLAGS, "header: flags", chiplm_get32(p + 12), 0);
    }
    if (chiplm_get64(p + 16) != size) {
        return chiplm_fail(fault, CHIPLM_ERR_FILE_BYTES, "header: file bytes", chiplm_get64(p + 16), size);
    }
    static const uint8_t none[4] = {0};
    uint32_t crc = chiplm_crc32(0, p, 28);
    crc = chiplm_crc32(crc, none, sizeof none);
    crc = chiplm_crc32(crc, p + 32, size - 32);
    if (crc != chiplm_get32(p + 28)) {
        return chiplm_fail(fault, CHIPLM_ERR_FILE_CRC, "header: file CRC", chiplm_get32(p + 28), crc);
    }
    if (!chiplm_zero(p + 32, 32)) {
        return chiplm_fail(fault, CHIPLM_ERR_RESERVED, "header: reserved bytes", 0, 0);
    }
    return CHIPLM_OK;
}

/* -------------------------------------------------------------------------------------------------- the section table */

enum { MODL, CONF, TENS, ROPE, TOKN, GOLD, DATA, SECTIONS };
static const char section_names[SECTIONS][5] = {"MODL", "CONF", "TENS", "ROPE", "TOKN", "GOLD", "DATA"};

static chiplm_status check_sections(const uint8_t *p, size_t size, chiplm_span spans[SECTIONS], chiplm_fault *fault) {
    const uint32_t n = chiplm_get32(p + 24);
    if (n != SECTIONS) {
        return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, "header: number of sections", n, SECTIONS);
    }
    uint64_t end = CHIPLM_HEADER_BYTES + SECTIONS * CHIPLM_ENTRY_BYTES;
    if (size < end) {
        return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, "section table", size, end);
    }
    for (uint32_t i = 0; i < SECTIONS; i++) {
        const uint8_t *entry = p + CHIPLM_HEADER_BYTES + i * CHIPLM_ENTRY_BYTES;
        const char *name = section_names[i];
        if (memcmp(entry, name, 4) != 0) {
            return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, name, chiplm_get32(entry),
                               chiplm_get32((const uint8_t *)name));
        }
        const uint64_t offset = chiplm_get64(entry + 8);
        const uint64_t bytes = chiplm_get64(entry + 16);
        if (offset % 64 != 0 || offset < end || offset > size) {
            return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, name, offset, end);
        }
        if (bytes > size - offset) {
            return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, name, bytes, size - offset);
        }
        if (!chiplm_zero(entry + 24, 8)) {
            return chiplm_fail(fault, CHIPLM_ERR_RESERVED, name, chiplm_get64(entry + 24), 0);
        }
        if (!chiplm_zero(p + end, (size_t)(offset - end))) {
            return chiplm_fail(fault, CHIPLM_ERR_RESERVED, "padding before a section", end, 0);
        }
        spans[i] = (chiplm_span){.at = p + offset, .bytes = (size_t)bytes};
        end = offset + bytes;
    }
    if (size - end < 64) {
        return chiplm_fail(fault, CHIPLM_ERR_SECTIONS, "padding at the end", size - end, 64);
    }
    if (!chiplm_zero(p + end, (size_t)(size - end))) {
        return chiplm_fail(fault, CHIPLM_ERR_RESERVED, "padding at the end", end, 0);
    }
    for (uint32_t i = 0; i < SECTIONS; i++) {
        const uint32_t stored = chiplm_get32(p + CHIPLM_HEADER_BYTES + i * CHIPLM_ENTRY_BYTES + 4);
        const uint32_t crc = chiplm_crc32(0, spans[i].at, spans[i].bytes);
        if (stored != crc) {
            return chiplm_fail(fault, CHIPLM_ERR_SECTION_CRC, section_names[i], stored, crc);
        }
    }
    return CHIPLM_OK;
}

/* ---------------------------------------------------------------------------------------------------------- MODL */

/* A factor of the model: positive, normal, at most 2^64. */
static bool is_factor(float x) { return x >= 0x1p-64f && x <= 0x1p64f; }

static chiplm_status check_model(chiplm_span span, chiplm_model *m, chiplm_fault *fault) {
    if (span.bytes != CHIPLM_MODEL_BYTES) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: bytes", span.bytes, CHIPLM_MODEL_BYTES);
    }
    const uint8_t *p = span.at;
    const struct {
        const char *name;
        uint32_t *field;
        uint32_t least, most;
    } sizes[] = {
        {"MODL: vocab_size", &m->vocab_size, 1, 1U << 24},
        {"MODL: d_model", &m->d_model, 1, CHIPLM_MAX_COLUMNS},
        {"MODL: n_layers", &m->n_layers, 1, CHIPLM_MAX_LAYERS},
        {"MODL: n_heads", &m->n_heads, 1, CHIPLM_MAX_COLUMNS},
        {"MODL: d_ff", &m->d_ff, 1, CHIPLM_MAX_COLUMNS},
        {"MODL: context_length", &m->context_length, 1, CHIPLM_MAX_COLUMNS},
        {"MODL: ple_dim", &m->ple_dim, 0, CHIPLM_MAX_COLUMNS},
        {"MODL: experts", &m->experts, 1, CHIPLM_MAX_EXPERTS},
        {"MODL: activation", &m->swiglu, 0, 1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint32_t value = chiplm_get32(p + 4 * i);
        if (value < sizes[i].least || value > sizes[i].most) {
            const uint32_t bound = value < sizes[i].least ? sizes[i].least : sizes[i].most;
            return chiplm_fail(fault, CHIPLM_ERR_MODEL, sizes[i].name, value, bound);
        }
        *sizes[i].field = value;
    }
    if (m->d_model % m->n_heads != 0 || m->d_model / m->n_heads % 2 != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: n_heads does not cut d_model evenly", m->n_heads,
                           m->d_model);
    }
    const uint32_t flags = chiplm_get32(p + 36);
    if (flags > 3) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: flags", flags, 3);
    }
    m->tied = flags & 1U;
    m->qk_norm = flags >> 1;
    m->norm_eps = chiplm_getf(p + 40);
    m->score_scale = chiplm_getf(p + 44);
    m->ple_scale = chiplm_getf(p + 48);
    m->table_scale = chiplm_getf(p + 52);
    m->mix_scale = chiplm_getf(p + 56);
    if (!is_factor(m->norm_eps)) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: norm_eps", chiplm_get32(p + 40), 0);
    }
    if (!is_factor(m->score_scale)) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: score scale", chiplm_get32(p + 44), 0);
    }
    for (uint32_t at = 48; at < 60; at += 4) {
        if (m->ple_dim == 0 ? chiplm_get32(p + at) != 0 : !is_factor(chiplm_getf(p + at))) {
            return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: scales of the per-layer embeddings",
                               chiplm_get32(p + at), 0);
        }
    }
    m->clusters = chiplm_get32(p + 128);
    const uint32_t most = m->vocab_size < CHIPLM_MAX_CLUSTERS ? m->vocab_size : CHIPLM_MAX_CLUSTERS;
    if (m->clusters > most) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: clusters", m->clusters, most);
    }
    m->ngram_rows = chiplm_get32(p + 132);
    if (m->ngram_rows > CHIPLM_MAX_NGRAM_ROWS) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: ngram_rows", m->ngram_rows, CHIPLM_MAX_NGRAM_ROWS);
    }
    if (!chiplm_zero(p + 136, 56)) {
        return chiplm_fail(fault, CHIPLM_ERR_RESERVED, "MODL: reserved bytes", 0, 0);
    }
    m->n_tensors = chiplm_get32(p + 60);
    if (m->n_tensors != chiplm_count_tensors(m)) {
        return chiplm_fail(fault, CHIPLM_ERR_MODEL, "MODL: number of tensors", m->n_tensors, chiplm_count_tensors(m));
    }
    memcpy(m->tokenizer_sha256, p + 64, 32);
    memcpy(m->model_sha256, p + 96, 32);
    return CHIPLM_OK;
}

static chiplm_status open_image(chiplm_image *image, const void *bytes, size_t size, chiplm_fault *fault) {
    chiplm_span spans[SECTIONS];
    chiplm_status status = check_header(bytes, size, fault);
    if (status == CHIPLM_OK) {
        status = check_sections(bytes, size, spans, fault);
    }
    if (status == CHIPLM_OK) {
        status = check_model(spans[MODL], &image->model, fault);
    }
    if (status != CHIPLM_OK) {
        return status;
    }
    image->file = (chiplm_span){.at = bytes, .bytes = size};
    image->config = spans[CONF];
    image->table = spans[TENS];
    image->rope = spans[ROPE];
    image->tokenizer = spans[TOKN];
    image->golden = spans[GOLD];
    image->data = spans[DATA];
    status = chiplm_check_tensors(image, fault);
    if (status == CHIPLM_OK) {
        status = chiplm_check_rope(image, fault);
    }
    if (status == CHIPLM_OK) {
        status = chiplm_check_tokenizer(image, fault);
    }
    if (status == CHIPLM_OK) {
        status = chiplm_check_golden(image, fault);
    }
    return status;
}

chiplm_status chiplm_image_open(chiplm_image *image, const void *bytes, size_t size, chiplm_fault *fault) {
    if (fault != NULL) {
        memset(fault, 0, sizeof *fault);
    }
    if (image == NULL) {
        return chiplm_fail(fault, CHIPLM_ERR_ARGUMENT, "image", 0, 0);
    }
    memset(image, 0, sizeof *image);
    if (bytes == NULL) {
        return chiplm_fail(fault, CHIPLM_ERR_ARGUMENT, "bytes", 0, 0);
    }
    if ((uintptr_t)bytes % 64 != 0) {
        return chiplm_fail(fault, CHIPLM_ERR_ALIGNMENT, "bytes", (uintptr_t)bytes % 64, 0);
    }
    const chiplm_status status = open_image(image, bytes, size, fault);
    if (status != CHIPLM_OK) {
        memset(image, 0, sizeof *image);
    }
    return status;
}
