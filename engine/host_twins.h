/* host_twins.h - calls the twins of the vector unit's kernels (pie/pie.h) by name, for tests on a host. Not for the chip. */
#ifndef CHIPLM_HOST_TWINS_H
#define CHIPLM_HOST_TWINS_H

#include <stdint.h>

/* An argument: a pointer or a word. */
typedef struct chiplm_twin_argument {
    void *at;
    uint32_t word;
} chiplm_twin_argument;

/* Calls the twin of a kernel. *returned is what it returns, or 0. Returns how many arguments it takes, having called it only
 * if it was given so many; -1: there is no such twin. */
int chiplm_call_twin(const char *name, const chiplm_twin_argument *arguments, int count, uint32_t *returned);

#endif
