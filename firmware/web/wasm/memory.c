/* The memory functions that the engine calls, and that the compiler puts in place of loops. Built without builtins, or the
 * compiler would see its own functions in these loops and have them call themselves. */
#include <stdint.h>
#include <string.h>

/* A word that may lie anywhere and alias anything. */
typedef uint64_t word __attribute__((aligned(1), may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    uint8_t *t = to;
    const uint8_t *f = from;
    for (; n >= sizeof(word); n -= sizeof(word), t += sizeof(word), f += sizeof(word)) {
        *(word *)t = *(const word *)f;
    }
    while (n-- > 0) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t <= (uintptr_t)f) {
        while (n-- > 0) {
            *t++ = *f++;
        }
    } else {
        while (n-- > 0) {
            t[n] = f[n];
        }
    }
    return to;
}

void *memset(void *to, int byte, size_t n) {
    uint8_t *t = to;
    const word all = (uint8_t)byte * 0x0101010101010101U;
    for (; n >= sizeof(word); n -= sizeof(word), t += sizeof(word)) {
        *(word *)t = all;
    }
    while (n-- > 0) {
        *t++ = (uint8_t)byte;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    const uint8_t *x = a;
    const uint8_t *y = b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t n = 0;
    while (text[n] != '\0') {
        n++;
    }
    return n;
}
