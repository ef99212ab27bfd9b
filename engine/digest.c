/* The digest of a run: FNV-1a-64 over position, id and the bits of the logits, little endian. */
#include "chiplm.h"
#include "numerics.h"

static uint64_t add32(uint64_t digest, uint32_t value) {
    for (uint32_t shift = 0; shift < 32; shift += 8) {
        digest = (digest ^ ((value >> shift) & 255U)) * 0x100000001b3ULL;
    }
    return digest;
}

uint64_t chiplm_digest_start(void) { return 0xcbf29ce484222325ULL; }

uint64_t chiplm_digest_add_choice(uint64_t digest, int32_t id, float logit) {
    return add32(add32(digest, (uint32_t)id), chiplm_bits(logit));
}

uint64_t chiplm_digest_add(uint64_t digest, uint32_t position, int32_t id, const float *logits, uint32_t n) {
    digest = add32(digest, position);
    digest = add32(digest, (uint32_t)id);
    for (uint32_t i = 0; i < n; i++) {
        digest = add32(digest, chiplm_bits(logits[i]));
    }
    return digest;
}
