/* vectors.h: floats a step at a time, for the loops that are written in vectors: 16 with AVX-512, 8 with AVX2, 4 with NEON.
 * Vectors are added and multiplied by the operators of C. Each operation is that of docs/numerics.md in every lane, and none
 * is fused or reordered.
 *
 *   v_load_first, v_store_first   the first n lanes, n < STEP; the others are 0, or left alone
 *   v_keep_first                  the first n lanes of one vector, the others of another
 *   v_larger, v_smaller           a > b ? a : b, a < b ? a : b
 *   v_ints, v_codes               integers of 32 and of 8 bits as floats
 *   v_power                       2^n of whole numbers n, -126 to 127
 *   v_store_codes                 whole numbers in the first n <= STEP lanes, as 8-bit integers
 *   v_most                        the largest lane; lanes are either all NaN or none is
 *   top_of, top_most              the larger of lanes and the bits of abs(v); the largest lane
 *   eight_add, eight_join         adds the values of index i on to the partial sums of sum8; their sum
 *   v_where_positive              v where g > 0, else 0
 *   chunk_sum                     the sum of CHIPLM_CHUNK codes */

#if CHIPLM_PATH == CHIPLM_AVX512
enum { STEP = 16, SIDE_BY_SIDE = 4 };
typedef __m512 vf;
typedef __m512i vi;
typedef __m256 eight;

CHIPLM_INLINE __mmask16 first_lanes(size_t n) { return (__mmask16)((1U << n) - 1U); }

CHIPLM_INLINE vf v_set(float x) { return _mm512_set1_ps(x); }
CHIPLM_INLINE vf v_load(const float *at) { return _mm512_loadu_ps(at); }
CHIPLM_INLINE vf v_load_first(const float *at, size_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), at); }
CHIPLM_INLINE void v_store(float *at, vf v) { _mm512_storeu_ps(at, v); }
CHIPLM_INLINE void v_store_first(float *at, size_t n, vf v) { _mm512_mask_storeu_ps(at, first_lanes(n), v); }
CHIPLM_INLINE vf v_keep_first(vf v, size_t n, vf others) { return _mm512_mask_blend_ps(first_lanes(n), others, v); }
CHIPLM_INLINE vf v_larger(vf a, vf b) { return _mm512_max_ps(a, b); }
CHIPLM_INLINE vf v_smaller(vf a, vf b) { return _mm512_min_ps(a, b); }
CHIPLM_INLINE vf v_where_positive(vf g, vf v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_GT_OQ), v);
}
CHIPLM_INLINE vf v_ints(const int32_t *at) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(at)); }
CHIPLM_INLINE vf v_codes(const int8_t *at) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at)));
}

CHIPLM_INLINE vf v_power(vf n) {
    const vi exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
}

CHIPLM_INLINE void v_store_codes(int8_t *at, size_t n, vf v) {
    const __m128i codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
    if (n == STEP) {
        _mm_storeu_si128((__m128i *)(void *)at, codes);
    } else {
        _mm_mask_storeu_epi8(at, first_lanes(n), codes);
    }
}

CHIPLM_INLINE float v_most(vf v) { return _mm512_reduce_max_ps(v); }

CHIPLM_INLINE vi top_zero(void) { return _mm512_setzero_si512(); }
CHIPLM_INLINE vi top_of(vi top, vf v) {
    return _mm512_max_epi32(top, _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MAX)));
}
CHIPLM_INLINE int32_t top_most(vi top) { return _mm512_reduce_max_epi32(top); }

CHIPLM_INLINE eight eight_zero(void) { return _mm256_setzero_ps(); }
CHIPLM_INLINE eight eight_add(eight p, vf v, size_t i) {
    (void)i;
    return (p + _mm512_castps512_ps256(v)) + _mm512_extractf32x8_ps(v, 1);
}

#elif CHIPLM_PATH == CHIPLM_AVX2
enum { STEP = 8, SIDE_BY_SIDE = 4 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 eight;

CHIPLM_INLINE vi first_lanes(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

CHIPLM_INLINE vf v_set(float x) { return _mm256_set1_ps(x); }
CHIPLM_INLINE vf v_load(const float *at) { return _mm256_loadu_ps(at); }
CHIPLM_INLINE vf v_load_first(const float *at, size_t n) { return _mm256_maskload_ps(at, first_lanes(n)); }
CHIPLM_INLINE void v_store(float *at, vf v) { _mm256_storeu_ps(at, v); }
CHIPLM_INLINE void v_store_first(float *at, size_t n, vf v) { _mm256_maskstore_ps(at, first_lanes(n), v); }
CHIPLM_INLINE vf v_keep_first(vf v, size_t n, vf others) {
    return _mm256_blendv_ps(others, v, _mm256_castsi256_ps(first_lanes(n)));
}
CHIPLM_INLINE vf v_larger(vf a, vf b) { return _mm256_max_ps(a, b); }
CHIPLM_INLINE vf v_smaller(vf a, vf b) { return _mm256_min_ps(a, b); }
CHIPLM_INLINE vf v_where_positive(vf g, vf v) {
    return _mm256_and_ps(_mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_GT_OQ), v);
}
CHIPLM_INLINE vf v_ints(const int32_t *at) {
    return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}
CHIPLM_INLINE vf v_codes(const int8_t *at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}

CHIPLM_INLINE vf v_power(vf n) {
    const vi exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}

CHIPLM_INLINE void v_store_codes(int8_t *at, size_t n, vf v) {
    const vi whole = _mm256_cvtps_epi32(v);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    const int64_t bytes = _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
    if (n == STEP) {
        memcpy(at, &bytes, STEP);
    } else {
        memcpy(at, &bytes, n);
    }
}

CHIPLM_INLINE float v_most(vf v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

CHIPLM_INLINE vi top_zero(void) { return _mm256_setzero_si256(); }
CHIPLM_INLINE vi top_of(vi top, vf v) {
    return _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MAX)));
}
CHIPLM_INLINE int32_t top_most(vi top) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}

CHIPLM_INLINE eight eight_zero(void) { return _mm256_setzero_ps(); }
CHIPLM_INLINE eight eight_add(eight p, vf v, size_t i) {
    (void)i;
    return p + v;
}

#elif CHIPLM_PATH == CHIPLM_NEON
enum { STEP = 4, SIDE_BY_SIDE = 4 };
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef struct eight {
    float32x4_t low, high;
} eight;

CHIPLM_INLINE vf v_set(float x) { return vdupq_n_f32(x); }
CHIPLM_INLINE vf v_load(const float *at) { return vld1q_f32(at); }
CHIPLM_INLINE vf v_load_first(const float *at, size_t n) {
    float lanes[STEP] = {0};
    memcpy(lanes, at, n * sizeof *at);
    return vld1q_f32(lanes);
}
CHIPLM_INLINE void v_store(float *at, vf v) { vst1q_f32(at, v); }
CHIPLM_INLINE void v_store_first(float *at, size_t n, vf v) {
    float lanes[STEP];
    vst1q_f32(lanes, v);
    memcpy(at, lanes, n * sizeof *at);
}
CHIPLM_INLINE vf v_keep_first(vf v, size_t n, vf others) {
    static const uint32_t index[STEP] = {0, 1, 2, 3};
    return vbslq_f32(vcltq_u32(vld1q_u32(index), vdupq_n_u32((uint32_t)n)), v, others);
}
CHIPLM_INLINE vf v_larger(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
CHIPLM_INLINE vf v_smaller(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
CHIPLM_INLINE vf v_where_positive(vf g, vf v) { return vbslq_f32(vcgtq_f32(g, vdupq_n_f32(0)), v, vdupq_n_f32(0)); }
CHIPLM_INLINE vf v_ints(const int32_t *at) { return vcvtq_f32_s32(vld1q_s32(at)); }
CHIPLM_INLINE vf v_codes(const int8_t *at) {
    int8_t lanes[8] = {0};
    memcpy(lanes, at, STEP);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(lanes)))));
}

CHIPLM_INLINE vf v_power(vf n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}

CHIPLM_INLINE void v_store_codes(int8_t *at, size_t n, vf v) {
    const int16x4_t words = vmovn_s32(vcvtq_s32_f32(v));
    int8_t lanes[8];
    vst1_s8(lanes, vmovn_s16(vcombine_s16(words, words)));
    if (n == STEP) {
        memcpy(at, lanes, STEP);
    } else {
        memcpy(at, lanes, n);
    }
}

CHIPLM_INLINE float v_most(vf v) { return vmaxvq_f32(v); }

CHIPLM_INLINE vi top_zero(void) { return vdupq_n_s32(0); }
CHIPLM_INLINE vi top_of(vi top, vf v) {
    return vmaxq_s32(top, vandq_s32(vreinterpretq_s32_f32(v), vdupq_n_s32(INT32_MAX)));
}
CHIPLM_INLINE int32_t top_most(vi top) { return vmaxvq_s32(top); }

CHIPLM_INLINE eight eight_zero(void) { return (eight){vdupq_n_f32(0), vdupq_n_f32(0)}; }
CHIPLM_INLINE eight eight_add(eight p, vf v, size_t i) {
    if (i % 8 == 0) {
        p.low = p.low + v;
    } else {
        p.high = p.high + v;
    }
    return p;
}

CHIPLM_INLINE int32_t chunk_sum(const int8_t *codes) {
    return vaddvq_s32(vpaddlq_s16(vaddq_s16(vpaddlq_s8(vld1q_s8(codes)), vpaddlq_s8(vld1q_s8(codes + 16)))));
}
#endif

#if CHIPLM_PATH == CHIPLM_AVX2 || CHIPLM_PATH == CHIPLM_AVX512
/* Sums of unsigned bytes, code + 128, have an instruction. */
CHIPLM_INLINE int32_t chunk_sum(const int8_t *codes) {
    const __m256i bytes = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)codes), _mm256_set1_epi8(-128));
    const __m256i sums = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_cvtsi128_si32(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))) - 128 * CHIPLM_CHUNK;
}
#endif

/* What all have in common. */

CHIPLM_INLINE float eight_join(eight p) {
    float lanes[8];
    memcpy(lanes, &p, sizeof lanes);
    return chiplm_join8(lanes);
}

/* The first n lanes, all if there are more. */
CHIPLM_INLINE vf v_load_upto(const float *at, size_t n) { return n < STEP ? v_load_first(at, n) : v_load(at); }

CHIPLM_INLINE void v_store_upto(float *at, size_t n, vf v) {
    if (n < STEP) {
        v_store_first(at, n, v);
    } else {
        v_store(at, v);
    }
}

CHIPLM_INLINE vf v_rne(vf t) { return (t + v_set(0x1.8p23f)) - v_set(0x1.8p23f); }

/* exp of so many vectors, a constant where this is called: side by side, since each is one long chain of operations. */
CHIPLM_INLINE void v_exps(size_t many, vf *x) {
    static const float factors[] = {0x1.6c16c2p-10f, 0x1.111112p-7f, 0x1.555556p-5f, 0x1.555556p-3f, 0.5f, 1.0f, 1.0f};
    vf n[SIDE_BY_SIDE], r[SIDE_BY_SIDE], p[SIDE_BY_SIDE];
    for (size_t i = 0; i < many; i++) {
        x[i] = v_smaller(v_larger(x[i], v_set(-86.0f)), v_set(86.0f));
    }
    for (size_t i = 0; i < many; i++) {
        n[i] = v_rne(x[i] * v_set(0x1.715476p+0f));
    }
    for (size_t i = 0; i < many; i++) {
        r[i] = (x[i] - n[i] * v_set(0x1.63p-1f)) - n[i] * v_set(-0x1.bd0106p-13f);
        p[i] = v_set(0x1.a01a02p-13f);
    }
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        for (size_t i = 0; i < many; i++) {
            p[i] = p[i] * r[i] + v_set(factors[k]);
        }
    }
    for (size_t i = 0; i < many; i++) {
        x[i] = p[i] * v_power(n[i]);
    }
}

CHIPLM_INLINE vf v_exp(vf x) {
    v_exps(1, &x);
    return x;
}

CHIPLM_INLINE vf v_sigmoid(vf x) { return v_set(1.0f) / (v_set(1.0f) + v_exp(-x)); }

CHIPLM_INLINE vf v_gelu(vf x) {
    const vf z = (x * v_set(0x1.988454p+0f)) * (v_set(1.0f) + (x * x) * v_set(0x1.6e4e26p-5f));
    return x * v_sigmoid(z);
}

/* Codes before they are made integers: chiplm_code. */
CHIPLM_INLINE vf v_code(vf x, float inverse) {
    return v_smaller(v_larger(v_rne(x * v_set(inverse)), v_set(-127.0f)), v_set(127.0f));
}
