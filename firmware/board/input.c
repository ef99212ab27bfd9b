/* Lines from the host. */
#include "input.h"

#include <string.h>

enum { WAIT_MS = 500 };

void input_start(input *in, port *p) {
    in->port = p;
    in->start = in->end = in->seen = 0;
    in->skipping = in->ended = false;
}

/* Whether a whole line is there; its length without the line feed. */
static bool find(input *in, size_t *n) {
    for (size_t i = in->start + in->seen; i < in->end; i++) {
        if (in->bytes[i] == '\n') {
            *n = i - in->start;
            return true;
        }
    }
    in->seen = in->end - in->start;
    return false;
}

static void take(input *in, size_t n) {
    in->start += n;
    in->seen = 0;
}

/* Reads what is there. */
static int fill(input *in, uint32_t wait_ms) {
    if (in->start > 0) {
        memmove(in->bytes, in->bytes + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    const int n = in->end == sizeof in->bytes ? 0 : port_read(in->port, in->bytes + in->end, sizeof in->bytes - in->end, wait_ms);
    in->end += n > 0 ? (size_t)n : 0;
    in->ended = in->ended || n == PORT_ENDED;
    return n;
}

static size_t without_end(const input *in, size_t n) { return n > 0 && in->bytes[in->start + n - 1] == '\r' ? n - 1 : n; }

input_kind input_line(input *in, char **line, size_t *n) {
    if (port_stopped(in->port)) { /* lines that came before are not begun any more */
        return INPUT_STOPPED;
    }
    for (;;) {
        size_t length;
        if (find(in, &length)) {
            const bool skipped = in->skipping;
            *line = (char *)in->bytes + in->start;
            *n = without_end(in, length);
            take(in, length + 1);
            in->skipping = false;
            return skipped || *n > INPUT_MOST ? INPUT_TOO_LONG : INPUT_LINE;
        }
        if (in->seen > INPUT_MOST + 1) { /* the end is at most CR LF, and LF is not there */
            in->skipping = true;
        }
        if (in->skipping) {
            take(in, in->end - in->start);
        }
        if (in->ended || fill(in, WAIT_MS) == PORT_STOPPED) {
            return INPUT_STOPPED;
        }
        port_feed(in->port);
    }
}

bool input_wants_stop(input *in) {
    if (port_stopped(in->port) || (!in->ended && fill(in, 0) == PORT_STOPPED)) { /* fill does not look when it is full */
        return true;
    }
    size_t n;
    while (!in->skipping && find(in, &n)) {
        const bool stop = without_end(in, n) == 1 && in->bytes[in->start] == 'X';
        if (!stop && without_end(in, n) > 0) {
            return false;
        }
        take(in, n + 1); /* an empty line has no answer, and one comes first when a host begins a conversation */
        if (stop) {
            return true;
        }
    }
    return false;
}
