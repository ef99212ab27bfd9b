/* What the checks of an image share: reading fields, reporting faults, and the tensors that a model implies. Internal. */
#ifndef CHIPLM_IMAGE_H
#define CHIPLM_IMAGE_H

#include "chiplm.h"

enum {
    CHIPLM_VERSION = 2,
    CHIPLM_HEADER_BYTES = 64,
    CHIPLM_ENTRY_BYTES = 32,   /* of the section table */
    CHIPLM_MODEL_BYTES = 192,  /* MODL */
    CHIPLM_TENSOR_BYTES = 128, /* of the tensor table */
    CHIPLM_MAX_LAYERS = 256,
    CHIPLM_MAX_EXPERTS = 1024,
    CHIPLM_MAX_CLUSTERS = 65536,
    CHIPLM_MAX_NGRAM_ROWS = 16777216,
};

uint16_t chiplm_get16(const uint8_t *p);
uint32_t chiplm_get32(const uint8_t *p);
uint64_t chiplm_get64(const uint8_t *p);
float chiplm_getf(const uint8_t *p);

/* CRC-32 (IEEE) of n more bytes after those whose CRC is crc; 0 starts. */
uint32_t chiplm_crc32(uint32_t crc, const uint8_t *p, size_t n);

/* Whether n bytes are all zero. */
bool chiplm_zero(const uint8_t *p, size_t n);

/* Fills fault and returns its status. */
chiplm_status chiplm_fail(chiplm_fault *fault, chiplm_status status, const char *where, uint64_t found,
                          uint64_t wanted);

/* The places of a model's tensors, in the order of the table. */
typedef enum chiplm_part {
    CHIPLM_ATTENTION_NORM,
    CHIPLM_QKV,
    CHIPLM_ATTENTION_OUTPUT,
    CHIPLM_FFN_NORM,
    CHIPLM_ROUTER,
    CHIPLM_GATE,
    CHIPLM_UP,
    CHIPLM_DOWN,
    CHIPLM_PLE_GATE,
    CHIPLM_PLE_OUTPUT,
    CHIPLM_PLE_NORM,
    CHIPLM_LAYER_PARTS, /* the number of them; what follows occurs once */
    CHIPLM_TOKEN_EMBEDDING = CHIPLM_LAYER_PARTS,
    CHIPLM_NGRAM_TABLE,
    CHIPLM_PLE_PROJECTION,
    CHIPLM_PLE_PROJECTION_NORM,
    CHIPLM_PLE_TABLE,
    CHIPLM_OUTPUT_NORM,
    CHIPLM_HEAD,
    CHIPLM_HEAD_ROTATION, /* these five with clusters alone */
    CHIPLM_HEAD_BOUNDS,
    CHIPLM_HEAD_BLOCKS_0,
    CHIPLM_HEAD_BLOCKS_1,
    CHIPLM_HEAD_ORDER,
    CHIPLM_PARTS,
} chiplm_part;

/* What a tensor holds. */
typedef enum chiplm_kind {
    CHIPLM_CODES,  /* quantised weights */
    CHIPLM_FLOATS, /* a norm or a router */
    CHIPLM_BYTES,  /* anything else: 8 bits without scales */
} chiplm_kind;

/* What the sizes of a model say about a tensor. */
typedef struct chiplm_expected {
    chiplm_part part;
    uint32_t layer;
    char name[48];
    uint32_t rows;
    uint32_t columns;
    chiplm_kind kind;
} chiplm_expected;

/* How many tensors a model has. */
uint32_t chiplm_count_tensors(const chiplm_model *model);

/* The tensor at index of a model whose sizes were checked. */
chiplm_expected chiplm_expect(const chiplm_model *model, uint32_t index);

/* Checks the tensor table and every tensor's bytes. */
chiplm_status chiplm_check_tensors(const chiplm_image *image, chiplm_fault *fault);

/* Check the sections of these names. */
chiplm_status chiplm_check_rope(const chiplm_image *image, chiplm_fault *fault);
chiplm_status chiplm_check_tokenizer(const chiplm_image *image, chiplm_fault *fault);
chiplm_status chiplm_check_golden(const chiplm_image *image, chiplm_fault *fault);

#endif
