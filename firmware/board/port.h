/* port.h - what the firmware wants of the machine it runs on: the serial line, time, memory, the model's bytes, a second
 * core. port_esp.c gives it on the chip, port_host.c on this machine; everything else is the same code. Internal. */
#ifndef CHIPLM_BOARD_PORT_H
#define CHIPLM_BOARD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct port port;

/* What the machine is. */
typedef struct port_chip {
    const char *target;    /* "esp32s3", "host" */
    bool is_virtual;       /* a board of this machine */
    const char *chip;      /* with its revision */
    const char *firmware;  /* version */
    uint32_t clock_mhz;    /* of port_cycles */
    uint32_t cores;
    uint32_t cache_line;
    const char *psram_mode; /* that the firmware was built for: "octal", "quad" */
    uint32_t psram_mhz;
    size_t psram_bytes; /* 0: none answers in that mode */
} port_chip;

const port_chip *port_chip_of(port *p);

/* ------------------------------------------------------------------------------------------------ the serial line */

enum { PORT_STOPPED = -1, PORT_ENDED = -2 };

/* Reads up to room bytes, waiting so many milliseconds for the first. Returns how many came; 0 if none; of a virtual
 * board PORT_STOPPED when it is to end at once, and PORT_ENDED when nothing will come any more. */
int port_read(port *p, void *to, size_t room, uint32_t wait_ms);

/* Whether a virtual board is to end at once. Never on a chip. */
bool port_stopped(port *p);

/* Writes what it can within so many milliseconds, and returns how many bytes that was: fewer than n when nobody reads. */
size_t port_write(port *p, const void *bytes, size_t n, uint32_t wait_ms);

/* --------------------------------------------------------------------------------------------------- time, and life */

uint64_t port_microseconds(port *p);

/* A counter of this core's cycles, clock_mhz of them a microsecond. Wraps. */
uint32_t port_cycles(port *p);

/* Says that the firmware is alive. Called at least once a second by code that waits or computes, after the start. */
void port_feed(port *p);

/* Told at the end of a boot: why there is no model to run, or null and null. Whoever started a virtual board learns it; on a
 * chip nothing happens. */
void port_booted(port *p, const char *code, const char *failure);

/* Restarts the chip and does not return. On a virtual board returns, with all memory free again. */
void port_restart(port *p);

/* ------------------------------------------------------------------------------------------------------------ memory */

typedef enum port_memory { PORT_SRAM, PORT_PSRAM, PORT_MEMORIES } port_memory;

typedef struct port_room {
    size_t total, free, largest; /* bytes: in all, not taken, and the largest block of them */
    size_t lent;                 /* of total, see port_lend */
} port_room;

port_room port_room_of(port *p, port_memory memory);

/* Takes bytes at a multiple of 64, for as long as the firmware runs. Null when there is no such block. */
void *port_take(port *p, port_memory memory, size_t bytes);

/* Enlarges the memory of a virtual board by what this machine's sets of instructions need and the chip's do not, and by what
 * a chip has beyond the bytes that models are planned with, for the padding of copies. On a chip nothing happens. */
void port_lend(port *p, port_memory memory, size_t bytes);

/* Copies by DMA; false where that is impossible. Both ends and n are multiples of 64. */
bool port_copy(port *p, void *to, const void *from, size_t n);

/* Reads bytes (a multiple of 64, at a multiple of 16) by the widest loads there are, and does nothing with them. */
void port_read_through(const void *at, size_t bytes);

/* -------------------------------------------------------------------------------------------------------- the model */

typedef enum port_model_state {
    PORT_MODEL_FOUND,
    PORT_MODEL_MISSING, /* no partition */
    PORT_MODEL_EMPTY,   /* a partition without anything in it */
    PORT_MODEL_FAILED,  /* it cannot be read or mapped */
} port_model_state;

typedef struct port_model {
    const void *at; /* mapped, at a multiple of 64 */
    size_t bytes;   /* that the image's header says, at most the partition */
    size_t room;    /* of the partition */
    int error;      /* of PORT_MODEL_FAILED: the system's number */
} port_model;

port_model_state port_find_model(port *p, port_model *model);

/* ---------------------------------------------------------------------------------------------------------- the cores */

/* Runs a function on the second core. The caller's core is the first; both stay where they are. */
bool port_start_core(port *p, void (*run)(void *self), void *self);

/* On the second core: sleeps until port_wake_core, or returns at once if that was called since the last time. */
void port_sleep_core(port *p);
void port_wake_core(port *p);

/* Called in a loop that waits for the other core, with the number of its turn: 0 the first time, then one more each time, for what
 * is waited for is looked at between two turns. Returns at once on a chip; elsewhere it may sleep until port_told. */
void port_spin(uint32_t turn);

/* Called after a change that the other core may wait for in port_spin. There is nothing to do on a chip, whose cores do not sleep
 * there. */
#ifdef ESP_PLATFORM
static inline void port_told(port *p) { (void)p; }
#else
void port_told(port *p);
#endif

/* Waits until the function on the second core has returned. */
void port_end_core(port *p);

#endif
