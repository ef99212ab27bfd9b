/* neurons.h: which neurons speak at a position. Compilers turn these loops into vectors. */

static uint32_t mark_open(const float *gate, uint32_t n, uint8_t *marks) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t is_open = gate[i] > 0.0f ? 1 : 0;
        marks[i] |= is_open;
        open += is_open;
    }
    return open;
}

static uint32_t mark_used(const int8_t *codes, uint32_t n, uint8_t *marks) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t is_used = codes[i] != 0 ? 1 : 0;
        marks[i] |= is_used;
        used += is_used;
    }
    return used;
}
