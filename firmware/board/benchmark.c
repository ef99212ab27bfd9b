/* The benchmark: what the chip's memories, cores and kernels do, in the form that the cost model is calibrated with. Everything
 * runs in memory that the boot took. */
#include "board.h"
#include "kernel_times.h"

enum {
    USUAL_TEMPERATURE = 800, /* of a request */
    USUAL_BEST = 40,
    SRAM = PORT_SRAM,
    PSRAM = PORT_PSRAM,
    FLASH,
    MEMORIES,
    LEAST_US = 20000, /* that a measurement of a memory lasts, at least */
    MOST_TURNS = 4096,
    MOST_PASS = 1 << 20, /* bytes read in one pass */
    ROWS = 256, /* that are read between two looks at the time */
    LEAST_ROWS_US = 2000,
    ROW_DECIMALS = 4,
    ROW_UNITS = 10000, /* a microsecond */
    HANDOVERS = 1000,
    COPY = 4096, /* bytes of a DMA copy at most */
    POINTS = 9,  /* positions whose time is told */
};

/* ------------------------------------------------------------------------------------------------------ memories */

typedef struct region {
    const uint8_t *at;
    size_t bytes; /* a multiple of 128 */
} region;

/* A piece of each memory: the engine's buffers, the cache, the image. */
static region region_of(const board *b, unsigned memory) {
    const region all[MEMORIES] = {
        [SRAM] = {b->arena, b->arena_bytes},
        [PSRAM] = {b->cache, b->cache_bytes},
        [FLASH] = {b->image.file.at, b->image.file.bytes},
    };
    region r = all[memory];
    r.bytes = r.bytes / 128 * 128;
    return r;
}

typedef struct reading {
    region r;
    uint32_t members;
} reading;

static void read_part(void *argument, uint32_t member) {
    const reading *job = argument;
    const size_t part = job->r.bytes / job->members / 64 * 64;
    port_read_through(job->r.at + member * part, part);
}

/* Ten kB/s: bytes a millisecond / 10. */
static uint32_t speed(uint64_t bytes, uint64_t microseconds) {
    return (uint32_t)(bytes * 100 / (microseconds > 0 ? microseconds : 1));
}

static uint32_t read_speed(board *b, region r, uint32_t members) {
    r.bytes = r.bytes < MOST_PASS ? r.bytes : MOST_PASS;
    reading job = {.r = r, .members = members};
    const uint64_t start = port_microseconds(b->port);
    uint64_t bytes = 0, elapsed = 0;
    for (uint32_t turn = 0; turn < MOST_TURNS && elapsed < LEAST_US; turn++) {
        if (members == 1) {
            read_part(&job, 0);
        } else {
            team_run(&b->team, read_part, &job);
        }
        bytes += r.bytes / members / 64 * 64 * members;
        elapsed = port_microseconds(b->port) - start;
    }
    port_feed(b->port);
    return speed(bytes, elapsed);
}

void board_measure_memories(board *b) {
    team_wake(&b->team);
    for (unsigned i = 0; i < MEMORIES; i++) {
        b->speeds[i][0] = read_speed(b, region_of(b, i), 1);
        b->speeds[i][1] = read_speed(b, region_of(b, i), 2);
    }
    team_rest(&b->team);
}

/* Microseconds of reading so many bytes at a random place, in ten-thousandths; never 0. */
static uint64_t row_time(board *b, region r, size_t bytes) {
    uint64_t random = 1;
    const size_t places = (r.bytes - bytes) / 64 + 1;
    const uint64_t start = port_microseconds(b->port);
    uint64_t rows = 0, elapsed = 0;
    while (elapsed < LEAST_ROWS_US) {
        for (uint32_t i = 0; i < ROWS; i++) {
            port_read_through(r.at + (size_t)(chiplm_random(&random) % places) * 64, bytes);
        }
        rows += ROWS;
        elapsed = port_microseconds(b->port) - start;
    }
    port_feed(b->port);
    const uint64_t time = elapsed * ROW_UNITS / rows;
    return time > 0 ? time : 1;
}

static void put_memory(board *b, unsigned memory) {
    static const size_t rows[] = {64, 128, 512, 2048};
    writer *w = &b->out.w;
    const region r = region_of(b, memory);
    put(w, memory == 0 ? "{" : ",{");
    put_key(w, "name");
    put_json(w, board_memory_name(memory));
    put_key(w, "sequential_mb_s");
    put(w, "{");
    put_key(w, "one_core");
    put_decimal(w, read_speed(b, r, 1), 2);
    put_key(w, "two_cores");
    put_decimal(w, read_speed(b, r, 2), 2);
    put(w, "}");
    put_key(w, "rows");
    put(w, "[");
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0] && rows[i] <= r.bytes; i++) {
        put(w, i == 0 ? "{" : ",{");
        put_key(w, "bytes");
        put_number(w, rows[i]);
        put_key(w, "us");
        put_decimal(w, row_time(b, r, rows[i]), ROW_DECIMALS);
        put(w, "}");
    }
    put(w, "]}");
}

/* From PSRAM to SRAM; null where there is no DMA. The logits are free now. */
static void put_copies(board *b) {
    writer *w = &b->out.w;
    const region from = region_of(b, PSRAM);
    size_t bytes = b->image.model.vocab_size * sizeof(float) / 64 * 64;
    bytes = bytes < COPY ? bytes : COPY;
    const uint64_t start = port_microseconds(b->port);
    uint64_t copied = 0;
    for (size_t at = 0; bytes > 0 && at + bytes <= from.bytes && at < MOST_PASS; at += bytes) {
        if (!port_copy(b->port, b->logits, from.at + at, bytes)) {
            break;
        }
        copied += bytes;
    }
    put_key(w, "dma_copy_mb_s");
    if (copied == 0) {
        put(w, "null");
    } else {
        put_decimal(w, speed(copied, port_microseconds(b->port) - start), 2);
    }
}

/* ---------------------------------------------------------------------------------------------------------- cores */

static void nothing(void *argument, uint32_t member) {
    (void)argument;
    (void)member;
}

static uint32_t handover(board *b) {
    team_run(&b->team, nothing, NULL);
    const uint32_t start = port_cycles(b->port);
    for (uint32_t i = 0; i < HANDOVERS; i++) {
        team_run(&b->team, nothing, NULL);
    }
    return (port_cycles(b->port) - start) / HANDOVERS;
}

/* --------------------------------------------------------------------------------------------------------- tokens */

/* The positions whose time is told: spread over the context, its first and last among them. */
static uint32_t place(const board *b, uint32_t point) {
    return (uint32_t)(point * (uint64_t)(b->image.model.context_length - 1) / (POINTS - 1));
}

/* Writes a whole context of best tokens, found in the way of requests that choose among the usual number, with which plans
 * count. Notes the time at some positions, and profiles all. */
static chiplm_status measure_tokens(board *b, uint32_t *points, bool *stopped) {
    const uint32_t context = b->image.model.context_length;
    const uint32_t k = board_best(b, USUAL_TEMPERATURE, USUAL_BEST);
    int32_t id = chiplm_image_end_of_text(&b->image);
    uint32_t point = 0;
    chiplm_reset(b->lm);
    profile_start(&b->profile, b->port);
    for (uint32_t position = 0; position < context && !*stopped; position++) {
        const bool tell = position == place(b, point); /* unprofiled */
        chiplm_trace(b->lm, tell ? NULL : profile_step, &b->profile);
        profile_begin(&b->profile);
        const uint64_t start = port_microseconds(b->port);
        chiplm_status status = board_feed(b, &id, 1, k);
        const uint32_t elapsed = (uint32_t)(port_microseconds(b->port) - start);
        if (tell) {
            for (; point < POINTS && place(b, point) == position; point++) { /* some, in a short context */
                points[point] = elapsed;
            }
        } else {
            profile_mark(&b->profile, "head");
            b->profile.tokens++;
        }
        if (status == CHIPLM_OK) {
            status = k == 0 ? chiplm_arg_max(b->logits, b->image.model.vocab_size, &id) : CHIPLM_OK;
            id = k == 0 ? id : b->order[0];
        }
        if (status != CHIPLM_OK) {
            return status;
        }
        port_feed(b->port);
        *stopped = input_wants_stop(&b->in);
    }
    return CHIPLM_OK;
}

static void put_tokens(board *b, const uint32_t *points) {
    writer *w = &b->out.w;
    put_key(w, "token");
    put(w, "[");
    for (uint32_t i = 0; i < POINTS; i++) {
        if (i > 0 && place(b, i) == place(b, i - 1)) {
            continue;
        }
        put(w, i == 0 ? "{" : ",{");
        put_key(w, "position");
        put_number(w, place(b, i));
        put_key(w, "us");
        put_number(w, points[i]);
        put(w, "}");
    }
    put(w, "]");
    put_key(w, "profile");
    profile_put(&b->profile, w);
}

void board_benchmark(board *b) {
    uint32_t points[POINTS] = {0};
    bool stopped = false;
    writer *w = &b->out.w;
    const port_chip *chip = port_chip_of(b->port);
    const chiplm_status status = measure_tokens(b, points, &stopped);
    chiplm_trace(b->lm, NULL, NULL);
    if (status != CHIPLM_OK) {
        board_engine_error(b, status);
        return;
    }
    if (stopped) {
        put(board_error(b, "stopped"), "the benchmark was stopped by X");
        output_line(&b->out);
        return;
    }
    put(w, "{");
    put_key(w, "format");
    put_json(w, "chiplm-benchmark-1");
    put_key(w, "target");
    put_json(w, chip->target);
    put_key(w, "virtual");
    put(w, chip->is_virtual ? "true" : "false");
    put_key(w, "firmware");
    put_json(w, chip->firmware);
    put_key(w, "model");
    put(w, "\"");
    put_hash(w, b->image.model.model_sha256, sizeof b->image.model.model_sha256);
    put(w, "\"");
    put_key(w, "clock_mhz");
    put_number(w, chip->clock_mhz);
    put_key(w, "psram_mhz");
    put_number(w, chip->psram_mhz);
    put_key(w, "cores");
    put_number(w, chip->cores);
    put_key(w, "cache_line");
    put_number(w, chip->cache_line);
    put_key(w, "memories");
    put(w, "[");
    for (unsigned i = 0; i < MEMORIES; i++) {
        put_memory(b, i);
    }
    put(w, "]");
    put_copies(b);
    put_key(w, "handover_cycles");
    put_number(w, handover(b));
    put_key(w, "kernels");
    put(w, "[");
    board_kernel_times(b);
    put(w, "]");
    put_tokens(b, points);
    put(w, "}");
    output_line(&b->out);
}
