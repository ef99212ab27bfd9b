/* attention_grad.h: the gradient of attention.h, straight through its quantisation. It computes the scores again: that
 * takes less time than to store and load probabilities. */

/* g = gradient of x * r, r = 1 / root mean square, before the rotation; g is that after it. inv may be NULL. */
SIMD_APART void rotate_back(float *g, int64_t d, const float *x, const float *inv, const float *co, const float *si) {
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        float *lo = g + v, *hi = g + d / 2 * SIDE + v;
        for (int64_t i = 0; i < d / 2 * SIDE; i += SIDE) {
            vf a = v_load(lo + i), b = v_load(hi + i), c = v_load(co + i + v), s = v_load(si + i + v);
            v_store(lo + i, a * c + b * s);
            v_store(hi + i, b * c - a * s);
        }
        if (!inv) continue;
        vf r = v_load(inv + v), k = dot_columns(g + v, x + v, d) * r * r / v_all((float)d);
        for (int64_t i = 0; i < d * SIDE; i += SIDE) v_store(lo + i, r * (v_load(lo + i) - v_load(x + i + v) * k));
    }
}

/* Turns the gradient h.o of a block of queries or keys into that of x, rows they were made of, and stores it in dx. */
static void store_grad(const struct head *h, int64_t from, const float *inv, const float *co, const float *si, const float *x,
                       int64_t ld, float *dx) {
    int64_t at = from * h->d / 2, n = h->seq - from;
    if (inv) rows_to_block(x + from * ld, ld, n, h->d, h->x);
    rotate_back(h->o, h->d, h->x, inv ? inv + from : 0, co + at, si + at);
    block_to_rows(h->o, 0, n, h->d, dx + from * ld, ld);
}

/* s = probabilities from scores of four keys, g = their gradients from the products of values (or codes) and dy. */
SIMD_INLINE void grad_four(float *s, float *g, const float *keep, const float *sv, vf max, vf f, vf delta[4]) {
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
        vf p = v_exp(v_load(s + j * SIDE) - max), dp = v_load(g + j * SIDE) * v_all(sv[j]);
        if (keep) p = p * v_load(keep + j * SIDE); /* before f, which makes what is masked subnormal */
        p = p * f;
        delta[j] = delta[j] + p * dp;
        v_store(s + j * SIDE, p);
        v_store(g + j * SIDE, dp);
    }
}

/* s = probabilities from scores, g = gradients of the scores before they were scaled by c, from products of values (or
 * codes) and dy. */
SIMD_APART void softmax_grad(float *s, float *g, const float *sv, int64_t from, float c, const struct mask *mask,
                             const float *max, const float *sum) {
    for (int v = 0; v < SIDE; v += SIMD_LANES, s += SIMD_LANES, g += SIMD_LANES) {
        vf delta[4], top = v_load(max + v), f = v_all(1.0f) / v_load(sum + v);
        for (int j = 0; j < 4; j++) delta[j] = v_all(0);
        for (int64_t t = 0; t < from; t += 4) grad_four(s + t * SIDE, g + t * SIDE, 0, sv + t, top, f, delta);
        for (int64_t t = from; t < from + SIDE; t += 4)
            grad_four(s + t * SIDE, g + t * SIDE, mask->keep[t - from] + v, sv + t, top, f, delta);
        vf all = (delta[0] + delta[1]) + (delta[2] + delta[3]);
        for (int64_t t = 0; t < (from + SIDE) * SIDE; t += SIDE)
            v_store(g + t, v_load(s + t) * (v_load(g + t) - all) * v_all(c));
    }
}

static void attention_grad(const float *qkv, const float *dy, int64_t seq, int64_t heads, int64_t d,
                           const float *cosines, const float *sines, float eps, float c, int32_t mode, int32_t norm,
                           const float *max, const float *sum, float *work, float *dqkv) {
    int64_t model = heads * d, ld = 3 * model, wide = padded(d);
    struct head h;
    struct mask mask;
    head_in(work, seq, d, mode != K_FLOAT, &h);
    make_mask(&mask);
    for (int64_t head = 0; head < heads; head++, max += padded(seq), sum += padded(seq)) {
        int64_t column = head * d;
        const float *x = qkv + column, *dyh = dy + column;
        float *dx = dqkv + column;
        for (int64_t t = 0; !h.quant && t < padded(seq); t++) h.sv[t] = 1.0f; /* values are no codes then */
        load_head(&h, x, model, norm, eps, cosines, sines);
        for (int64_t t = 0; t < seq; t += SIDE)
            block_to_rows(h.k + t * d, h.quant ? h.sk + t : 0, SIDE, d, h.rows + t * wide, wide);
        int64_t last = padded(seq) - SIDE; /* the last block sees every key: it starts the sums */
        for (int64_t from = last; from >= 0; from -= SIDE) {
            int64_t n = seq - from < SIDE ? seq - from : SIDE, keys = from + SIDE;
            int32_t add = from != last;
            fetch(qkv, 3, &h, heads, head + 1, from);
            fetch(dqkv, 3, &h, heads, head + 1, from);
            fetch(dy, 1, &h, heads, head + 1, from);
            scores(&h, from, c, &mask, 0);
            rows_to_block(dyh + from * model, model, n, d, h.y);
            for (int64_t t = 0; t < keys; t += SIDE) side_product(SIDE, d, h.v + t * d, SIDE, h.y, h.g + t * SIDE);
            softmax_grad(h.s, h.g, h.sv, from, c, &mask, max + from, sum + from);
            for (int64_t r = 0; r < n; r++) memcpy(h.yr + r * wide, dyh + (from + r) * model, (size_t)d * sizeof *dy);
            for (int64_t r = n; r < SIDE; r++) memset(h.yr + r * wide, 0, (size_t)d * sizeof *dy);
            outer_product(keys, h.s, h.yr, wide, h.dv, add);
            block_to_rows(h.q + from * d, h.quant ? h.sq + from : 0, SIDE, d, h.yr, wide);
            outer_product(keys, h.g, h.yr, wide, h.dk, add);
            side_product(d, keys, h.rows, wide, h.g, h.o);
            store_grad(&h, from, norm ? h.rq : 0, cosines, sines, x, ld, dx);
        }
        for (int64_t t = 0; t < seq; t++) memcpy(dx + t * ld + 2 * model, h.dv + t * wide, (size_t)d * sizeof *dx);
        for (int64_t from = 0; from < seq; from += SIDE) {
            rows_to_block(h.dk + from * wide, wide, seq - from, d, h.o);
            store_grad(&h, from, norm ? h.rk : 0, cosines, sines, x + model, ld, dx + model);
        }
    }
}
