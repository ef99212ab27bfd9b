/* fields.h - the fields of a request. Internal. */
#ifndef CHIPLM_BOARD_FIELDS_H
#define CHIPLM_BOARD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of a line. */
typedef struct fields {
    char *at;
    size_t n;
} fields;

/* Takes the next field: all up to a space or the end. One space before it is dropped, so that two in a row make an empty
 * field. False at the end. */
bool fields_next(fields *f, char **field, size_t *n);

typedef enum number_kind { NUMBER_OK, NUMBER_NONE, NUMBER_TOO_LARGE } number_kind;

/* A field of decimal digits, at most most. */
number_kind fields_number(const char *field, size_t n, uint64_t most, uint64_t *v);

/* Replaces escapes by what they stand for, in place. False at one that does not exist: its place goes to *n. */
bool fields_unescape(char *text, size_t *n);

#endif
