/* profile.h - where the time of a token goes, from the steps that the engine shows a tracer. Internal. */
#ifndef CHIPLM_BOARD_PROFILE_H
#define CHIPLM_BOARD_PROFILE_H

#include "chiplm.h"
#include "port.h"
#include "writer.h"

enum { PROFILE_MOST = 24 };

typedef struct profile_entry {
    const char *name; /* static */
    uint64_t cycles;
} profile_entry;

/* The time between two steps belongs to the second: that of "gate" holds the norm and the quantisation before it. */
typedef struct profile {
    port *port;
    uint32_t last;   /* cycles at the last step */
    uint32_t tokens; /* that were measured */
    uint32_t n;
    profile_entry entry[PROFILE_MOST];
} profile;

void profile_start(profile *p, port *machine);

/* From here on until the next step the time counts again. */
void profile_begin(profile *p);

/* A chiplm_tracer: self is a profile. */
void profile_step(void *self, const chiplm_step *step);

/* Counts the time since the last step as that of an operation of this name, which is static. */
void profile_mark(profile *p, const char *name);

/* [{"operation":"...","us":1.2},...], the mean of a token. */
void profile_put(const profile *p, writer *w);

/* Microseconds a token, in hundredths. */
uint64_t profile_total(const profile *p);

#endif
