/* board.h - the firmware's state. Internal.
 *
 * A board boots (boot.c), then answers requests (protocol.c) until it restarts. All memory is taken at the boot: the state
 * itself and the weights that are copied lie in it for good, and no request takes any. */
#ifndef CHIPLM_BOARD_H
#define CHIPLM_BOARD_H

#include "chiplm.h"
#include "input.h"
#include "output.h"
#include "profile.h"
#include "team.h"

enum { BOARD_PROTOCOL = 1, BOARD_BATCH = 8, BOARD_MODES = 3, BOARD_FAILURE = 480 };

/* How the model is run: both cores with the fastest path, one core with it, one core with plain C. */
typedef enum board_mode { MODE_BOTH, MODE_ONE, MODE_PLAIN } board_mode;

/* Where a tensor was copied to; null where it stays in the image. */
typedef struct board_copy {
    const uint8_t *codes, *scales;
} board_copy;

/* What the boot took of a memory. */
typedef struct board_use {
    size_t buffers, weights;
} board_use;

typedef struct board {
    port *port;
    output out;
    input in;
    team team;
    bool team_started;

    /* Why there is no model to run: code null when there is one. */
    const char *code;
    char failure[BOARD_FAILURE];

    port_model found;
    chiplm_image image; /* file.at null: none was accepted */
    chiplm *lm;
    board_mode mode; /* of lm */
    void *arena, *cache;
    size_t arena_bytes, cache_bytes;
    float *logits;       /* [vocab_size] or the best ones */
    int32_t *order;      /* [vocab_size] ids beside them */
    int32_t *prompt;     /* [context_length] */
    void *encode_index, *encode_scratch;
    size_t encode_bytes; /* of scratch: enough for any line */
    board_copy *copies;  /* [n_tensors] */
    board_use use[PORT_MEMORIES];
    uint32_t speeds[PORT_MEMORIES + 1][2]; /* sequential reads, in 10 kB/s: sram, psram, flash; one core, two */
    uint64_t verify_us;

    bool profiling;
    profile profile; /* of the last request that ran with profiling on */
} board;

/* Boots and answers until a virtual board is to end. b is zeroed memory; p the machine. */
void board_run(board *b, port *p);

/* ---------------------------------------------------------------------------------------------------------- boot.c */

/* Makes b->lm, or says in b->code and b->failure why there is none. */
void board_boot(board *b);

/* Makes b->lm a context of a mode, at position 0, with the tensors where the boot put them. Cheap. */
chiplm_status board_start(board *b, board_mode mode);

/* Notes a failure and gives the writer of its sentence, to be ended with put_end. */
writer board_fail(board *b, const char *code);

/* --------------------------------------------------------------------------------------------------------- place.c */

/* Copies tensors to where the image places them. False after board_fail. */
bool board_place(board *b);

/* Takes memory for a purpose. Null after board_fail, which says what was wanted and what was free. */
void *board_take(board *b, port_memory memory, size_t bytes, const char *purpose, bool weights);

const char *board_memory_name(unsigned memory);

/* -------------------------------------------------------------------------------------------------------- report.c */

/* The remarks of the boot, and the answer to I. */
void board_report(board *b);
void board_info(board *b);

/* ------------------------------------------------------------------------------------------------------ protocol.c */

typedef enum board_end { BOARD_RESTART, BOARD_STOP } board_end;

/* Answers requests. */
board_end board_serve(board *b);

/* The beginning of an error line; the caller puts the sentence and ends it with output_line. */
writer *board_error(board *b, const char *code);

/* The error line of a status that the engine gave. */
void board_engine_error(board *b, chiplm_status status);

/* ------------------------------------------------------------------------------------------------------ generate.c */

typedef struct board_request {
    uint32_t most;        /* tokens */
    uint32_t temperature; /* thousandths */
    uint32_t top_k;
    uint64_t seed;
    bool show;       /* the bytes of each token */
    uint32_t length; /* of b->prompt */
} board_request;

void board_generate(board *b, const board_request *r);

/* Feeds ids and puts the k best tokens into b->order and b->logits; k 0: all logits into b->logits. */
chiplm_status board_feed(board *b, const int32_t *ids, size_t n, uint32_t k);

/* The k to ask board_feed for: 0 where reading all logits is faster. */
uint32_t board_best(const board *b, uint32_t temperature, uint32_t top_k);

/* ------------------------------------------------------------------------------------------------------- compare.c */

void board_digest(board *b, uint32_t n, board_mode mode);

/* ----------------------------------------------------------------------------------------------------- benchmark.c */

/* The answer to M. */
void board_benchmark(board *b);

/* Fills b->speeds. */
void board_measure_memories(board *b);

#endif
