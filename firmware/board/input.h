/* input.h - lines from the host. Internal. */
#ifndef CHIPLM_BOARD_INPUT_H
#define CHIPLM_BOARD_INPUT_H

#include "port.h"

enum { INPUT_MOST = 4096, INPUT_BUFFER = INPUT_MOST + 2 + 1024 }; /* a longest line, its end, and some of the next */

typedef enum input_kind { INPUT_LINE, INPUT_TOO_LONG, INPUT_STOPPED /* no line will come */ } input_kind;

typedef struct input {
    port *port;
    size_t start, end; /* of the bytes that were read and not used */
    size_t seen;       /* of them hold no line feed */
    bool skipping;     /* a line that was too long */
    bool ended;        /* nothing will come any more */
    uint8_t bytes[INPUT_BUFFER];
} input;

void input_start(input *in, port *p);

/* Waits for the next line, without its end. line stays valid until the next call on in. */
input_kind input_line(input *in, char **line, size_t *n);

/* Looks, without waiting, whether the next line that is not empty is X, and takes it then; also when the board is to stop. */
bool input_wants_stop(input *in);

#endif
