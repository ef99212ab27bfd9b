/* hostile.h - feeds the engine what it must survive: broken images, and calls in any order with any arguments.
 *
 *   arena.c               the parts of a context's arena, as the engine's own header describes them
 *   seal.c                the tables of an image as far as they can be followed, and its CRCs
 *   mutate.c, rules.c     change images, so that most changes get past the CRCs and many past every check
 *   images.c              opens an image and, when it is accepted, runs it every way
 *   texts.c               encodes texts
 *   calls.c, requests.c   make calls on good images, as an input says, and hold each to what chiplm.h promises
 *   fuzzer.c              the functions that libFuzzer calls (clang)
 *   replay.c              a program that does without libFuzzer: seeds, and changes of them drawn from a fixed seed
 *
 * Whatever goes against chiplm.h ends the program. All memory that the engine is given is allocated to the byte, so that
 * a sanitizer sees every step outside. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "../../chiplm.h"

/* Says what is wrong, and ends the program. */
_Noreturn void hostile_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define WANT(condition, ...) ((condition) ? (void)0 : hostile_fail(__FILE__, __LINE__, __VA_ARGS__))

/* Memory of exactly so many bytes, each set to fill, at a multiple of 64. free releases it. */
void *hostile_memory(size_t bytes, int fill);

/* A copy of as many bytes. */
void *hostile_copy(const void *bytes, size_t n);

/* Holds the parts of a new context's arena apart, and lets a sanitizer see steps into the space between them. */
void hostile_check_arena(const chiplm *lm);

/* A number below n, which is not 0, from a state of splitmix64. */
uint64_t hostile_below(uint64_t *random, uint64_t n);

/* Little-endian numbers of 1, 2, 4 or 8 bytes. */
uint64_t hostile_get(const uint8_t *p, unsigned width);
void hostile_put(uint8_t *p, unsigned width, uint64_t value);

/* ---------------------------------------------------------------------------------------------------------- images */

enum { MODL, CONF, TENS, ROPE, TOKN, GOLD, DATA, SECTIONS };
enum { HEADER = 64, SECTION_ENTRY = 32, TENSOR_ENTRY = 128, MODEL_BYTES = 192 };

typedef struct part {
    size_t at, bytes; /* 0 bytes when the tables point outside */
} part;

/* An image as far as its tables can be followed. */
typedef struct tables {
    uint8_t *p;
    size_t size;
    part section[SECTIONS];
    uint32_t tensors; /* entries that TENS has room for */
} tables;

/* False when not even the section table is there. */
bool hostile_tables(tables *t, uint8_t *p, size_t size);

/* The entry of a tensor, below t->tensors. */
uint8_t *hostile_entry(const tables *t, uint32_t tensor);

/* Codes (field 72) or scales (field 88) of a tensor, as far as they lie in the file. */
part hostile_span(const tables *t, uint32_t tensor, unsigned field);

enum { SEAL_TENSORS = 1, SEAL_SECTIONS = 2, SEAL_FILE = 4, SEAL_ALL = 7 };

/* Makes CRCs right, as far as the tables can be followed; with SEAL_FILE the length in the header too. */
void hostile_seal(uint8_t *p, size_t size, unsigned what);

/* Changes an image of size bytes in place, where there is room for room bytes, and returns its new size. */
size_t hostile_mutate(uint8_t *p, size_t size, size_t room, uint64_t seed);

/* Opens an image; runs it if it is accepted. Returns what opening it gave. */
chiplm_status hostile_image(const uint8_t *bytes, size_t size);

/* Encodes texts with the tokenizer of an image that was opened, or sees that it refuses to. */
void hostile_texts(const chiplm_image *image, uint64_t *random);

/* ----------------------------------------------------------------------------------------------------------- calls */

/* Takes the good images that calls are made on: all files of a folder, or some files by name. */
void hostile_add_folder(const char *path);
void hostile_add_file(const char *path);

/* Makes the calls that the bytes stand for. */
void hostile_calls(const uint8_t *bytes, size_t size);

/* A file's bytes, as hostile_memory gives them. */
void *hostile_read_file(const char *path, size_t *size);

/* --------------------------------------------------------------------------------------------------------- counting */

/* Counts an image, or a call, by its status; hostile_summary prints the counts. */
void hostile_count(chiplm_status status);
void hostile_count_positions(uint64_t n); /* of accepted images, run and compared */
void hostile_summary(const char *what);

#endif
