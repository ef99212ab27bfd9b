/* The port of this machine. */
#include "host.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* Answers every byte with nothing until told to stop. */
int chiplm_board_run(const chiplm_board_options *options) {
    for (;;) {
        struct pollfd fds[] = {{.fd = options->in, .events = POLLIN}, {.fd = options->stop, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            return errno;
        }
        char bytes[64];
        if (fds[1].revents != 0 || (fds[0].revents != 0 && read(options->in, bytes, sizeof bytes) == 0)) {
            return 0;
        }
    }
}
