/* The twins of the vector unit's kernels by name. */
#include "host_twins.h"

#include <stdbool.h>
#include <stddef.h>

#include "pie/pie.h"

typedef struct twin {
    const char *name;
    uint32_t (*call)(const chiplm_twin_argument *a);
    int count;
} twin;

/* A twin takes one row: its name, how many arguments it has, and the arguments, P(i) as a pointer, W(i) as a word. VOID: it
 * returns nothing; WORD: a word. */
#define P(i) (a[i].at)
#define W(i) (a[i].word)
#define TWINS(VOID, WORD) \
    VOID(chiplm_pie_rows2, 5, (P(0), P(1), P(2), P(3), P(4))) \
    VOID(chiplm_pie_rows4, 5, (P(0), P(1), P(2), P(3), P(4))) \
    VOID(chiplm_pie_rows8, 5, (P(0), P(1), P(2), P(3), P(4))) \
    VOID(chiplm_pie_rows4_c64g64, 6, (P(0), P(1), P(2), P(3), W(4), W(5))) \
    VOID(chiplm_pie_rows4_c128g64, 6, (P(0), P(1), P(2), P(3), W(4), W(5))) \
    VOID(chiplm_pie_rows4_c128g128, 6, (P(0), P(1), P(2), P(3), W(4), W(5))) \
    VOID(chiplm_pie_listed4_c128g64, 6, (P(0), P(1), P(2), P(3), P(4), P(5))) \
    VOID(chiplm_pie_widen, 3, (P(0), P(1), W(2))) \
    VOID(chiplm_pie_columns4, 6, (P(0), P(1), P(2), P(3), P(4), P(5))) \
    VOID(chiplm_pie_add_columns4, 6, (P(0), P(1), P(2), P(3), P(4), P(5))) \
    VOID(chiplm_pie_add_sums, 3, (P(0), P(1), W(2))) \
    VOID(chiplm_pie_add_group, 4, (P(0), P(1), P(2), W(3))) \
    VOID(chiplm_pie_scale, 3, (P(0), W(1), W(2))) \
    VOID(chiplm_pie_bounds, 5, (P(0), W(1), W(2), P(3), P(4))) \
    WORD(chiplm_pie_scores, 6, (P(0), P(1), P(2), W(3), P(4), P(5))) \
    VOID(chiplm_pie_exp, 4, (P(0), W(1), W(2), P(3))) \
    WORD(chiplm_pie_weigh, 3, (P(0), P(1), W(2))) \
    VOID(chiplm_pie_mix, 5, (P(0), P(1), W(2), W(3), P(4))) \
    VOID(chiplm_pie_divide, 6, (P(0), W(1), W(2), W(3), W(4), P(5))) \
    WORD(chiplm_pie_top, 2, (P(0), W(1))) \
    VOID(chiplm_pie_codes, 5, (P(0), W(1), W(2), P(3), W(4))) \
    VOID(chiplm_pie_sums, 3, (P(0), W(1), P(2))) \
    WORD(chiplm_pie_squares, 2, (P(0), W(1))) \
    VOID(chiplm_pie_gain, 5, (P(0), W(1), P(2), W(3), P(4))) \
    VOID(chiplm_pie_add, 3, (P(0), P(1), W(2))) \
    VOID(chiplm_pie_blend, 5, (P(0), P(1), W(2), W(3), W(4))) \
    VOID(chiplm_pie_gate, 3, (P(0), P(1), W(2))) \
    VOID(chiplm_pie_rotate, 4, (P(0), W(1), P(2), P(3))) \
    VOID(chiplm_pie_gelu, 4, (P(0), W(1), P(2), P(3))) \
    VOID(chiplm_pie_negate, 3, (P(0), W(1), P(2))) \
    VOID(chiplm_pie_sigmoid, 6, (P(0), P(1), P(2), W(3), P(4), W(5))) \
    WORD(chiplm_pie_open, 3, (P(0), W(1), P(2))) \
    WORD(chiplm_pie_used, 3, (P(0), W(1), P(2))) \
    VOID(chiplm_pie_floats4, 4, (P(0), W(1), W(2), P(3)))

#define CALL_VOID(name, count, list)                             \
    static uint32_t call_##name(const chiplm_twin_argument *a) { \
        name list;                                               \
        return 0;                                                \
    }
#define CALL_WORD(name, count, list) \
    static uint32_t call_##name(const chiplm_twin_argument *a) { return (uint32_t)name list; }
#define ROW(name, count, list) {#name, call_##name, count},

TWINS(CALL_VOID, CALL_WORD)

static const twin twins[] = {TWINS(ROW, ROW){NULL, NULL, 0}};

static bool is_name(const char *a, const char *b) {
    for (; *a != 0 && *a == *b; a++) {
        b++;
    }
    return *a == *b;
}

int chiplm_call_twin(const char *name, const chiplm_twin_argument *arguments, int count, uint32_t *returned) {
    for (const twin *t = twins; t->name != NULL; t++) {
        if (is_name(t->name, name)) {
            if (t->count == count) {
                *returned = t->call(arguments);
            }
            return t->count;
        }
    }
    return -1;
}
