/* string.h - what the engine wants of a C library's memory functions: ../memory.c has them. */
#ifndef CHIPLM_WASM_STRING_H
#define CHIPLM_WASM_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *text);

#endif
