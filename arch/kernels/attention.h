/* attention.h: causal attention with rotary positions (Su et al. 2021) on 8-bit queries, keys and values.
 *
 * A block of queries at a time meets all keys that one of them sees: its scores stay in a cache, and little of the
 * masked triangle is computed. The gradient computes the scores again from queries and keys; of the forward pass it
 * needs each query's largest score and sum.
 *
 * Products run on integer codes, held in floats or packed in words, which is exact in any order: training and exact
 * mode share this code. */

enum { EXACT_KEYS = 1024 }; /* 127*127*1024 < 2^24 */

/* Whole blocks: of positions, and as the stride of rows of a head. */
RULE int64_t padded(int64_t n) { return (n + SIDE - 1) / SIDE * SIDE; }

/* One head's queries, keys and values, in blocks [d, SIDE], codes or not, with a scale a position; the rest is scratch. */
struct head {
    int64_t seq, d, wide, quads; /* wide: padded(d); quads: words of d codes */
    int quant;
    float *q, *k, *v, *sq, *sk, *sv, *rq, *rk; /* rq, rk: 1 / root mean square */
    float *rows, *s, *o;                       /* values or keys [seq, wide]; scores [seq, SIDE]; results [d, SIDE] */
    float *g, *x, *y, *yr, *dk, *dv;           /* for the gradient alone */
    int32_t *qw, *kw, *start;                  /* queries and keys in words, blocks [quads, SIDE]; what their sums start at */
    int32_t *vw, *total;                       /* values in words [seq/4, wide]; sums of codes */
};

/* Cuts work into the parts of a head; returns the floats that takes. */
static int64_t head_in(float *work, int64_t seq, int64_t d, int quant, struct head *h) {
    int64_t n = padded(seq), wide = padded(d), quads = (d + 3) / 4, at = 0;
    *h = (struct head){.seq = seq, .d = d, .wide = wide, .quads = quads, .quant = quant};
    struct {
        float **part;
        int64_t size;
    } floats[] = {{&h->q, n * d},     {&h->k, n * d},       {&h->v, n * d},     {&h->rows, n * wide}, {&h->dk, n * wide},
                  {&h->dv, n * wide}, {&h->s, n * SIDE},    {&h->g, n * SIDE},  {&h->sq, n},          {&h->sk, n},
                  {&h->sv, n},        {&h->rq, n},          {&h->rk, n},        {&h->o, d * SIDE},    {&h->x, d * SIDE},
                  {&h->y, d * SIDE},  {&h->yr, wide * SIDE}};
    struct {
        int32_t **part;
        int64_t size;
    } words[] = {{&h->qw, n * quads}, {&h->kw, n * quads}, {&h->vw, n / 4 * wide}, {&h->start, n}, {&h->total, d * SIDE}};
    for (unsigned i = 0; i < sizeof floats / sizeof *floats; at += floats[i++].size) *floats[i].part = work + at;
    for (unsigned i = 0; i < sizeof words / sizeof *words; at += words[i++].size)
        *words[i].part = (int32_t *)(void *)(work + at);
    return at;
}

static int64_t attention_work(int64_t seq, int64_t d) {
    struct head h;
    return head_in(0, seq, d, 0, &h);
}

/* Asks for up to SIDE rows from row from of a head on, in a matrix x with parts times all heads side by side: no processor
 * foresees short pieces of long rows. */
RULE void fetch(const float *x, int parts, const struct head *h, int64_t heads, int64_t head, int64_t from) {
#if defined(__GNUC__)
    if (head == heads) return;
    x += from * parts * heads * h->d + head * h->d;
    for (int64_t r = from; r < h->seq && r < from + SIDE; r++)
        for (int p = 0; p < parts; p++, x += heads * h->d)
            for (int64_t i = 0; i < h->d; i += 16) __builtin_prefetch(x + i, 0, 2);
#else
    (void)x, (void)parts, (void)h, (void)heads, (void)head, (void)from;
#endif
}

/* Loads queries, keys and values out of rows x of qkv: normalised, rotated, quantised as asked. */
static void load_head(const struct head *h, const float *x, int64_t model, int norm, float eps, const float *co,
                      const float *si) {
    int64_t d = h->d;
    for (int64_t t = 0; t < h->seq; t += SIDE, x += SIDE * 3 * model, co += d / 2 * SIDE, si += d / 2 * SIDE) {
        float *part[] = {h->q + t * d, h->k + t * d, h->v + t * d}, *inv[] = {h->rq + t, h->rk + t};
        for (int i = 0; i < 3; i++) {
            rows_to_block(x + i * model, 3 * model, h->seq - t, d, part[i]);
            if (i == 2) continue;
            if (norm) norm_block(part[i], d, eps, inv[i]);
            rotate_block(part[i], d, norm ? inv[i] : 0, co, si);
        }
        if (!h->quant) continue;
        quantise_block(part[0], d, h->sq + t, WORDS ? h->qw + t * h->quads : 0, 0);
        quantise_block(part[1], d, h->sk + t, WORDS ? h->kw + t * h->quads : 0, h->start + t);
        quantise_block(part[2], d, h->sv + t, 0, 0);
    }
}

/* Loads rows of values as the product with weights reads them. */
SIMD_APART void load_values(const struct head *h) {
    int64_t d = h->d, wide = h->wide;
    for (int64_t t = 0; t < h->seq; t += SIDE) {
        float *rows = h->rows + t * wide;
        block_to_rows(h->v + t * d, 0, SIDE, d, rows, wide);
        if (!h->quant || !WORDS) continue;
        for (int r = 0; r < SIDE; r += 4)
            for (int64_t i = 0; i < d; i += SIMD_LANES) { /* past d the words are not read */
                vf four[4];
                for (int j = 0; j < 4; j++) four[j] = v_load(rows + (r + j) * wide + i) + v_all(0x1.8p23f + 128.0f);
                pack_words(four, 1, h->vw + (t + r) / 4 * wide + i);
            }
    }
}

/* The diagonal block: key j is seen by queries from j on. bias makes other scores small, keep their exp nothing. */
struct mask {
    float bias[SIDE][SIDE], keep[SIDE][SIDE];
};

static void make_mask(struct mask *m) {
    for (int j = 0; j < SIDE; j++)
        for (int r = 0; r < SIDE; r++) {
            m->bias[j][r] = r < j ? -HUGE_VALF : 0.0f;
            m->keep[j][r] = r < j ? 0.0f : 1.0f;
        }
}

/* Scores of the block of queries at from and the block of keys at t, and each query's largest; quant and own, on the
 * diagonal, are constants where this is called. */
SIMD_INLINE void score_block(const struct head *h, int64_t from, int64_t t, float c, int quant, int own,
                             const struct mask *mask, vf top[PARTS]) {
    int64_t d = h->d;
    for (int i = 0; i < SIDE; i += TALL) {
        float *s = h->s + (t + i) * SIDE;
        vf acc[TALL][PARTS];
        if (quant && WORDS)
            word_tile(TALL, h->quads, h->kw + t * h->quads + i, SIDE, h->qw + from * h->quads, h->start + t + i, acc);
        else
            side_tile(TALL, d, h->k + t * d + i, SIDE, h->q + from * d, acc);
        for (int v = 0; v < PARTS; v++) {
            vf sq = v_load(h->sq + from + v * SIMD_LANES);
            for (int j = 0; j < TALL; j++) {
                vf y = quant ? (acc[j][v] * (sq * v_all(h->sk[t + i + j]))) * v_all(c) : acc[j][v] * v_all(c);
                if (own) y = y + v_load(mask->bias[i + j] + v * SIMD_LANES);
                top[v] = v_max(y, top[v]);
                v_store(s + j * SIDE + v * SIMD_LANES, y);
            }
        }
    }
}

SIMD_INLINE void score_blocks(const struct head *h, int64_t from, float c, int quant, const struct mask *mask, float *max) {
    vf top[PARTS];
    for (int v = 0; v < PARTS; v++) top[v] = v_all(-HUGE_VALF);
    for (int64_t t = 0; t < from; t += SIDE) score_block(h, from, t, c, quant, 0, mask, top);
    score_block(h, from, from, c, quant, 1, mask, top);
    for (int v = 0; v < PARTS && max; v++) v_store(max + v * SIMD_LANES, top[v]);
}

/* s = scores of the block of queries at from, max = the largest of each unless NULL. */
SIMD_APART void scores(const struct head *h, int64_t from, float c, const struct mask *mask, float *max) {
    if (h->quant)
        score_blocks(h, from, c, 1, mask, max);
    else
        score_blocks(h, from, c, 0, mask, max);
}

/* s = exp(s - max) over eight keys; p: partial sums; m: largest of exp * sv. */
SIMD_INLINE void exp_eight(float *s, const float *keep, vf max, const float *sv, vf p[8], vf *m) {
    SIMD_UNROLL
    for (int j = 0; j < 8; j++) {
        vf a = v_exp(v_load(s + j * SIDE) - max);
        if (keep) a = a * v_load(keep + j * SIDE);
        p[j] = p[j] + a;
        *m = v_max(*m, a * v_all(sv[j]));
        v_store(s + j * SIDE, a);
    }
}

/* s = exp(s - max), their sum8, and the largest of each column times sv, which is of no use without quantisation. */
SIMD_APART void exp_columns(float *s, const float *sv, int64_t from, const struct mask *mask, const float *max, float *sum,
                            float *largest) {
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf p[8], m = v_all(0), top = v_load(max + v);
        for (int j = 0; j < 8; j++) p[j] = v_all(0);
        for (int64_t t = 0; t < from; t += 8) exp_eight(s + t * SIDE + v, 0, top, sv + t, p, &m);
        for (int j = 0; j < SIDE; j += 8)
            exp_eight(s + (from + j) * SIDE + v, mask->keep[j] + v, top, sv + from + j, p, &m);
        v_store(sum + v, v_join8(p));
        v_store(largest + v, m);
    }
}

/* s becomes codes of s * sv with the factors f, or words of them. */
SIMD_APART void quantise_weights(float *s, const float *sv, int64_t keys, const float *f) {
    int32_t *words = (int32_t *)(void *)s; /* a word replaces rows that were read */
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf by = v_load(f + v);
        for (int64_t t = 0; t < keys; t += 4) {
            vf four[4];
            float *x = s + t * SIDE + v;
            for (int j = 0; j < 4; j++) {
                four[j] = (v_load(x + j * SIDE) * v_all(sv[t + j])) * by + v_all(0x1.8p23f);
                if (!WORDS) v_store(x + j * SIDE, four[j] - v_all(0x1.8p23f));
            }
            if (WORDS) pack_words(four, 0, words + t / 4 * SIDE + v);
        }
    }
}

/* o[d, SIDE] = values weighed with s. Sums of codes may pass 2^24: then parts of them are exact, and int32 their sum. */
static void weigh_values(const struct head *h, int64_t keys) {
    int64_t d = h->d, wide = h->wide;
    if (h->quant && WORDS) {
        word_product(d, keys / 4, h->vw, wide, (const int32_t *)(const void *)h->s, h->o);
        return;
    }
    int64_t part = h->quant ? EXACT_KEYS : keys;
    for (int64_t t = 0; t < keys; t += part) {
        side_product(d, keys - t < part ? keys - t : part, h->rows + t * wide, wide, h->s + t * SIDE, h->o);
        if (keys <= part) return;
        for (int64_t i = 0; i < d * SIDE; i++) h->total[i] = (t > 0 ? h->total[i] : 0) + (int32_t)h->o[i];
    }
    for (int64_t i = 0; i < d * SIDE; i++) h->o[i] = (float)h->total[i];
}

/* o = (o * s) / sum, s may be NULL. */
SIMD_APART void divide_columns(float *o, int64_t d, const float *s, const float *sum) {
    for (int v = 0; v < SIDE; v += SIMD_LANES) {
        vf f = s ? v_load(s + v) : v_all(1.0f), by = v_load(sum + v);
        for (int64_t i = 0; i < d; i++) v_store(o + i * SIDE + v, (v_load(o + i * SIDE + v) * f) / by);
    }
}

static void attention(const float *qkv, int64_t seq, int64_t heads, int64_t d, const float *cosines,
                      const float *sines, float eps, float c, int32_t mode, int32_t norm, float *max, float *sum,
                      float *work, float *y) {
    int64_t model = heads * d;
    struct head h;
    struct mask mask;
    head_in(work, seq, d, mode != K_FLOAT, &h);
    make_mask(&mask);
    for (int64_t head = 0; head < heads; head++, max += padded(seq), sum += padded(seq)) {
        int64_t column = head * d;
        load_head(&h, qkv + column, model, norm, eps, cosines, sines);
        load_values(&h);
        for (int64_t from = 0; from < seq; from += SIDE) {
            float largest[SIDE], su[SIDE], f[SIDE], *total = sum + from;
            fetch(qkv, 3, &h, heads, head + 1, from);
            fetch(y, 1, &h, heads, head + 1, from);
            scores(&h, from, c, &mask, max + from);
            exp_columns(h.s, h.sv, from, &mask, max + from, total, largest);
            if (h.quant) {
                scales(largest, su, f);
                quantise_weights(h.s, h.sv, from + SIDE, f);
            }
            weigh_values(&h, from + SIDE);
            divide_columns(h.o, d, h.quant ? su : 0, total);
            block_to_rows(h.o, 0, seq - from, d, y + from * model + column, model);
        }
        /* exp and the largest of numbers may hide a NaN: without this, what diverged would not show. */
        int good = h.quant ? finite(h.sq, seq) && finite(h.sk, seq) && finite(h.sv, seq)
                           : finite(h.q, padded(seq) * d) && finite(h.k, padded(seq) * d);
        if (!good)
            for (int64_t t = 0; t < seq; t++) y[t * model + column] = NAN;
    }
}
