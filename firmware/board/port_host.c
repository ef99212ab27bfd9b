/* The port of this machine: POSIX. */
#define _POSIX_C_SOURCE 200809L

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

enum { PULLED_WAIT_MS = 20, SPINS = 4000, LENT_MOST = 4 << 20, FOR_PADDING = 8192 };

/* A memory of a fixed size, taken from its beginning. */
typedef struct memory {
    uint8_t *at;
    size_t bytes, used;
    size_t own; /* bytes without what is lent */
} memory;

struct port {
    port_chip chip;
    int in, out, stop;
    bool stopped;
    int booted;             /* of the options, until the first boot was told; then -1 */
    const char *path;
    void *model; /* a copy of the file, made at a boot: flash does not change under a firmware */
    memory memories[PORT_MEMORIES];
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool woken;
    pthread_cond_t told;     /* changes that somebody sleeps for */
    _Atomic uint32_t tells;  /* counts them */
    _Atomic uint32_t asleep; /* how many sleep */
    void (*run)(void *self);
    void *self;
};

const port_chip *port_chip_of(port *p) { return &p->chip; }

/* ------------------------------------------------------------------------------------------------ the serial line */

static void pause_ms(long ms) { (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

/* Waits until a descriptor is ready for events, or the board is told to stop. Returns whether it is ready. */
static bool wait_for(port *p, int fd, short events, uint32_t wait_ms) {
    struct pollfd fds[2] = {{.fd = fd, .events = events}, {.fd = p->stop, .events = POLLIN}};
    const int n = poll(fds, p->stop < 0 ? 1 : 2, (int)wait_ms);
    if (n > 0 && p->stop >= 0 && fds[1].revents != 0) {
        p->stopped = true;
    }
    return n > 0 && !p->stopped && fds[0].revents != 0;
}

int port_read(port *p, void *to, size_t room, uint32_t wait_ms) {
    const bool ready = wait_for(p, p->in, POLLIN, wait_ms);
    if (p->stopped) {
        return PORT_STOPPED;
    }
    if (!ready) {
        return 0;
    }
    const ssize_t n = read(p->in, to, room);
    if (n > 0) {
        return (int)n;
    }
    if (n < 0 && errno == EIO && wait_ms > 0) { /* the other end of a pseudo-terminal is closed */
        pause_ms(PULLED_WAIT_MS);
    }
    return n == 0 || (errno != EIO && errno != EAGAIN && errno != EINTR) ? PORT_ENDED : 0;
}

bool port_stopped(port *p) {
    (void)wait_for(p, -1, 0, 0); /* for nothing but the stop */
    return p->stopped;
}

size_t port_write(port *p, const void *bytes, size_t n, uint32_t wait_ms) {
    const uint64_t end = port_microseconds(p) + wait_ms * 1000ULL;
    size_t done = 0;
    while (done < n && !p->stopped) {
        const ssize_t sent = write(p->out, (const uint8_t *)bytes + done, n - done);
        if (sent > 0) {
            done += (size_t)sent;
            continue;
        }
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            break; /* EIO, EPIPE: the cable is pulled */
        }
        const uint64_t now = port_microseconds(p);
        if (now >= end) {
            break;
        }
        (void)wait_for(p, p->out, POLLOUT, (uint32_t)((end - now + 999) / 1000));
    }
    return done;
}

/* --------------------------------------------------------------------------------------------------- time, and life */

static uint64_t nanoseconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t port_microseconds(port *p) {
    (void)p;
    return nanoseconds() / 1000;
}

/* This machine's cycle is a nanosecond: clock_mhz is 1000. */
uint32_t port_cycles(port *p) {
    (void)p;
    return (uint32_t)nanoseconds();
}

void port_feed(port *p) { (void)p; }

void port_booted(port *p, const char *code, const char *failure) {
    if (p->booted < 0) {
        return;
    }
    char text[1024]; /* a failure is a sentence */
    const int n = code == NULL ? snprintf(text, sizeof text, "\n") : snprintf(text, sizeof text, "%s %s\n", code, failure);
    const ssize_t sent = write(p->booted, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    (void)sent; /* nobody wants to know */
    p->booted = -1;
}

static void forget_model(port *p) {
    free(p->model);
    p->model = NULL;
}

void port_restart(port *p) {
    forget_model(p);
    for (unsigned i = 0; i < PORT_MEMORIES; i++) {
        p->memories[i].used = 0;
        p->memories[i].bytes = p->memories[i].own;
    }
}

/* ---------------------------------------------------------------------------------------------------------- memory */

port_room port_room_of(port *p, port_memory which) {
    const memory *m = &p->memories[which];
    return (port_room){.total = m->bytes, .free = m->bytes - m->used, .largest = m->bytes - m->used, .lent = m->bytes - m->own};
}

void *port_take(port *p, port_memory which, size_t bytes) {
    memory *m = &p->memories[which];
    const size_t padded = (bytes + 63) / 64 * 64;
    if (padded > m->bytes - m->used) {
        return NULL;
    }
    void *at = m->at + m->used;
    m->used += padded;
    return at;
}

void port_lend(port *p, port_memory which, size_t bytes) {
    memory *m = &p->memories[which];
    m->bytes = m->own + (bytes > LENT_MOST - FOR_PADDING ? 0 : bytes) + FOR_PADDING;
}

bool port_copy(port *p, void *to, const void *from, size_t n) {
    (void)p;
    (void)to;
    (void)from;
    (void)n;
    return false; /* no DMA */
}

void port_read_through(const void *at, size_t bytes) {
    const uint64_t *words = at;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        sum += words[i];
    }
    volatile uint64_t sink = sum;
    (void)sink;
}

/* -------------------------------------------------------------------------------------------------------- the model */

/* Memory at a multiple of 64. */
static void *allocate(size_t bytes) {
    return bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

/* Reads n bytes from the start of a file. Returns 0 or an errno. */
static int read_all(int fd, uint8_t *to, size_t n) {
    for (size_t done = 0; done < n;) {
        const ssize_t got = read(fd, to + done, n - done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return got == 0 ? EIO : errno; /* EIO: it was cut meanwhile */
        }
    }
    return 0;
}

/* A private copy of what an open file holds. Returns 0 or an errno. */
static int copy_model(port *p, int fd, port_model *model) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return errno;
    }
    if (!S_ISREG(info.st_mode)) {
        return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    }
    if (info.st_size == 0) {
        return 0;
    }
    const size_t n = (size_t)info.st_size;
    p->model = info.st_size > CHIPLM_BOARD_MOST ? NULL : allocate(n);
    if (p->model == NULL) {
        return ENOMEM;
    }
    const int error = read_all(fd, p->model, n);
    if (error != 0) {
        forget_model(p);
        return error;
    }
    *model = (port_model){.at = p->model, .bytes = n, .room = n};
    return 0;
}

port_model_state port_find_model(port *p, port_model *model) {
    *model = (port_model){0};
    if (p->path == NULL || p->path[0] == '\0') {
        return PORT_MODEL_EMPTY;
    }
    const int fd = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* else opening a pipe waits for its writer */
    model->error = fd < 0 ? errno : copy_model(p, fd, model);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (model->error != 0) {
        return PORT_MODEL_FAILED;
    }
    return model->at == NULL ? PORT_MODEL_EMPTY : PORT_MODEL_FOUND;
}

/* ---------------------------------------------------------------------------------------------------------- the cores */

static _Thread_local port *mine; /* whose core this thread is */

static void *second_core(void *argument) {
    port *p = argument;
    mine = p;
    p->run(p->self);
    return NULL;
}

bool port_start_core(port *p, void (*run)(void *self), void *self) {
    p->run = run;
    p->self = self;
    p->woken = false;
    return pthread_create(&p->thread, NULL, second_core, p) == 0;
}

void port_sleep_core(port *p) {
    pthread_mutex_lock(&p->mutex);
    while (!p->woken) {
        pthread_cond_wait(&p->wake, &p->mutex);
    }
    p->woken = false;
    pthread_mutex_unlock(&p->mutex);
}

void port_wake_core(port *p) {
    pthread_mutex_lock(&p->mutex);
    p->woken = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->mutex);
    port_told(p);
}

void port_told(port *p) {
    atomic_fetch_add(&p->tells, 1);
    if (atomic_load(&p->asleep) != 0) { /* one who comes to sleep after this sees the new count */
        pthread_mutex_lock(&p->mutex);
        pthread_cond_broadcast(&p->told);
        pthread_mutex_unlock(&p->mutex);
    }
}

/* On a machine with other work, who waits awake keeps the processor from the one that is waited for, and who gives it up again and
 * again waits a slice of time of others for each. So a core that has waited in vain for as long as a usual hand-over takes sleeps
 * until it is told. The count is taken one turn before, so that what is waited for is looked at once more in between. */
void port_spin(uint32_t turn) {
    static _Thread_local uint32_t seen;
    if (turn < SPINS) {
        return;
    }
    if (turn > SPINS) {
        port *p = mine;
        pthread_mutex_lock(&p->mutex);
        atomic_fetch_add(&p->asleep, 1);
        while (atomic_load(&p->tells) == seen) {
            pthread_cond_wait(&p->told, &p->mutex);
        }
        atomic_fetch_sub(&p->asleep, 1);
        pthread_mutex_unlock(&p->mutex);
    }
    seen = atomic_load(&mine->tells);
}

void port_end_core(port *p) { (void)pthread_join(p->thread, NULL); }

/* -------------------------------------------------------------------------------------------------------- the board */

static int run(port *p, board *b, const chiplm_board_options *o) {
    const size_t sizes[PORT_MEMORIES] = {[PORT_SRAM] = o->sram, [PORT_PSRAM] = o->psram};
    int status = b == NULL ? ENOMEM : 0;
    mine = p;
    for (unsigned i = 0; i < PORT_MEMORIES; i++) {
        p->memories[i] = (memory){.at = allocate(sizes[i] + LENT_MOST), .bytes = sizes[i], .own = sizes[i]};
        status = p->memories[i].at == NULL ? ENOMEM : status;
    }
    if (status == 0) {
        board_run(b, p);
    }
    forget_model(p);
    for (unsigned i = 0; i < PORT_MEMORIES; i++) {
        free(p->memories[i].at);
    }
    return status;
}

int chiplm_board_run(const chiplm_board_options *options) {
    if (options->sram > CHIPLM_BOARD_MOST || options->psram > CHIPLM_BOARD_MOST) {
        return EINVAL;
    }
    const int flags[2] = {fcntl(options->in, F_GETFL), fcntl(options->out, F_GETFL)};
    if (flags[0] < 0 || flags[1] < 0 || fcntl(options->in, F_SETFL, flags[0] | O_NONBLOCK) < 0 ||
        fcntl(options->out, F_SETFL, flags[1] | O_NONBLOCK) < 0) {
        return errno;
    }
    port p = {
        .chip = {.target = "host",
                 .is_virtual = true,
                 .chip = "a virtual board",
                 .firmware = "virtual",
                 .clock_mhz = 1000,
                 .cores = 2,
                 .cache_line = 64,
                 .psram_mode = "octal",
                 .psram_mhz = 80,
                 .psram_bytes = options->psram},
        .in = options->in,
        .out = options->out,
        .stop = options->stop,
        .booted = options->booted,
        .path = options->model,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .wake = PTHREAD_COND_INITIALIZER,
        .told = PTHREAD_COND_INITIALIZER,
    };
    board *b = allocate(sizeof *b);
    const int status = run(&p, b, options);
    free(b);
    (void)fcntl(options->out, F_SETFL, flags[1]);
    (void)fcntl(options->in, F_SETFL, flags[0]);
    return status;
}
