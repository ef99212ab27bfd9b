/* What the core takes from <string.h>. The compiler for lx106 comes without a C library; memory.c has the functions. */
#ifndef CHIPLM_XTENSA_STRING_H
#define CHIPLM_XTENSA_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

#endif
