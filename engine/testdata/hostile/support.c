/* Memory, files and counts of the programs. */
#define _POSIX_C_SOURCE 200809L
#include "hostile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void hostile_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

void *hostile_memory(size_t bytes, int fill) {
    void *p = NULL;
    WANT(posix_memalign(&p, 64, bytes) == 0 && p != NULL, "no memory for %zu bytes", bytes);
    memset(p, fill, bytes);
    return p;
}

void *hostile_copy(const void *bytes, size_t n) {
    void *p = hostile_memory(n, 0);
    if (n > 0) {
        memcpy(p, bytes, n);
    }
    return p;
}

void *hostile_read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    WANT(f != NULL && fseek(f, 0, SEEK_END) == 0, "%s cannot be read", path);
    const long end = ftell(f);
    WANT(end >= 0, "%s has no end", path);
    rewind(f);
    *size = (size_t)end;
    void *p = hostile_memory(*size, 0);
    WANT(fread(p, 1, *size, f) == *size, "%s cannot be read", path);
    fclose(f);
    return p;
}

/* ----------------------------------------------------------------------------------------------------------- counts */

static uint64_t counts[CHIPLM_STATUS_COUNT];
static uint64_t positions;
static struct timespec first;

void hostile_count(chiplm_status status) {
    if (first.tv_sec == 0) {
        clock_gettime(CLOCK_MONOTONIC, &first);
    }
    WANT(status < CHIPLM_STATUS_COUNT, "status %d", (int)status);
    counts[status]++;
}

void hostile_count_positions(uint64_t n) { positions += n; }

void hostile_summary(const char *what) {
    struct timespec now = {0};
    uint64_t cases = 0;
    for (unsigned i = 0; i < CHIPLM_STATUS_COUNT; i++) {
        cases += counts[i];
    }
    if (cases == 0) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)(now.tv_sec - first.tv_sec) + (double)(now.tv_nsec - first.tv_nsec) * 1e-9;
    printf("%s: %llu cases, %llu accepted (%.1f %%), %.1f s\n", what, (unsigned long long)cases, (unsigned long long)counts[CHIPLM_OK],
           100.0 * (double)counts[CHIPLM_OK] / (double)cases, seconds);
    if (positions > 0) {
        printf("%llu positions with finite logits, compared in every way\n", (unsigned long long)positions);
    }
    for (unsigned i = 1; i < CHIPLM_STATUS_COUNT; i++) {
        if (counts[i] > 0) {
            printf("status %u: %llu (%s)\n", i, (unsigned long long)counts[i], chiplm_status_text((chiplm_status)i));
        }
    }
    fflush(stdout);
}
