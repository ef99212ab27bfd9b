/* attention.h: causal attention with rotary positions (Su et al. 2021) on 8-bit queries, keys and values.
 *
 * Products run on integer codes held in floats, where BLAS is exact in any order, so training and exact mode share this
 * code. Rows are taken in blocks of 64, so that most of the masked triangle is never computed. */

enum { BLOCK = 64, EXACT_KEYS = 1024 }; /* 127*127*1024 < 2^24 */

/* y = rotate(x * r) for one head at one position. */
RULE void rotate(const float *x, float r, const float *co, const float *si, int64_t half, float *y) {
    for (int64_t i = 0; i < half; i++) {
        float a = x[i] * r, b = x[i + half] * r;
        y[i] = a * co[i] - b * si[i];
        y[i + half] = a * si[i] + b * co[i];
    }
}

/* Copies one head's queries, keys or values out of qkv: normalised, rotated, quantised as asked. */
RULE void load_head(const float *x, int64_t ld, int64_t seq, int64_t d, const float *co, const float *si, float eps,
                    int turn, int quant, float *y, float *s, float *inv) {
    for (int64_t t = 0; t < seq; t++, x += ld, y += d) {
        float tmp[1024]; /* d is at most 1024: checked when the graph is built */
        const float *from = x;
        if (turn) {
            float r = 1.0f;
            if (inv) inv[t] = r = 1.0f / sqrtf(rule_dot8(x, x, d) / (float)d + eps);
            rotate(x, r, co + t * (d / 2), si + t * (d / 2), d / 2, tmp);
            from = tmp;
        }
        if (quant)
            s[t] = rule_quantise_vector(from, d, y);
        else
            memcpy(y, from, (size_t)d * sizeof *y);
    }
}

/* a[0..n) holds products of codes on entry and exp(score - max) on return; the result is their sum8. */
RULE float softmax_row(float *a, int64_t n, float sq, const float *sk, float c, int quant) {
    if (quant)
        for (int64_t t = 0; t < n; t++) a[t] = (a[t] * (sq * sk[t])) * c;
    else
        for (int64_t t = 0; t < n; t++) a[t] *= c;
    float max = rule_max(a, n);
    for (int64_t t = 0; t < n; t++) a[t] = rule_exp(a[t] - max);
    return rule_sum8(a, n);
}

/* o[m, d] = code[m, keys] v[keys, d], exact also where the sums pass 2^24 (as int32 then). */
static void weigh_values(const float *code, int64_t ldc, const float *v, int64_t m, int64_t keys, int64_t d, int quant,
                         float *o) {
    if (!quant || keys <= EXACT_KEYS) {
        gemm(0, 0, m, d, keys, code, ldc, v, d, 0, o, d);
        return;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t i = 0; i < d; i++) {
            int32_t sum = 0;
            for (int64_t t = 0; t < keys; t++) sum += (int32_t)code[r * ldc + t] * (int32_t)v[t * d + i];
            o[r * d + i] = (float)sum;
        }
}

static void attention(const float *qkv, int64_t batch, int64_t seq, int64_t heads, int64_t d, const float *cosines,
                 const float *sines, float eps, float c, int32_t mode, int32_t keep, float *q, float *k, float *v,
                 float *sq, float *sk, float *sv, float *rq, float *rk, float *prob, float *code, float *o, float *y) {
    int quant = mode != K_FLOAT;
    int64_t model = heads * d, ld = 3 * model;
    for (int64_t bh = 0; bh < batch * heads; bh++) {
        int64_t b = bh / heads, h = bh % heads, at = bh * seq;
        const float *x = qkv + b * seq * ld + h * d;
        float *qh = q + at * d, *kh = k + at * d, *vh = v + at * d;
        load_head(x, ld, seq, d, cosines, sines, eps, 1, quant, qh, sq + at, rq ? rq + at : 0);
        load_head(x + model, ld, seq, d, cosines, sines, eps, 1, quant, kh, sk + at, rk ? rk + at : 0);
        load_head(x + 2 * model, ld, seq, d, cosines, sines, eps, 0, quant, vh, sv + at, 0);
        float *ph = keep ? prob + at * seq : prob;
        for (int64_t r0 = 0; r0 < seq; r0 += BLOCK) {
            int64_t m = seq - r0 < BLOCK ? seq - r0 : BLOCK, keys = r0 + m;
            float *p = keep ? ph + r0 * seq : ph;
            float sum[BLOCK], su[BLOCK];
            gemm(0, 1, m, keys, d, qh + r0 * d, d, kh, d, 0, p, seq);
            for (int64_t r = 0; r < m; r++) {
                float *a = p + r * seq, *u = code + r * seq;
                int64_t n = r0 + r + 1;
                sum[r] = softmax_row(a, n, sq[at + r0 + r], sk + at, c, quant);
                if (quant) {
                    for (int64_t t = 0; t < n; t++) u[t] = a[t] * sv[at + t];
                    su[r] = rule_quantise_vector(u, n, u);
                } else {
                    memcpy(u, a, (size_t)n * sizeof *u);
                }
                memset(u + n, 0, (size_t)(keys - n) * sizeof *u);
                if (keep) { /* the gradient wants probabilities, and zeros in the masked corner of the block */
                    float f = 1.0f / sum[r];
                    for (int64_t t = 0; t < n; t++) a[t] *= f;
                    memset(a + n, 0, (size_t)(keys - n) * sizeof *a);
                }
            }
            weigh_values(code, seq, vh, m, keys, d, quant, o);
            for (int64_t r = 0; r < m; r++) {
                float *out = y + (b * seq + r0 + r) * model + h * d;
                for (int64_t i = 0; i < d; i++) out[i] = (quant ? o[r * d + i] * su[r] : o[r * d + i]) / sum[r];
            }
        }
        /* exp gives a number also for a NaN: without this, queries or keys that diverged would not show. */
        int64_t n = quant ? seq : seq * d;
        if (!finite(quant ? sq + at : qh, n) || !finite(quant ? sk + at : kh, n))
            for (int64_t t = 0; t < seq; t++) y[(b * seq + t) * model + h * d] = NAN;
    }
}

/* Undoes the rotation of the gradient dy and differentiates x * r, r = 1 / rms(x), when inv is given. */
RULE void rotate_back(const float *x, int64_t ld, const float *inv, const float *co, const float *si, int64_t seq,
                      int64_t d, const float *dy, float *dx) {
    int64_t half = d / 2;
    for (int64_t t = 0; t < seq; t++, x += ld, dx += ld, dy += d, co += half, si += half) {
        for (int64_t i = 0; i < half; i++) {
            dx[i] = dy[i] * co[i] + dy[i + half] * si[i];
            dx[i + half] = dy[i + half] * co[i] - dy[i] * si[i];
        }
        if (!inv) continue;
        float r = inv[t], k = rule_dot8(dx, x, d) * r * r / (float)d;
        for (int64_t i = 0; i < d; i++) dx[i] = r * (dx[i] - x[i] * k);
    }
}

RULE void dequantise(const float *code, const float *s, int64_t seq, int64_t d, float *y) {
    for (int64_t t = 0; t < seq; t++)
        for (int64_t i = 0; i < d; i++) y[t * d + i] = code[t * d + i] * s[t];
}

static void attention_grad(const float *qkv, const float *dy, int64_t batch, int64_t seq, int64_t heads, int64_t d,
                      const float *cosines, const float *sines, float c, int32_t mode, const float *q, const float *k,
                      const float *v, const float *sq, const float *sk, const float *sv, const float *rq,
                      const float *rk, const float *prob, float *work, float *dqkv) {
    int64_t model = heads * d, ld = 3 * model, n = seq * d;
    float *qv = work, *kv = work + n, *vv = work + 2 * n, *dq = work + 3 * n, *dk = work + 4 * n, *ds = work + 5 * n;
    for (int64_t bh = 0; bh < batch * heads; bh++) {
        int64_t b = bh / heads, h = bh % heads, at = bh * seq;
        const float *x = qkv + b * seq * ld + h * d, *ph = prob + at * seq, *dyh = dy + b * seq * model + h * d;
        float *dx = dqkv + b * seq * ld + h * d;
        const float *qh = q + at * d, *kh = k + at * d, *vh = v + at * d;
        if (mode != K_FLOAT) {
            dequantise(qh, sq + at, seq, d, qv);
            dequantise(kh, sk + at, seq, d, kv);
            dequantise(vh, sv + at, seq, d, vv);
            qh = qv, kh = kv, vh = vv;
        }
        int64_t last = (seq - 1) / BLOCK * BLOCK; /* the last block sees every key: it starts the sums */
        for (int64_t r0 = last; r0 >= 0; r0 -= BLOCK) {
            int64_t m = seq - r0 < BLOCK ? seq - r0 : BLOCK, keys = r0 + m;
            const float *p = ph + r0 * seq, *dyr = dyh + r0 * model;
            int32_t add = r0 != last;
            gemm(1, 0, keys, d, m, p, seq, dyr, model, add, dx + 2 * model, ld);
            gemm(0, 1, m, keys, d, dyr, model, vh, d, 0, ds, seq);
            for (int64_t r = 0; r < m; r++) {
                const float *pr = p + r * seq;
                float *s = ds + r * seq;
                float delta = rule_dot8(pr, s, r0 + r + 1);
                for (int64_t t = 0; t < r0 + r + 1; t++) s[t] = pr[t] * (s[t] - delta) * c;
                memset(s + r0 + r + 1, 0, (size_t)(m - r - 1) * sizeof *s);
            }
            gemm(0, 0, m, d, keys, ds, seq, kh, d, 0, dq + r0 * d, d);
            gemm(1, 0, keys, d, m, ds, seq, qh + r0 * d, d, add, dk, d);
        }
        rotate_back(x, ld, rq ? rq + at : 0, cosines, sines, seq, d, dq, dx);
        rotate_back(x + model, ld, rk ? rk + at : 0, cosines, sines, seq, d, dk, dx + model);
    }
}
