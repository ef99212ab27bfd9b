/* A team of POSIX threads. Compiled by the host's build alone, which sets CHIPLM_HOST. */
#include "host_team.h"

#ifdef CHIPLM_HOST

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 2000, LINE = 64 };

/* In host_team.done: the caller sleeps. The rest of the word counts the members that are done. */
#define CALLER_SLEEPS 0x80000000U

struct chiplm_host_team {
    void (*part)(void *argument, uint32_t index);
    void *argument;
    uint32_t members;
    uint32_t started;
    bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct chiplm_host_member {
        chiplm_host_team *team;
        uint32_t index;
        pthread_t thread;
    } member[CHIPLM_MAX_MEMBERS];
    _Alignas(LINE) atomic_uint job; /* counts jobs: a change starts the next */
    _Alignas(LINE) atomic_uint done;
    _Alignas(LINE) atomic_uint sleepers;
    pthread_cond_t finished;
};

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits for a job after the one seen. A thread that goes to sleep counts itself before it looks at job a last time, and
 * the caller counts the job before it looks for sleepers: one of the two sees the other. */
static void wait_for_job(chiplm_host_team *team, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&team->job, memory_order_acquire) != seen) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->job) == seen) {
        pthread_cond_wait(&team->wake, &team->mutex);
    }
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
}

static void *work(void *argument) {
    const struct chiplm_host_member *member = argument;
    chiplm_host_team *team = member->team;
    for (unsigned seen = 0;; seen++) {
        wait_for_job(team, seen);
        if (team->stop) {
            return NULL;
        }
        team->part(team->argument, member->index);
        if ((atomic_fetch_add(&team->done, 1) & CALLER_SLEEPS) != 0) {
            pthread_mutex_lock(&team->mutex);
            pthread_cond_signal(&team->finished);
            pthread_mutex_unlock(&team->mutex);
        }
    }
}

static void publish(chiplm_host_team *team) {
    atomic_fetch_add(&team->job, 1);
    if (atomic_load(&team->sleepers) > 0) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_broadcast(&team->wake);
        pthread_mutex_unlock(&team->mutex);
    }
}

/* Waits until the other members are done: spins, then sleeps, since one of them may be waiting for this core. That it
 * sleeps stands in the word that they count in, so each of them either comes before, and is counted here, or sees it. (With
 * a flag of its own this rested on a store and a later load of two words staying in order, which not all emulators of a
 * processor keep.) */
static void wait_for_members(chiplm_host_team *team) {
    const unsigned others = team->members - 1;
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&team->done, memory_order_acquire) == others) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&team->mutex);
    unsigned done = atomic_fetch_or(&team->done, CALLER_SLEEPS);
    while ((done & ~CALLER_SLEEPS) != others) {
        pthread_cond_wait(&team->finished, &team->mutex);
        done = atomic_load(&team->done);
    }
    pthread_mutex_unlock(&team->mutex);
}

static void run(void *self, void (*part)(void *argument, uint32_t index), void *argument) {
    chiplm_host_team *team = self;
    team->part = part;
    team->argument = argument;
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    publish(team);
    part(argument, 0);
    wait_for_members(team);
}

chiplm_host_team *chiplm_host_team_start(uint32_t members, chiplm_team *team) {
    if (members < 1 || members > CHIPLM_MAX_MEMBERS) {
        return NULL;
    }
    chiplm_host_team *t = aligned_alloc(LINE, (sizeof *t + LINE - 1) / LINE * LINE);
    if (t == NULL) {
        return NULL;
    }
    t->members = members;
    t->started = 0;
    t->stop = false;
    atomic_init(&t->job, 0);
    atomic_init(&t->done, 0);
    atomic_init(&t->sleepers, 0);
    if (pthread_mutex_init(&t->mutex, NULL) != 0) {
        free(t);
        return NULL;
    }
    if (pthread_cond_init(&t->wake, NULL) != 0) {
        pthread_mutex_destroy(&t->mutex);
        free(t);
        return NULL;
    }
    if (pthread_cond_init(&t->finished, NULL) != 0) {
        pthread_cond_destroy(&t->wake);
        pthread_mutex_destroy(&t->mutex);
        free(t);
        return NULL;
    }
    for (uint32_t i = 1; i < members; i++) {
        t->member[i].team = t;
        t->member[i].index = i;
        if (pthread_create(&t->member[i].thread, NULL, work, &t->member[i]) != 0) {
            chiplm_host_team_stop(t);
            return NULL;
        }
        t->started = i;
    }
    *team = (chiplm_team){.members = members, .run = run, .self = t};
    return t;
}

void chiplm_host_team_stop(chiplm_host_team *team) {
    if (team == NULL) {
        return;
    }
    team->stop = true;
    publish(team);
    for (uint32_t i = 1; i <= team->started; i++) {
        pthread_join(team->member[i].thread, NULL);
    }
    pthread_cond_destroy(&team->finished);
    pthread_cond_destroy(&team->wake);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

#endif
