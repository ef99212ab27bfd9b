/* product_avx512.h: products with the instruction of AVX-512 VNNI that adds four products of unsigned and signed bytes to
 * each of sixteen sums. The layout is in product_sheet.h. */

enum { PLANES = 1, MOST = 6, FEW = 4 };

#include "product_sheet.h"

/* sums + the four products in each lane. Written by hand, since gcc copies the sums before its own form. */
CHIPLM_INLINE void add_products(__m512i *sums, __m512i weights, __m512i inputs) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(weights), "v"(inputs));
}

CHIPLM_INLINE __m512i broadcast_quad(const int8_t *x) {
    int32_t quad;
    memcpy(&quad, x, sizeof quad);
    return _mm512_set1_epi32(quad);
}

CHIPLM_INLINE __m128i load16(const uint8_t *at) { return _mm_loadu_si128((const __m128i *)(const void *)at); }

/* Takes 16 bytes of each of 16 rows: those of rows i, i + 4, i + 8 and i + 12 to v[i]. apart is constant where this is
 * called. */
CHIPLM_INLINE void load_rows(bool apart, const lane_rows *rows, size_t at, __m512i v[4]) {
    for (size_t i = 0; i < 4; i++) {
        v[i] = _mm512_castsi128_si512(load16(row_at(apart, rows, i) + at));
        v[i] = _mm512_inserti32x4(v[i], load16(row_at(apart, rows, i + 4) + at), 1);
        v[i] = _mm512_inserti32x4(v[i], load16(row_at(apart, rows, i + 8) + at), 2);
        v[i] = _mm512_inserti32x4(v[i], load16(row_at(apart, rows, i + 12) + at), 3);
    }
}

/* The same: out[d] holds word d of row r in lane r. */
CHIPLM_INLINE void gather(bool apart, const lane_rows *rows, size_t at, __m512i out[4]) {
    __m512i v[4];
    load_rows(apart, rows, at, v);
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
    const __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
    const __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d);
    out[3] = _mm512_unpackhi_epi64(b, d);
}

/* (v & mask) ^ flip: a field of each byte as code + offset. */
CHIPLM_INLINE __m512i field(__m512i v, __m512i mask, __m512i flip) {
    return _mm512_ternarylogic_epi32(v, mask, flip, 0x6a);
}

static void turn(const lane_rows *rows, uint32_t groups, float *to) {
    const float *from = (const float *)(const void *)rows->first;
    if (groups == 1 && !rows->apart) {
        _mm512_storeu_ps(to, _mm512_loadu_ps(from));
        return;
    }
    if (groups == 2 && !rows->apart) {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512 a = _mm512_loadu_ps(from);
        const __m512 b = _mm512_loadu_ps(from + LANES);
        _mm512_storeu_ps(to, _mm512_permutex2var_ps(a, even, b));
        _mm512_storeu_ps(to + LANES, _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b));
        return;
    }
    for (uint32_t g = 0; g < groups; g += QUAD) {
        __m512i v[4];
        if (rows->apart) {
            gather(true, rows, g * sizeof(float), v);
        } else {
            gather(false, rows, g * sizeof(float), v);
        }
        for (size_t i = 0; i < 4; i++) {
            _mm512_storeu_si512(to + (g + i) * LANES, v[i]);
        }
    }
}

/* Unpacks blocks of 16 bytes of each row to a strip. */
CHIPLM_INLINE void unpack_strip_of(uint32_t bits, bool apart, const lane_rows *rows, size_t bytes, uint8_t *out,
                                   size_t plane) {
    (void)plane;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const __m512i flip = _mm512_set1_epi8((char)(1 << (bits - 1)));
    for (size_t at = 0; at < bytes; at += 16) {
        __m512i v[4];
        gather(apart, rows, at, v);
        for (uint32_t f = 0; f < 8 / bits; f++) {
            for (int d = 0; d < 4; d++, out += 64) {
                _mm512_storeu_si512(out, field(_mm512_srli_epi32(v[d], f * bits), mask, flip));
            }
        }
    }
}

/* Unpacks blocks of rows of columns, which start at the offsets given and are quads, to strips. */
CHIPLM_INLINE void unpack_columns_of(uint32_t bits, const uint8_t *codes, uint32_t blocks, const size_t *columns,
                                     uint32_t quads, uint8_t *out, size_t strip, size_t plane) {
    (void)plane;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const __m512i flip = _mm512_set1_epi8((char)(1 << (bits - 1)));
    const __m512i words = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    for (uint32_t q = 0; q < quads; q++, columns += QUAD, out += 64) {
        uint8_t *to = out;
        for (size_t at = 0; at < (size_t)blocks * 16; at += 16) {
            __m512i v = _mm512_castsi128_si512(load16(codes + columns[0] + at));
            v = _mm512_inserti32x4(v, load16(codes + columns[1] + at), 1);
            v = _mm512_inserti32x4(v, load16(codes + columns[2] + at), 2);
            v = _mm512_inserti32x4(v, load16(codes + columns[3] + at), 3);
            v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, v), bytes); /* four words, then four bytes of a row */
            for (uint32_t f = 0; f < 8 / bits; f++, to += strip) {
                _mm512_storeu_si512(to, field(_mm512_srli_epi32(v, f * bits), mask, flip));
            }
        }
    }
}

/* Sums of products over the quads from..to, for inputs and strips that are constants where this is called, so that the
 * sums stay in registers. */
CHIPLM_INLINE void sum_quads(uint32_t inputs, uint32_t strips, const uint8_t *codes, size_t strip, const int8_t *const *x,
                             uint32_t from, uint32_t to, const int32_t *starts, size_t groups, int32_t *out) {
    __m512i sums[MOST][STRIPS];
    for (uint32_t i = 0; i < inputs; i++) {
        for (uint32_t s = 0; s < strips; s++) {
            sums[i][s] = _mm512_set1_epi32(starts[i * groups]);
        }
    }
    for (size_t q = from; q < to; q++) {
        __m512i c[STRIPS];
        for (uint32_t s = 0; s < strips; s++) {
            c[s] = _mm512_loadu_si512(codes + s * strip + q * 64);
        }
        for (uint32_t i = 0; i < inputs; i++) {
            const __m512i four = broadcast_quad(x[i] + q * QUAD);
            for (uint32_t s = 0; s < strips; s++) {
                add_products(&sums[i][s], c[s], four);
            }
        }
    }
    for (uint32_t i = 0; i < inputs; i++) {
        for (uint32_t s = 0; s < strips; s++) {
            _mm512_storeu_si512(out + (i * strips + s) * LANES, sums[i][s]);
        }
    }
}

/* Strips times inputs at .. at + inputs, to the places `to`. */
CHIPLM_INLINE void tile(uint32_t inputs, uint32_t strips, const work *k, const uint8_t *codes, const float *scales,
                        uint32_t at, float *const *to) {
    _Alignas(64) int32_t sums[MOST * STRIPS * LANES];
    _Alignas(64) float totals[MOST * STRIPS * LANES];
    const int8_t *x[MOST];
    for (uint32_t i = 0; i < inputs; i++) {
        x[i] = input(k, at + i);
    }
    for (uint32_t j = 0; j < inputs * strips; j++) {
        _mm512_store_ps(totals + j * LANES, _mm512_setzero_ps());
    }
    for (uint32_t g = 0, from = 0; g < k->groups; from = k->ends[g++]) {
        sum_quads(inputs, strips, codes, k->strip, x, from, k->ends[g], k->starts + (size_t)at * k->groups + g, k->groups,
                  sums);
        for (uint32_t s = 0; s < strips; s++) {
            const __m512 scale = _mm512_loadu_ps(scales + s * k->scale_strip + g * LANES);
            for (uint32_t i = 0; i < inputs; i++) {
                const uint32_t j = (i * strips + s) * LANES;
                const __m512 part = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + j)), scale);
                _mm512_store_ps(totals + j, _mm512_add_ps(_mm512_load_ps(totals + j), part));
            }
        }
    }
    for (uint32_t i = 0; i < inputs; i++) {
        const __m512 scale = _mm512_set1_ps(k->p->x.scales[k->p->which[at + i]]);
        for (uint32_t s = 0; s < strips; s++) {
            _mm512_storeu_ps(to[i] + s * LANES, _mm512_mul_ps(_mm512_load_ps(totals + (i * strips + s) * LANES), scale));
        }
    }
}

/* A strip of rows times a few inputs: the codes are unpacked in registers. The fields of a block that stand for the second
 * sixteen columns of a unit stay where they are in their bytes: their products are summed apart, and shifted at the end.
 * A unit is 32 columns, or the 16 of a block of 8-bit codes. */
CHIPLM_INLINE void few(uint32_t inputs, uint32_t bits, const work *k, const lane_rows *rows, float *const *to) {
    const uint32_t unit = bits == 8 ? 16 : 32;
    const __m512i low_mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const __m512i low_flip = _mm512_set1_epi8((char)(1 << (bits - 1)));
    const __m512i high_mask = _mm512_slli_epi32(low_mask, bits & 7);
    const __m512i high_flip = _mm512_slli_epi32(low_flip, bits & 7);
    const int8_t *x[FEW];
    __m512 total[FEW];
    for (uint32_t i = 0; i < inputs; i++) {
        x[i] = input(k, i);
        total[i] = _mm512_setzero_ps();
    }
    for (uint32_t g = 0, column = 0; g < k->groups; g++) {
        __m512i low[FEW], high[FEW];
        for (uint32_t i = 0; i < inputs; i++) {
            low[i] = _mm512_set1_epi32(k->starts[(size_t)i * k->groups + g]);
            high[i] = _mm512_setzero_si512();
        }
        for (const uint32_t end = k->ends[g] * QUAD; column < end; column += unit) {
            __m512i v[4];
            gather(false, rows, column / (128 / bits) * 16, v);
            for (uint32_t d = 0; d < 4; d++) {
                const __m512i word = bits == 2 ? _mm512_srli_epi32(v[d], column % 64 / 8) : v[d];
                const __m512i first = field(word, low_mask, low_flip);
                for (uint32_t i = 0; i < inputs; i++) {
                    add_products(&low[i], first, broadcast_quad(x[i] + column + QUAD * d));
                }
                if (bits < 8) {
                    const __m512i second = field(word, high_mask, high_flip);
                    for (uint32_t i = 0; i < inputs; i++) {
                        add_products(&high[i], second, broadcast_quad(x[i] + column + 16 + QUAD * d));
                    }
                }
            }
        }
        const __m512 scale = _mm512_loadu_ps(k->scales + g * LANES);
        for (uint32_t i = 0; i < inputs; i++) {
            const __m512i sum = bits < 8 ? _mm512_add_epi32(low[i], _mm512_srai_epi32(high[i], bits)) : low[i];
            total[i] = _mm512_add_ps(total[i], _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
        }
    }
    for (uint32_t i = 0; i < inputs; i++) {
        _mm512_storeu_ps(to[i], _mm512_mul_ps(total[i], _mm512_set1_ps(k->p->x.scales[k->p->which[i]])));
    }
}

static void run_tile(uint32_t inputs, bool whole, const work *k, const uint8_t *codes, const float *scales, uint32_t at,
                     float *const *to) {
    switch (whole ? inputs : inputs + MOST) {
    case 1:
        tile(1, STRIPS, k, codes, scales, at, to);
        break;
    case 2:
        tile(2, STRIPS, k, codes, scales, at, to);
        break;
    case 3:
        tile(3, STRIPS, k, codes, scales, at, to);
        break;
    case 4:
        tile(4, STRIPS, k, codes, scales, at, to);
        break;
    case 5:
        tile(5, STRIPS, k, codes, scales, at, to);
        break;
    case 6:
        tile(6, STRIPS, k, codes, scales, at, to);
        break;
    default:
        for (uint32_t i = 0; i < inputs; i++) {
            tile(1, 1, k, codes, scales, at + i, to + i);
        }
        break;
    }
}

#include "product_x86.h"
