/* Text and numbers into a buffer. */
#include "writer.h"

#include <string.h>

void put_bytes(writer *w, const void *bytes, size_t n) {
    const char *from = bytes;
    w->last = n > 0 ? from[n - 1] : w->last;
    while (n > 0) {
        if (w->used == w->room && w->full != NULL) {
            w->full(w);
        }
        const size_t left = w->room - w->used;
        if (left == 0) {
            return;
        }
        const size_t part = n < left ? n : left;
        memcpy(w->buffer + w->used, from, part);
        w->used += part;
        from += part;
        n -= part;
    }
}

void put(writer *w, const char *text) {
    size_t n = 0;
    while (text[n] != '\0') {
        n++;
    }
    put_bytes(w, text, n);
}

void put_decimal(writer *w, uint64_t v, unsigned decimals) {
    char digits[24];
    size_t at = sizeof digits;
    for (unsigned i = 0; v > 0 || i <= decimals; i++) {
        if (i == decimals && i > 0) {
            digits[--at] = '.';
        }
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    }
    put_bytes(w, digits + at, sizeof digits - at);
}

void put_number(writer *w, uint64_t v) { put_decimal(w, v, 0); }

void put_hex(writer *w, uint64_t v, unsigned digits) {
    char text[16];
    for (unsigned i = 0; i < digits; i++) {
        text[digits - 1 - i] = "0123456789abcdef"[v & 15];
        v >>= 4;
    }
    put_bytes(w, text, digits);
}

void put_hash(writer *w, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        put_hex(w, bytes[i], 2);
    }
}

void put_json(writer *w, const char *text) {
    put(w, "\"");
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            put(w, "\\");
            put_bytes(w, text, 1);
        } else if (c < 0x20) {
            put(w, "\\u");
            put_hex(w, c, 4);
        } else {
            put_bytes(w, text, 1);
        }
    }
    put(w, "\"");
}

void put_key(writer *w, const char *key) {
    if (w->last != '{' && w->last != '[' && w->last != ',') {
        put(w, ",");
    }
    put_json(w, key);
    put(w, ":");
}

void put_escaped(writer *w, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t c = bytes[i];
        if (c == '\n') {
            put(w, "\\n");
        } else if (c == '\\') {
            put(w, "\\\\");
        } else if (c >= 0x20 && c <= 0x7e) {
            put_bytes(w, bytes + i, 1);
        } else {
            put(w, "\\x");
            put_hex(w, c, 2);
        }
    }
}

void put_end(writer *w) { w->buffer[w->used < w->room ? w->used : w->room - 1] = '\0'; }
