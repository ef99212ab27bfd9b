/* What the firmware takes from <string.h>. The compiler for lx106 comes without a C library. */
#ifndef CHIPLM_BOARD_XTENSA_STRING_H
#define CHIPLM_BOARD_XTENSA_STRING_H

#include <stddef.h>

void *memchr(const void *bytes, int value, size_t n);
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
size_t strlen(const char *text);

#endif
