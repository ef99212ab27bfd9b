/* scales.h: reading the scales of a matrix. */

/* The scale at index of a tensor's scales, widened. */
CHIPLM_INLINE float scale_at(const chiplm_tensor *w, size_t index) {
    if (w->scale_type == CHIPLM_F32) {
        float s;
        memcpy(&s, w->scales.at + index * sizeof s, sizeof s);
        return s;
    }
    uint16_t h;
    memcpy(&h, w->scales.at + index * sizeof h, sizeof h);
    return chiplm_half(h);
}
