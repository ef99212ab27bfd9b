/* board: the virtual board as a program. Its help says how it is called. Compiled by firmware/Makefile alone. */
#define _POSIX_C_SOURCE 200809L

#include "host.h"

#ifdef CHIPLM_BOARD_MAIN

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "usage: board --model FILE [--sram BYTES] [--psram BYTES] [--fd N]\n"
    "\n"
    "Runs the firmware on this machine. It answers the requests of firmware/PROTOCOL.md on standard input and\n"
    "output, or on the open descriptor N, such as the master of a pseudo-terminal.\n"
    "\n"
    "  --model FILE    an image (chiplm export), copied at a boot; none: a board whose model partition is empty\n"
    "  --sram BYTES    memory that models are planned with (default 278528, usable of the target esp32s3);\n"
    "                  8192 more for the padding of copies, and what this machine's kernels need beyond the\n"
    "                  chip's, are lent to the board on top: \"lent\" of I; at most 1073741824\n"
    "  --psram BYTES   the same of PSRAM (default 8323072, at most 1073741824, nothing on top); 0: a board without\n"
    "  --fd N          requests and answers go over this descriptor\n";

static int wrong(const char *what, const char *value) {
    fprintf(stderr, "board: %s \"%s\": see board --help\n", what, value);
    return 2;
}

/* A number of digits alone. */
static int number(const char *text, size_t *v) {
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    *v = (size_t)n;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

int main(int argc, char **argv) {
    chiplm_board_options o = {.sram = 278528, .psram = 8323072, .in = 0, .out = 1, .stop = -1, .booted = -1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return 0;
        }
        if (i + 1 == argc) {
            return wrong("unknown, or without a value:", argv[i]);
        }
        const char *flag = argv[i++];
        size_t v = 0;
        if (strcmp(flag, "--model") == 0) {
            o.model = argv[i];
            continue;
        }
        if (!number(argv[i], &v)) {
            return wrong("not a number:", argv[i]);
        }
        if (v > CHIPLM_BOARD_MOST) {
            fprintf(stderr, "board: %s %s is more than %d\n", flag, argv[i], CHIPLM_BOARD_MOST);
            return 2;
        }
        if (strcmp(flag, "--sram") == 0) {
            o.sram = v;
        } else if (strcmp(flag, "--psram") == 0) {
            o.psram = v;
        } else if (strcmp(flag, "--fd") == 0 && v < 1 << 20) {
            o.in = o.out = (int)v;
        } else {
            return wrong("unknown flag", flag);
        }
    }
    struct stat info;
    if (o.model != NULL && stat(o.model, &info) == 0 && !S_ISREG(info.st_mode)) {
        fprintf(stderr, "board: --model %s is no regular file: name an image\n", o.model);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a cable that was pulled */
    const int status = chiplm_board_run(&o);
    if (status != 0) {
        fprintf(stderr, "board: %s\n", strerror(status));
        return 1;
    }
    return 0;
}

#endif
