/* The hand-over between two cores on a host: every job is done once by each, and who waits long sleeps. */
#define _GNU_SOURCE
#include <sys/resource.h>

#include "../../port_host.c"
#include "../../team.h"

enum { JOBS = 20000, LONG_MS = 300 };

void board_run(board *b, port *p) { /* of the port, not of this */
    (void)b;
    (void)p;
}

static struct {
    uint64_t random;
    uint32_t done[2];
    long switches[2]; /* of the second core, that it asked for, when a part ended */
} job;

static long switches(void) {
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_nvcsw : -1;
}

static void count(void *argument, uint32_t index) {
    (void)argument;
    const uint32_t how = (uint32_t)(job.random >> (32 * index)) % 16;
    if (how == 0) { /* long enough for the other to fall asleep */
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    for (volatile uint32_t i = 0; i < 1000 * (how == 1); i++) {
    }
    job.done[index]++;
}

static void first_takes_long(void *argument, uint32_t index) {
    (void)argument;
    if (index == 0) {
        pause_ms(LONG_MS);
    } else {
        job.switches[0] = switches();
    }
}

static void look(void *argument, uint32_t index) {
    (void)argument;
    if (index == 1) {
        job.switches[1] = switches();
    }
}

static void second_takes_long(void *argument, uint32_t index) {
    (void)argument;
    if (index == 1) {
        pause_ms(LONG_MS);
    }
}

int main(void) {
    static port p = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    static team t;
    mine = &p;
    if (!team_start(&t, &p)) {
        return 1;
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        if (i % 16 == 0) {
            team_wake(&t);
        }
        job.random = job.random * 6364136223846793005U + 1442695040888963407U;
        team_run(&t, count, NULL);
        if (job.done[0] != i + 1 || job.done[1] != i + 1) {
            return 2;
        }
        if (i % 16 == 15) {
            team_rest(&t);
        }
    }
    team_wake(&t);
    team_run(&t, first_takes_long, NULL);
    team_run(&t, look, NULL);
    const long before = switches();
    team_run(&t, second_takes_long, NULL);
    const long after = switches();
    team_end(&t);
    printf("%ld %ld\n", job.switches[1] - job.switches[0], after - before);
    return 0;
}
