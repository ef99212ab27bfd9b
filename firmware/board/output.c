/* Lines to the host. */
#include "output.h"

/* Whether all bytes got through. */
static bool send(output *o, const char *bytes, size_t n) {
    const size_t sent = port_write(o->port, bytes, n, o->nobody ? 0 : OUTPUT_PATIENCE_MS);
    o->nobody = sent < n;
    if (sent > 0) {
        o->open = bytes[sent - 1] != '\n';
    }
    return sent == n;
}

static void flush(writer *w) {
    output *o = (output *)(void *)w;
    const size_t n = o->w.used;
    o->w.used = 0;
    if (n == 0 || o->drop) {
        return;
    }
    if (!o->begun && o->open) { /* what stands there, the beginning of an older line, becomes a line of its own */
        o->drop = !send(o, "\n", 1);
    }
    o->begun = true;
    o->drop = o->drop || !send(o, o->buffer, n);
}

void output_start(output *o, port *p) {
    *o = (output){.port = p};
    o->w.buffer = o->buffer;
    o->w.room = sizeof o->buffer;
    o->w.full = flush;
}

void output_line(output *o) {
    put(&o->w, "\n");
    flush(&o->w);
    o->w.last = '\0';
    o->begun = false;
    o->drop = false;
}
