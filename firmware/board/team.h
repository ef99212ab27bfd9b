/* team.h - two cores as a team of the engine: the second waits for jobs in a loop, so that handing one over takes some tens of
 * cycles, and sleeps between requests. Internal. */
#ifndef CHIPLM_BOARD_TEAM_H
#define CHIPLM_BOARD_TEAM_H

#include <stdatomic.h>

#include "port.h"

/* In internal memory: both cores look at it all the time. */
typedef struct team {
    port *port;
    void (*part)(void *argument, uint32_t index);
    void *argument;
    _Atomic uint32_t posted; /* counts jobs */
    _Atomic uint32_t done;   /* of them, by the second core */
    _Atomic uint32_t awake;
    _Atomic uint32_t ended;
} team;

/* Starts the second core, asleep. */
bool team_start(team *t, port *p);

/* Before and after a number of jobs. */
void team_wake(team *t);
void team_rest(team *t);

/* chiplm_team.run for two members; self is a team that is awake. */
void team_run(void *self, void (*part)(void *argument, uint32_t index), void *argument);

/* Ends the second core's function. */
void team_end(team *t);

#endif
