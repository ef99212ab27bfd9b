/* host_team.h - a team of threads for a context on a host with POSIX threads. Not part of the core: a chip brings its
 * own. A waiting thread spins for some microseconds, then sleeps, so that steps that follow each other closely start
 * without the system's help. */
#ifndef CHIPLM_HOST_TEAM_H
#define CHIPLM_HOST_TEAM_H

#include "chiplm.h"

typedef struct chiplm_host_team chiplm_host_team;

/* Starts a team of 1..CHIPLM_MAX_MEMBERS members, the caller of chiplm_forward being one, and fills team for
 * chiplm_options. Null when there is no memory or no thread. */
chiplm_host_team *chiplm_host_team_start(uint32_t members, chiplm_team *team);

/* Ends the threads; no context may be running. null is allowed. */
void chiplm_host_team_stop(chiplm_host_team *team);

#endif
