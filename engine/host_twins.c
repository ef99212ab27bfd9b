/* The twins of the vector unit's kernels by name. */
#include "host_twins.h"

#include <stdbool.h>
#include <stddef.h>

#include "pie/pie.h"

#include "pie/pie.h"

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

VOID(chiplm_pie_rows2, (P(0), P(1), P(2), P(3), P(4)))
VOID(chiplm_pie_rows4, (P(0), P(1), P(2), P(3), P(4)))
VOID(chiplm_pie_rows8, (P(0), P(1), P(2), P(3), P(4)))
VOID(chiplm_pie_rows4_c64g64, (P(0), P(1), P(2), P(3), W(4), W(5)))
VOID(chiplm_pie_rows4_c128g64, (P(0), P(1), P(2), P(3), W(4), W(5)))
VOID(chiplm_pie_rows4_c128g128, (P(0), P(1), P(2), P(3), W(4), W(5)))
VOID(chiplm_pie_listed4_c128g64, (P(0), P(1), P(2), P(3), P(4), P(5)))
VOID(chiplm_pie_widen, (P(0), P(1), W(2)))
VOID(chiplm_pie_columns4, (P(0), P(1), P(2), P(3), P(4), P(5)))
VOID(chiplm_pie_add_columns4, (P(0), P(1), P(2), P(3), P(4), P(5)))
VOID(chiplm_pie_add_sums, (P(0), P(1), W(2)))
VOID(chiplm_pie_add_group, (P(0), P(1), P(2), W(3)))
VOID(chiplm_pie_scale, (P(0), W(1), W(2)))
VOID(chiplm_pie_bounds, (P(0), W(1), W(2), P(3), P(4)))
WORD(chiplm_pie_scores, (P(0), P(1), P(2), W(3), P(4), P(5)))
VOID(chiplm_pie_exp, (P(0), W(1), W(2), P(3)))
WORD(chiplm_pie_weigh, (P(0), P(1), W(2)))
VOID(chiplm_pie_mix, (P(0), P(1), W(2), W(3), P(4)))
VOID(chiplm_pie_divide, (P(0), W(1), W(2), W(3), W(4), P(5)))
WORD(chiplm_pie_top, (P(0), W(1)))
VOID(chiplm_pie_codes, (P(0), W(1), W(2), P(3), W(4)))
VOID(chiplm_pie_sums, (P(0), W(1), P(2)))
WORD(chiplm_pie_squares, (P(0), W(1)))
VOID(chiplm_pie_gain, (P(0), W(1), P(2), W(3), P(4)))
VOID(chiplm_pie_add, (P(0), P(1), W(2)))
VOID(chiplm_pie_blend, (P(0), P(1), W(2), W(3), W(4)))
VOID(chiplm_pie_gate, (P(0), P(1), W(2)))
VOID(chiplm_pie_rotate, (P(0), W(1), P(2), P(3)))
VOID(chiplm_pie_gelu, (P(0), W(1), P(2), P(3)))
VOID(chiplm_pie_negate, (P(0), W(1), P(2)))
VOID(chiplm_pie_sigmoid, (P(0), P(1), P(2), W(3), P(4), W(5)))
WORD(chiplm_pie_open, (P(0), W(1), P(2)))
WORD(chiplm_pie_used, (P(0), W(1), P(2)))
VOID(chiplm_pie_floats4, (P(0), W(1), W(2), P(3)))

static const twin twins[] = {
    ROW(chiplm_pie_rows2, 5),
    ROW(chiplm_pie_rows4, 5),
    ROW(chiplm_pie_rows8, 5),
    ROW(chiplm_pie_rows4_c64g64, 6),
    ROW(chiplm_pie_rows4_c128g64, 6),
    ROW(chiplm_pie_rows4_c128g128, 6),
    ROW(chiplm_pie_listed4_c128g64, 6),
    ROW(chiplm_pie_widen, 3),
    ROW(chiplm_pie_columns4, 6),
    ROW(chiplm_pie_add_columns4, 6),
    ROW(chiplm_pie_add_sums, 3),
    ROW(chiplm_pie_add_group, 4),
    ROW(chiplm_pie_scale, 3),
    ROW(chiplm_pie_bounds, 5),
    ROW(chiplm_pie_scores, 6),
    ROW(chiplm_pie_exp, 4),
    ROW(chiplm_pie_weigh, 3),
    ROW(chiplm_pie_mix, 5),
    ROW(chiplm_pie_divide, 6),
    ROW(chiplm_pie_top, 2),
    ROW(chiplm_pie_codes, 5),
    ROW(chiplm_pie_sums, 3),
    ROW(chiplm_pie_squares, 2),
    ROW(chiplm_pie_gain, 5),
    ROW(chiplm_pie_add, 3),
    ROW(chiplm_pie_blend, 5),
    ROW(chiplm_pie_gate, 3),
    ROW(chiplm_pie_rotate, 4),
    ROW(chiplm_pie_gelu, 4),
    ROW(chiplm_pie_negate, 3),
    ROW(chiplm_pie_sigmoid, 6),
    ROW(chiplm_pie_open, 3),
    ROW(chiplm_pie_used, 3),
    ROW(chiplm_pie_floats4, 4),
    {NULL, NULL, 0},
};

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
