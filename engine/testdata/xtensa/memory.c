/* The four functions of <string.h> that the core calls, byte by byte. Compile with -fno-tree-loop-distribute-patterns,
 * or the compiler turns the loops into calls of the functions themselves. */
#include <stdint.h>
#include <string.h>

void *memcpy(void *to, const void *from, size_t n) {
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i < n; i++) {
        t[i] = f[i];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t <= (uintptr_t)f) {
        return memcpy(to, from, n);
    }
    while (n-- > 0) {
        t[n] = f[n];
    }
    return to;
}

void *memset(void *to, int value, size_t n) {
    uint8_t *t = to;
    for (size_t i = 0; i < n; i++) {
        t[i] = (uint8_t)value;
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
