/* output.h - lines to the host. Internal. */
#ifndef CHIPLM_BOARD_OUTPUT_H
#define CHIPLM_BOARD_OUTPUT_H

#include "port.h"
#include "writer.h"

enum { OUTPUT_BUFFER = 512, OUTPUT_PATIENCE_MS = 2000 };

/* Nobody may be reading. The first write that does not get through waits for so long; until one gets through again, later
 * ones wait no more. What does not get through is dropped up to the end of its line. */
typedef struct output {
    writer w; /* first */
    port *port;
    bool nobody; /* the last write did not get through */
    bool open;   /* the last byte that got through did not end a line */
    bool begun;  /* a part of this line was sent, or tried */
    bool drop;   /* the rest of this line */
    char buffer[OUTPUT_BUFFER];
} output;

void output_start(output *o, port *p);

/* Ends a line, and sends it. */
void output_line(output *o);

#endif
