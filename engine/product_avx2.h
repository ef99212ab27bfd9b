/* product_avx2.h: products with the instruction of AVX2 that multiplies unsigned by signed bytes and adds up pairs in 16
 * bits. Unpacked codes of 4 bits are at most 15, so that eight such pairs, of eight quads of columns, stay below 2^15:
 * 8 * 2 * 15 * 127 = 30,480. Codes of 8 bits count as two of 4: high and low halves are summed apart. The layout is in
 * product_sheet.h. */

enum { PLANES = 2, MOST = 4, FEW = 4, SHORT_QUADS = 8 };

#include "product_sheet.h"

CHIPLM_INLINE __m256i load32(const void *at) { return _mm256_loadu_si256(at); }

CHIPLM_INLINE __m256i broadcast_quad(const int8_t *x) {
    int32_t quad;
    memcpy(&quad, x, sizeof quad);
    return _mm256_set1_epi32(quad);
}

/* pairs + the products of neighbours in 16 bits. Written by hand, since gcc copies sums and keeps some in memory. */
CHIPLM_INLINE void add_products(__m256i *pairs, __m256i weights, __m256i inputs) {
    __m256i products;
    __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0" : "+x"(*pairs), "=&x"(products) : "x"(weights), "x"(inputs));
}

/* sums + the pairs in each lane of 32 bits. */
CHIPLM_INLINE __m256i add_pairs(__m256i sums, __m256i pairs) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

CHIPLM_INLINE __m128i load16(const uint8_t *at) { return _mm_loadu_si128((const __m128i *)(const void *)at); }

CHIPLM_INLINE __m256i load_two(const uint8_t *low, const uint8_t *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

/* Takes 16 bytes of each of 8 rows, from the half-th half of the rows: those of rows i and i + 4 to v[i]. apart is constant
 * where this is called. */
CHIPLM_INLINE void load_rows(bool apart, const lane_rows *rows, size_t half, size_t at, __m256i v[4]) {
    for (size_t i = 0; i < 4; i++) {
        v[i] = load_two(row_at(apart, rows, 8 * half + i) + at, row_at(apart, rows, 8 * half + i + 4) + at);
    }
}

/* The same: out[d] holds word d of row r in lane r. */
CHIPLM_INLINE void gather(bool apart, const lane_rows *rows, size_t half, size_t at, __m256i out[4]) {
    __m256i v[4];
    load_rows(apart, rows, half, at, v);
    const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]);
    const __m256i b = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]);
    const __m256i d = _mm256_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi64(a, c);
    out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d);
    out[3] = _mm256_unpackhi_epi64(b, d);
}

/* Field f of each byte; of codes of 8 bits the half f, the high one first. flipped has the sign bits of its codes turned, so
 * that fields are codes + offset. */
CHIPLM_INLINE __m256i field(uint32_t bits, __m256i flipped, uint32_t f) {
    const int shift = (int)(bits == 8 ? 4 - 4 * f : f * bits);
    return _mm256_and_si256(_mm256_srli_epi16(flipped, shift), _mm256_set1_epi8(bits == 2 ? 3 : 15));
}

CHIPLM_INLINE __m256i flip(uint32_t bits, __m256i v) {
    return _mm256_xor_si256(v, _mm256_set1_epi8((char)(bits == 2 ? 0xaa : bits == 4 ? 0x88 : 0x80)));
}

static void turn(const lane_rows *rows, uint32_t groups, float *to) {
    const float *from = (const float *)(const void *)rows->first;
    if (groups == 1 && !rows->apart) {
        memcpy(to, from, LANES * sizeof *to);
        return;
    }
    for (size_t half = 0; half < 2; half++, to += 8) {
        if (groups == 2 && !rows->apart) {
            const __m256 a = _mm256_loadu_ps(from + 16 * half);
            const __m256 b = _mm256_loadu_ps(from + 16 * half + 8);
            const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)); /* 0 2 8 10, 4 6 12 14 */
            const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
            _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute4x64_epi64(even, 0xd8));
            _mm256_storeu_si256((__m256i *)(void *)(to + LANES), _mm256_permute4x64_epi64(odd, 0xd8));
            continue;
        }
        for (uint32_t g = 0; g < groups; g += QUAD) {
            __m256i v[4];
            if (rows->apart) {
                gather(true, rows, half, g * sizeof(float), v);
            } else {
                gather(false, rows, half, g * sizeof(float), v);
            }
            for (size_t i = 0; i < 4; i++) {
                _mm256_storeu_si256((__m256i *)(void *)(to + (g + i) * LANES), v[i]);
            }
        }
    }
}

/* Unpacks blocks of 16 bytes of each row to a strip. bits and apart are constants where this is called. */
CHIPLM_INLINE void unpack_strip_of(uint32_t bits, bool apart, const lane_rows *rows, size_t bytes, uint8_t *out,
                                   size_t plane) {
    const uint32_t fields = bits == 8 ? 2 : 8 / bits;
    const size_t apart_by = bits == 8 ? plane : 4 * 64; /* from a field's quads to the next one's */
    for (size_t at = 0; at < bytes; at += 16, out += (bits == 8 ? 1 : fields) * 4 * 64) {
        for (size_t half = 0; half < 2; half++) {
            __m256i v[4];
            gather(apart, rows, half, at, v);
            for (uint32_t d = 0; d < 4; d++) {
                const __m256i flipped = flip(bits, v[d]);
                for (uint32_t f = 0; f < fields; f++) {
                    uint8_t *to = out + f * apart_by + d * 64 + half * 32;
                    _mm256_storeu_si256((__m256i *)(void *)to, field(bits, flipped, f));
                }
            }
        }
    }
}

/* Unpacks blocks of rows of columns, which start at the offsets given and are quads, to strips. */
CHIPLM_INLINE void unpack_columns_of(uint32_t bits, const uint8_t *codes, uint32_t blocks, const size_t *columns,
                                     uint32_t quads, uint8_t *out, size_t strip, size_t plane) {
    const uint32_t fields = bits == 8 ? 2 : 8 / bits;
    const size_t apart_by = bits == 8 ? plane : strip;
    for (uint32_t q = 0; q < quads; q++, columns += QUAD, out += 64) {
        uint8_t *to = out;
        for (size_t at = 0; at < (size_t)blocks * 16; at += 16, to += (bits == 8 ? 1 : fields) * strip) {
            const __m128i a = load16(codes + columns[0] + at);
            const __m128i b = load16(codes + columns[1] + at);
            const __m128i c = load16(codes + columns[2] + at);
            const __m128i d = load16(codes + columns[3] + at);
            const __m256i ab = _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)); /* rows 0-7, 8-15 */
            const __m256i cd = _mm256_set_m128i(_mm_unpackhi_epi8(c, d), _mm_unpacklo_epi8(c, d));
            const __m256i even = _mm256_unpacklo_epi16(ab, cd); /* rows 0-3, 8-11 */
            const __m256i odd = _mm256_unpackhi_epi16(ab, cd);
            const __m256i first = flip(bits, _mm256_permute2x128_si256(even, odd, 0x20));
            const __m256i second = flip(bits, _mm256_permute2x128_si256(even, odd, 0x31));
            for (uint32_t f = 0; f < fields; f++) {
                _mm256_storeu_si256((__m256i *)(void *)(to + f * apart_by), field(bits, first, f));
                _mm256_storeu_si256((__m256i *)(void *)(to + f * apart_by + 32), field(bits, second, f));
            }
        }
    }
}

/* Adds the products over the quads from..to to sums. inputs is constant where this is called, so that the pairs stay in
 * registers. */
CHIPLM_INLINE void add_quads(uint32_t inputs, const uint8_t *codes, const int8_t *const *x, uint32_t from, uint32_t to,
                             __m256i sums[MOST][2]) {
    for (size_t q = from; q < to;) {
        const size_t end = to - q < SHORT_QUADS ? to : q + SHORT_QUADS;
        __m256i pairs[MOST][2];
        for (uint32_t i = 0; i < inputs; i++) {
            pairs[i][0] = pairs[i][1] = _mm256_setzero_si256();
        }
        for (; q < end; q++) {
            __m256i low = load32(codes + q * 64);
            __m256i high = load32(codes + q * 64 + 32);
            __asm__("" : "+x"(low), "+x"(high)); /* else gcc loads them again for every input */
            for (uint32_t i = 0; i < inputs; i++) {
                const __m256i four = broadcast_quad(x[i] + q * QUAD);
                add_products(&pairs[i][0], low, four);
                add_products(&pairs[i][1], high, four);
            }
        }
        for (uint32_t i = 0; i < inputs; i++) {
            sums[i][0] = add_pairs(sums[i][0], pairs[i][0]);
            sums[i][1] = add_pairs(sums[i][1], pairs[i][1]);
        }
    }
}

/* A strip times inputs at .. at + inputs, to the places `to`. */
CHIPLM_INLINE void tile_strip(uint32_t inputs, const work *k, const uint8_t *codes, const float *scales, uint32_t at,
                              float *const *to, size_t offset) {
    __m256 totals[MOST][2];
    const bool wide = k->p->w->bits == 8;
    const int8_t *x[MOST];
    for (uint32_t i = 0; i < inputs; i++) {
        x[i] = input(k, at + i);
        totals[i][0] = totals[i][1] = _mm256_setzero_ps();
    }
    for (uint32_t g = 0, from = 0; g < k->groups; from = k->ends[g++]) {
        __m256i sums[MOST][2];
        for (uint32_t i = 0; i < inputs; i++) {
            sums[i][0] = sums[i][1] = _mm256_setzero_si256();
        }
        if (wide) {
            add_quads(inputs, codes, x, from, k->ends[g], sums);
            for (uint32_t i = 0; i < inputs; i++) {
                sums[i][0] = _mm256_slli_epi32(sums[i][0], 4);
                sums[i][1] = _mm256_slli_epi32(sums[i][1], 4);
            }
        }
        add_quads(inputs, codes + (wide ? k->plane : 0), x, from, k->ends[g], sums);
        for (uint32_t i = 0; i < inputs; i++) {
            const __m256i start = _mm256_set1_epi32(k->starts[(size_t)(at + i) * k->groups + g]);
            for (size_t half = 0; half < 2; half++) {
                const __m256 sum = _mm256_cvtepi32_ps(_mm256_add_epi32(sums[i][half], start));
                const __m256 scale = _mm256_loadu_ps(scales + g * LANES + 8 * half);
                totals[i][half] = _mm256_add_ps(totals[i][half], _mm256_mul_ps(sum, scale));
            }
        }
    }
    for (uint32_t i = 0; i < inputs; i++) {
        const __m256 scale = _mm256_set1_ps(k->p->x.scales[k->p->which[at + i]]);
        for (size_t half = 0; half < 2; half++) {
            _mm256_storeu_ps(to[i] + offset + 8 * half, _mm256_mul_ps(totals[i][half], scale));
        }
    }
}

CHIPLM_INLINE void tile(uint32_t inputs, uint32_t strips, const work *k, const uint8_t *codes, const float *scales,
                        uint32_t at, float *const *to) {
    for (uint32_t s = 0; s < strips; s++) {
        tile_strip(inputs, k, codes + s * k->strip, scales + s * k->scale_strip, at, to, s * LANES);
    }
}

/* A strip of rows times a few inputs: the codes are unpacked in registers. A unit is 32 columns, or the 16 of a block of
 * 8-bit codes. */
CHIPLM_INLINE void few(uint32_t inputs, uint32_t bits, const work *k, const lane_rows *rows, float *const *to) {
    const uint32_t unit = bits == 8 ? 16 : 32;
    for (size_t half = 0; half < 2; half++) {
        __m256 total[FEW];
        for (uint32_t i = 0; i < inputs; i++) {
            total[i] = _mm256_setzero_ps();
        }
        for (uint32_t g = 0, column = 0; g < k->groups; g++) {
            __m256i sum[FEW], high[FEW];
            for (uint32_t i = 0; i < inputs; i++) {
                sum[i] = _mm256_set1_epi32(k->starts[(size_t)i * k->groups + g]);
                high[i] = _mm256_setzero_si256();
            }
            for (const uint32_t end = k->ends[g] * QUAD; column < end; column += unit) {
                __m256i v[4], first[FEW], second[FEW];
                gather(false, rows, half, column / (128 / bits) * 16, v);
                for (uint32_t i = 0; i < inputs; i++) {
                    first[i] = second[i] = _mm256_setzero_si256();
                }
                for (uint32_t d = 0; d < 4; d++) {
                    __m256i flipped = flip(bits, v[d]);
                    flipped = bits == 2 ? _mm256_srli_epi16(flipped, (int)(column % 64 / 8)) : flipped;
                    const __m256i one = field(bits, flipped, 0);
                    const __m256i two = field(bits, flipped, 1);
                    for (uint32_t i = 0; i < inputs; i++) {
                        const int8_t *x = input(k, i) + column + QUAD * d;
                        add_products(&first[i], one, broadcast_quad(x));
                        add_products(&second[i], two, broadcast_quad(x + (bits == 8 ? 0 : 16)));
                    }
                }
                for (uint32_t i = 0; i < inputs; i++) {
                    if (bits == 8) {
                        high[i] = add_pairs(high[i], first[i]);
                        sum[i] = add_pairs(sum[i], second[i]);
                    } else {
                        sum[i] = add_pairs(sum[i], _mm256_add_epi16(first[i], second[i]));
                    }
                }
            }
            const __m256 scale = _mm256_loadu_ps(k->scales + g * LANES + half * 8);
            for (uint32_t i = 0; i < inputs; i++) {
                sum[i] = _mm256_add_epi32(sum[i], _mm256_slli_epi32(high[i], 4));
                total[i] = _mm256_add_ps(total[i], _mm256_mul_ps(_mm256_cvtepi32_ps(sum[i]), scale));
            }
        }
        for (uint32_t i = 0; i < inputs; i++) {
            const __m256 scale = _mm256_set1_ps(k->p->x.scales[k->p->which[i]]);
            _mm256_storeu_ps(to[i] + half * 8, _mm256_mul_ps(total[i], scale));
        }
    }
}

static void run_tile(uint32_t inputs, bool whole, const work *k, const uint8_t *codes, const float *scales, uint32_t at,
                     float *const *to) {
    const uint32_t strips = whole ? STRIPS : 1;
    switch (inputs) {
    case 1:
        tile(1, strips, k, codes, scales, at, to);
        break;
    case 2:
        tile(2, strips, k, codes, scales, at, to);
        break;
    case 3:
        tile(3, strips, k, codes, scales, at, to);
        break;
    default:
        tile(4, strips, k, codes, scales, at, to);
        break;
    }
}

#include "product_x86.h"
