/* host.h - the virtual board: the firmware as a function of this machine.
 *
 * It boots from an image file, answers requests on two file descriptors as firmware/PROTOCOL.md says, and returns when
 * it is told to stop. Two threads are its two cores; its memories are as large as the options say, so that a model that does not
 * fit a board does not fit here either. */
#ifndef CHIPLM_BOARD_HOST_H
#define CHIPLM_BOARD_HOST_H

#include <stddef.h>

enum { CHIPLM_BOARD_MOST = 1 << 30 }; /* bytes of a memory, and of an image */

typedef struct chiplm_board_options {
    const char *model;      /* an image file, copied at every boot; null or empty: a board whose model partition is empty */
    size_t sram, psram;     /* bytes of each memory that models are planned with (see port_lend); psram 0: a board without */
    int in, out;            /* requests are read from one, answers written to the other: may be the same */
    int stop;               /* the board stops when this becomes readable or its other end is closed; -1: never */
    int booted;             /* gets a line after the first boot: empty, or why no model runs, its code first; -1: none */
} chiplm_board_options;

/* Runs a board until in ends (a pipe whose other end was closed) or stop. The end of a pseudo-terminal is a cable that was
 * pulled, and the board waits for another. Returns 0, EINVAL for a memory that is too large, or an errno of a system call without which there is no board. Any
 * number may run at the same time. in and out do not block while it runs. */
int chiplm_board_run(const chiplm_board_options *options);

#endif
