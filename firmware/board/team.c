/* The hand-over between two cores. Each word is written by one core alone, so plain loads and stores are enough. */
#include "team.h"

static void work(void *self) {
    team *t = self;
    uint32_t seen = 0;
    for (uint32_t turn = 0;; turn++) {
        if (atomic_load_explicit(&t->posted, memory_order_acquire) != seen) {
            t->part(t->argument, 1);
            seen++;
            atomic_store_explicit(&t->done, seen, memory_order_release);
            port_told(t->port);
            turn = 0;
        } else if (atomic_load_explicit(&t->awake, memory_order_acquire) != 0) {
            port_spin(turn);
        } else if (atomic_load_explicit(&t->ended, memory_order_acquire) != 0) {
            return;
        } else {
            port_sleep_core(t->port);
            turn = 0;
        }
    }
}

bool team_start(team *t, port *p) {
    t->port = p;
    atomic_store(&t->posted, 0);
    atomic_store(&t->done, 0);
    atomic_store(&t->awake, 0);
    atomic_store(&t->ended, 0);
    return port_start_core(p, work, t);
}

void team_wake(team *t) {
    atomic_store_explicit(&t->awake, 1, memory_order_release);
    port_wake_core(t->port);
}

void team_rest(team *t) { atomic_store_explicit(&t->awake, 0, memory_order_release); }

void team_run(void *self, void (*part)(void *argument, uint32_t index), void *argument) {
    team *t = self;
    t->part = part;
    t->argument = argument;
    const uint32_t job = atomic_load_explicit(&t->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&t->posted, job, memory_order_release);
    port_told(t->port);
    part(argument, 0);
    for (uint32_t turn = 0; atomic_load_explicit(&t->done, memory_order_acquire) != job; turn++) {
        port_spin(turn);
    }
}

void team_end(team *t) {
    team_rest(t);
    atomic_store_explicit(&t->ended, 1, memory_order_release);
    port_wake_core(t->port);
    port_end_core(t->port);
}
