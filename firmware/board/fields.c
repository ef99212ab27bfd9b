/* The fields of a request. */
#include "fields.h"

bool fields_next(fields *f, char **field, size_t *n) {
    if (f->n == 0) {
        return false;
    }
    if (f->at[0] == ' ') {
        f->at++;
        f->n--;
    }
    *field = f->at;
    *n = 0;
    while (*n < f->n && f->at[*n] != ' ') {
        ++*n;
    }
    f->at += *n;
    f->n -= *n;
    return true;
}

number_kind fields_number(const char *field, size_t n, uint64_t most, uint64_t *v) {
    bool fits = true;
    *v = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned digit = (unsigned)((unsigned char)field[i] - '0');
        if (digit > 9) {
            return NUMBER_NONE;
        }
        fits = fits && *v <= (most - digit) / 10 && digit <= most;
        *v = fits ? *v * 10 + digit : 0;
    }
    return n == 0 ? NUMBER_NONE : fits ? NUMBER_OK : NUMBER_TOO_LARGE;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool fields_unescape(char *text, size_t *n) {
    size_t to = 0;
    for (size_t i = 0; i < *n; to++) {
        const size_t left = *n - i;
        if (text[i] != '\\') {
            text[to] = text[i];
            i++;
        } else if (left >= 2 && text[i + 1] == 'n') {
            text[to] = '\n';
            i += 2;
        } else if (left >= 2 && text[i + 1] == '\\') {
            text[to] = '\\';
            i += 2;
        } else if (left >= 4 && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
            text[to] = (char)(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
            i += 4;
        } else {
            *n = i;
            return false;
        }
    }
    *n = to;
    return true;
}
