/* The twins of the vector unit's kernels by name. */
#include "host_twins.h"

#include <stddef.h>
#include <string.h>

typedef struct twin {
    const char *name;
    uint32_t (*call)(const chiplm_twin_argument *a);
    int count;
} twin;

/* A twin takes a row here and one in the table. VOID: it returns nothing; WORD: a word. P(i) is argument i as a pointer, W(i) as
 * a word:
 *
 *     VOID(chiplm_pie_zero, (P(0), W(1)))
 *     ...
 *     ROW(chiplm_pie_zero, 2), */
#define P(i) (a[i].at)
#define W(i) (a[i].word)
#define VOID(name, list)                                            \
    static uint32_t call_##name(const chiplm_twin_argument *a) {    \
        name list;                                                  \
        return 0;                                                   \
    }
#define WORD(name, list) \
    static uint32_t call_##name(const chiplm_twin_argument *a) { return (uint32_t)name list; }
#define ROW(name, count) {#name, call_##name, count}

static const twin twins[] = {
    {NULL, NULL, 0},
};

int chiplm_call_twin(const char *name, const chiplm_twin_argument *arguments, int count, uint32_t *returned) {
    for (const twin *t = twins; t->name != NULL; t++) {
        if (strcmp(t->name, name) == 0) {
            if (t->count == count) {
                *returned = t->call(arguments);
            }
            return t->count;
        }
    }
    return -1;
}
