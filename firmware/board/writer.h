/* writer.h - text and numbers into a buffer, without stdio and its stacks. Internal. */
#ifndef CHIPLM_BOARD_WRITER_H
#define CHIPLM_BOARD_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* full is called when the buffer is, and makes room; without it what does not fit is left out. */
typedef struct writer {
    char *buffer;
    size_t room, used;
    char last; /* byte that was put, also when the buffer was emptied since */
    void (*full)(struct writer *w);
} writer;

void put_bytes(writer *w, const void *bytes, size_t n);
void put(writer *w, const char *text);
void put_number(writer *w, uint64_t v);

/* v / 10^decimals, with so many decimals. */
void put_decimal(writer *w, uint64_t v, unsigned decimals);

/* So many hexadecimal digits, small letters, no 0x. */
void put_hex(writer *w, uint64_t v, unsigned digits);
void put_hash(writer *w, const uint8_t *bytes, size_t n);

/* A JSON string with its quotes. */
void put_json(writer *w, const char *text);

/* "key": with a comma before it unless it is the first after an opening bracket. */
void put_key(writer *w, const char *key);

/* Bytes as the protocol escapes them. */
void put_escaped(writer *w, const uint8_t *bytes, size_t n);

/* Terminates the text that a buffer of fixed size holds. */
void put_end(writer *w);

#endif
