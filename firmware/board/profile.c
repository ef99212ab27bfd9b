/* Where the time of a token goes. */
#include "profile.h"

void profile_start(profile *p, port *machine) {
    p->port = machine;
    p->tokens = 0;
    p->n = 0;
    profile_begin(p);
}

void profile_begin(profile *p) { p->last = port_cycles(p->port); }

static bool is_same(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static profile_entry *entry_of(profile *p, const char *name) {
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->entry[i].name == name || is_same(p->entry[i].name, name)) {
            return &p->entry[i];
        }
    }
    if (p->n == PROFILE_MOST) {
        return &p->entry[PROFILE_MOST - 1];
    }
    p->entry[p->n] = (profile_entry){.name = name};
    return &p->entry[p->n++];
}

/* The bookkeeping of the profile itself is not counted. */
void profile_mark(profile *p, const char *name) {
    const uint32_t elapsed = port_cycles(p->port) - p->last;
    entry_of(p, name)->cycles += elapsed;
    profile_begin(p);
}

void profile_step(void *self, const chiplm_step *step) { profile_mark(self, step->name); }

static uint64_t hundredths(const profile *p, uint64_t cycles) {
    const uint64_t a_token = (uint64_t)port_chip_of(p->port)->clock_mhz * (p->tokens > 0 ? p->tokens : 1);
    return (cycles * 100 + a_token / 2) / a_token;
}

uint64_t profile_total(const profile *p) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        sum += p->entry[i].cycles;
    }
    return hundredths(p, sum);
}

void profile_put(const profile *p, writer *w) {
    put(w, "[");
    for (uint32_t i = 0; i < p->n; i++) {
        put(w, i == 0 ? "{" : ",{");
        put_key(w, "operation");
        put_json(w, p->entry[i].name);
        put_key(w, "us");
        put_decimal(w, hundredths(p, p->entry[i].cycles), 2);
        put(w, "}");
    }
    put(w, "]");
}
