/* chiplm.h - runs the language models of chiplm images, on a host and on a chip, with the same bits on both.
 *
 * An image (docs/image.md) is one block of read-only bytes: sizes, 4-bit weights, tokenizer and a golden run that proves
 * the engine. What is computed, to the last bit, is docs/numerics.md. The engine is C11 that needs no operating system:
 * no allocation, no files, no threads, no global state, and of the mathematics library only sqrtf. All memory is the
 * caller's. It must be compiled for IEEE floats without contraction (-ffp-contract=off) and never with -ffast-math.
 *
 * Five layers, each using only those above it in this list:
 *
 *   kernels    kernels.h: a table of functions for each set of instructions; internal
 *   image      chiplm_image_*                       checks every byte of an image, then gives views into it
 *   text       chiplm_encode, ...                   from text to ids; needs no context
 *   model      chiplm_start, chiplm_forward, ...    a context: weights, key/value cache, block buffers
 *   sampling   chiplm_arg_max, chiplm_sample, ...   from logits to ids, scores and digests; needs no context
 *
 * Compile all .c files of this folder into the program: cc -std=c11 -O2 -ffp-contract=off, and -lm. Among
 * them host_team.c is empty unless -DCHIPLM_HOST asks for its team of POSIX threads.
 *
 * A first run, without its error checks:
 *
 *     chiplm_image image;                                     // small; holds pointers into bytes
 *     chiplm_image_open(&image, bytes, size, &fault);
 *     chiplm_options options = {.batch = 8};
 *     void *arena = ...chiplm_arena_bytes(&image, &options);  // fast memory
 *     void *cache = ...chiplm_cache_bytes(&image);            // the keys and values of one sequence
 *     chiplm *lm;
 *     chiplm_start(&lm, &image, &options, arena, arena_bytes, cache, cache_bytes);
 *     chiplm_forward_last(lm, prompt, n, logits);
 *     chiplm_sample(logits, vocab_size, 0.8f, 40, &random, order, &id);
 *     chiplm_forward_last(lm, &id, 1, logits);                // and so on
 *
 * Before the first run, chiplm_verify(lm, logits) proves image, compiler and memory. A text starts with the end-of-text
 * token of the image, then its own tokens, and the model ends it with end-of-text; the same token starts the next one.
 * chiplm_encode turns text into ids, and chiplm_image_token an id into its bytes.
 *
 * Speed has four handles, none of which changes a bit: batch and path of chiplm_options, team for a second core, and
 * chiplm_bind_tensor for faster memory. chiplm_reads_of tells what a run read, chiplm_trace shows every step of it.
 *
 * Every function that can fail returns a chiplm_status. No input, however hostile, makes one read or write outside the
 * memory it was given. A context belongs to one thread at a time; any number of contexts may share one image.
 */
#ifndef CHIPLM_H
#define CHIPLM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------- failures */

/* What went wrong. chiplm_status_text gives the sentence. Values are stable: new ones are added at the end. */
typedef enum chiplm_status {
    CHIPLM_OK = 0,
    /* image: in the order in which the checks run */
    CHIPLM_ERR_ARGUMENT,     /* a null pointer, or an option outside its range */
    CHIPLM_ERR_ALIGNMENT,    /* image, arena, tensor memory or scratch does not start at the multiple that it must */
    CHIPLM_ERR_SIZE,         /* shorter than a header */
    CHIPLM_ERR_MAGIC,        /* not an image */
    CHIPLM_ERR_VERSION,      /* an image of another version */
    CHIPLM_ERR_HEADER_BYTES, /* header length */
    CHIPLM_ERR_FLAGS,        /* a flag this engine does not know */
    CHIPLM_ERR_FILE_BYTES,   /* the length in the header is not the length of the file */
    CHIPLM_ERR_FILE_CRC,     /* CRC-32 of the whole file */
    CHIPLM_ERR_RESERVED,     /* padding or reserved bytes that are not zero */
    CHIPLM_ERR_SECTIONS,     /* the section table: a missing, unknown, misplaced or overlapping section */
    CHIPLM_ERR_SECTION_CRC,  /* CRC-32 of a section */
    CHIPLM_ERR_MODEL,        /* a size or constant of the model that is impossible */
    CHIPLM_ERR_TENSOR_NAME,  /* another tensor than the sizes imply at this place */
    CHIPLM_ERR_TENSOR_SHAPE, /* rows or columns differ from what the sizes imply */
    CHIPLM_ERR_TENSOR_BITS,  /* bits, group, scale type or tier that do not exist */
    CHIPLM_ERR_TENSOR_FLOAT, /* a matrix that was not quantised */
    CHIPLM_ERR_TENSOR_RANGE, /* bytes, stride, or a place outside DATA or on another tensor */
    CHIPLM_ERR_TENSOR_CRC,   /* CRC-32 of a tensor */
    CHIPLM_ERR_CODE,         /* a code that no quantiser writes: -8, -2 or -128, or one past the last column */
    CHIPLM_ERR_SCALE,        /* a scale that is negative, subnormal or not finite */
    CHIPLM_ERR_FLOAT,        /* a float weight that is subnormal or not finite */
    CHIPLM_ERR_ROPE,         /* the rotary tables: size, or an entry outside -1..1 or subnormal */
    CHIPLM_ERR_TOKENIZER,    /* the tokenizer section contradicts itself or the model, or is none where one is wanted */
    CHIPLM_ERR_GOLDEN,       /* the golden section contradicts itself or the model */
    /* model and sampling */
    CHIPLM_ERR_ARENA,       /* arena, cache, scratch or the memory of a tensor shorter than it must be */
    CHIPLM_ERR_ID,          /* a token id outside the vocabulary */
    CHIPLM_ERR_CONTEXT,     /* more positions than context_length */
    CHIPLM_ERR_NOT_FINITE,  /* an activation or a logit is infinite or not a number */
    CHIPLM_ERR_DIGEST,      /* the golden run gave other bits: image, compiler or memory is at fault */
    CHIPLM_ERR_TEMPERATURE, /* negative, infinite or not a number */
    CHIPLM_ERR_CLUSTERS,    /* image: the clusters of the head contradict themselves or the model; model: it has none */
    CHIPLM_ERR_FUSED,       /* compiled with contraction: a * b + c is rounded once, which gives other bits */
    CHIPLM_ERR_ROOM,        /* a text has more ids than there is room for */
    CHIPLM_STATUS_COUNT
} chiplm_status;

/* Where a failure is: the section, tensor or field, and the number found beside the number wanted (each 0 where it
 * says nothing; floats are given as their bits). where is always a terminated string. */
typedef struct chiplm_fault {
    chiplm_status status;
    char where[64];
    uint64_t found;
    uint64_t wanted;
} chiplm_fault;

/* One sentence: what is wrong and what to do next. Never null, static. */
const char *chiplm_status_text(chiplm_status status);

/* ---------------------------------------------------------------------------------------------------------- image */

/* Sizes and constants of a model: the MODL section. */
typedef struct chiplm_model {
    uint32_t vocab_size;
    uint32_t d_model;
    uint32_t n_layers;
    uint32_t n_heads; /* d_model / n_heads is even */
    uint32_t d_ff;
    uint32_t context_length;
    uint32_t ple_dim; /* 0: no per-layer embeddings */
    uint32_t experts; /* 1: dense */
    uint32_t swiglu;  /* 0: relu gate, 1: silu gate */
    uint32_t tied;    /* 1: the head is the token embedding */
    uint32_t qk_norm; /* 1: queries and keys are normalised per head */
    uint32_t clusters; /* of the head's rows; 0: it can be read in full only */
    uint32_t ngram_rows; /* of the hashed bigram table; 0: none */
    float norm_eps;
    float score_scale; /* c of the attention scores */
    float ple_scale;   /* c_e */
    float table_scale; /* c_t */
    float mix_scale;   /* c_h */
    uint32_t n_tensors;
    uint8_t tokenizer_sha256[32];
    uint8_t model_sha256[32];
} chiplm_model;

/* A part of an image. */
typedef struct chiplm_span {
    const uint8_t *at;
    size_t bytes;
} chiplm_span;

/* A checked image. Filled by chiplm_image_open, then read only, but for chiplm_encode_index. It points into the bytes given there, which must stay
 * where they are, unchanged, for as long as the image or a context made from it is used. May be copied. */
typedef struct chiplm_image {
    chiplm_span file;
    chiplm_span config;    /* the resolved configuration, YAML text, not terminated */
    chiplm_span table;     /* the tensor table */
    chiplm_span rope;      /* rotary tables */
    chiplm_span tokenizer; /* TOKN */
    chiplm_span golden;    /* GOLD */
    chiplm_span data;      /* DATA */
    chiplm_model model;
    const void *encode_index; /* made by chiplm_encode_index; or null */
} chiplm_image;

enum { CHIPLM_F32 = 1, CHIPLM_F16 = 2 };                                   /* scale types */
enum { CHIPLM_TIER_SRAM = 0, CHIPLM_TIER_PSRAM = 1, CHIPLM_TIER_FLASH = 2 }; /* where the planner wants a tensor */

/* One tensor of an image. */
typedef struct chiplm_tensor {
    char name[48]; /* terminated */
    uint32_t rows;
    uint32_t columns;
    uint32_t bits;   /* 2, 4, 8 or 32 */
    uint32_t group;  /* columns that share a scale; 0: the row */
    uint32_t groups; /* scales per row; 0 with 32 bits */
    uint32_t scale_type;
    uint32_t tier;
    uint32_t block;  /* 0: stored by rows. Else stored transposed, a block of so many rows at a time: the codes of a column
                      * of the block together, and the scales of a group of columns together */
    uint32_t stride; /* bytes of codes per row, or per column when transposed; a multiple of 16 */
    chiplm_span codes;
    chiplm_span scales;
} chiplm_tensor;

/* Checks an image whole, in the order of docs/image.md and then value by value, and fills image. bytes must start at a
 * multiple of 64. Allocates nothing and keeps no copy. On failure image is left zeroed and fault (which may be null)
 * says where. Reads the file about six times: some milliseconds a megabyte on a host. */
chiplm_status chiplm_image_open(chiplm_image *image, const void *bytes, size_t size, chiplm_fault *fault);

/* The tensor at index, below model.n_tensors, in the order of the table. CHIPLM_ERR_ARGUMENT past the end. */
chiplm_status chiplm_image_tensor(const chiplm_image *image, uint32_t index, chiplm_tensor *tensor);

/* The id of the token that starts and ends a text; -1 for an image that is not open. */
int32_t chiplm_image_end_of_text(const chiplm_image *image);

/* The bytes of a token: a piece of UTF-8 text, which may end inside a character. None for end-of-text, and for an id that
 * the tokenizer has no entry for: in an image without a tokenizer, every id. */
chiplm_span chiplm_image_token(const chiplm_image *image, int32_t id);

/* The golden: a prompt, the digest of its logits at all positions, and the best tokens after it. Arrays of 32-bit
 * little-endian words inside the image: prompt ids; top holds pairs of id and logit bits. */
typedef struct chiplm_golden {
    uint32_t n_prompt;
    uint32_t n_top;
    uint64_t digest;
    const int32_t *prompt;
    const uint32_t *top;
} chiplm_golden;

chiplm_golden chiplm_image_golden(const chiplm_image *image);

/* ----------------------------------------------------------------------------------------------------------- text */

/* Writes the ids of a text to ids, which has room for so many; *n is their number. The text is any bytes: what is not
 * UTF-8 is encoded byte by byte, and the tokens of the ids, one after another, are the text again. End-of-text is not
 * added, and its name in a text is plain text.
 *
 * scratch starts at a multiple of 4. chiplm_encode_scratch of the text's bytes is always enough. What is needed depends on
 * its longest word alone, a run of letters or the like: with the scratch for 64 bytes, texts of any length are encoded
 * whose words are no longer than that. The time grows with n log n at most for words of n bytes, whatever they are.
 *
 * CHIPLM_ERR_ROOM: *n is the number of ids that the text has, and the first of them fill the room; with room 0, ids may be
 * null, and this counts. CHIPLM_ERR_ARENA: scratch is too short for a word. CHIPLM_ERR_TOKENIZER: see
 * chiplm_encode_index. CHIPLM_ERR_ARGUMENT, CHIPLM_ERR_ALIGNMENT. After these four *n is 0 and ids are undefined. */
chiplm_status chiplm_encode(const chiplm_image *image, const void *text, size_t bytes, int32_t *ids, size_t room,
                            void *scratch, size_t scratch_bytes, size_t *n);

/* The bytes of scratch for a text, or for a longest word, of so many bytes: 20 a byte, and those of the index below where
 * the image has none. 0 for more than 2^31 - 1 bytes, and when the sum does not fit a size_t. */
size_t chiplm_encode_scratch(const chiplm_image *image, size_t bytes);

/* Makes the index of the image's merges, which finds the merge of two tokens in few steps, and has later calls of
 * chiplm_encode use it. Without it each call makes one in its scratch, which takes far longer than to encode a prompt.
 * memory starts at a multiple of 4, is not written to after this call, and stays as long as the image, and copies of it
 * that are made later, are used. CHIPLM_ERR_TOKENIZER when not every byte has an entry or the merges contradict
 * themselves: such an image runs, but encodes no text. On failure the image has no index; fault, which may be null, says
 * where. */
chiplm_status chiplm_encode_index(chiplm_image *image, void *memory, size_t bytes, chiplm_fault *fault);

/* The bytes of that memory: 1,024, and 2 a merge (4 when there are more than 65,536). 0 for an image that is not open. */
size_t chiplm_encode_index_bytes(const chiplm_image *image);

/* ---------------------------------------------------------------------------------------------------------- model */

/* A running model: opaque, lives in the caller's arena, owned by one thread at a time. There is nothing to free: stop
 * using it, then release arena and cache. */
typedef struct chiplm chiplm;

/* Sets of instructions. A path gives the same bits as CHIPLM_PATH_PLAIN, in less time. */
typedef enum chiplm_path {
    CHIPLM_PATH_BEST = 0, /* the fastest that this processor has */
    CHIPLM_PATH_PLAIN = 1,
    CHIPLM_PATH_AVX2 = 2,
    CHIPLM_PATH_AVX512 = 3, /* with VNNI */
    CHIPLM_PATH_NEON = 4,
    CHIPLM_PATH_PIE = 5, /* the vector unit of the ESP32-S3; elsewhere imitated in plain C, for tests, and never the best */
    CHIPLM_PATH_COUNT
} chiplm_path;

/* The name of a path, such as "plain"; null if this processor does not have it. */
const char *chiplm_path_name(chiplm_path path);

/* Cores that work together. run calls part(argument, i) once for each i below members, wherever it likes and at the same
 * time if it can, and returns when all calls have. On a chip a second core waits for such jobs; on a host, a thread. */
typedef struct chiplm_team {
    uint32_t members; /* 0 and 1: the caller alone, and run is not called; at most CHIPLM_MAX_MEMBERS */
    void (*run)(void *self, void (*part)(void *argument, uint32_t index), void *argument);
    void *self;
} chiplm_team;

enum { CHIPLM_MAX_MEMBERS = 16 };

/* How a context works. Nothing here changes a bit of a result. */
typedef struct chiplm_options {
    uint32_t batch;   /* positions that go through a matrix together, 1..1024: each row of weights is then read and
                       * unpacked once for all of them */
    chiplm_path path; /* CHIPLM_ERR_ARGUMENT if this processor does not have it */
    bool dense;       /* read every neuron of a relu gate; else blocks of up to CHIPLM_SPARSE_MOST positions read only the
                       * rows of up, and columns of down, that a position of the block needs */
    chiplm_team team;
} chiplm_options;

enum { CHIPLM_SPARSE_MOST = 8 };

/* Bytes of arena a context needs: engine buffers, small and used all the time, so they belong in the fastest memory.
 * 0 when the options are out of range or the sum does not fit a size_t. */
size_t chiplm_arena_bytes(const chiplm_image *image, const chiplm_options *options);

/* Bytes of cache a context needs: keys and values of one sequence, 8-bit codes and float scales. 0 as above. */
size_t chiplm_cache_bytes(const chiplm_image *image);

/* Makes a context at position 0 in the caller's memory. arena and cache start at multiples of 64, hold at least the
 * bytes above, and belong to the context until the caller stops using it; their contents need not be cleared. On
 * failure *lm is null and nothing was kept. */
chiplm_status chiplm_start(chiplm **lm, const chiplm_image *image, const chiplm_options *options, void *arena,
                           size_t arena_bytes, void *cache, size_t cache_bytes);

/* Makes the context read a tensor from another place: a copy in faster memory, which must hold the same bytes (codes,
 * and scales where the tensor has them), start at a multiple of 16, be as long, and outlive the context. The
 * copies are trusted: run chiplm_verify after the last one. On CHIPLM_PATH_PIE 64 bytes behind the codes must be readable;
 * what they hold changes nothing. A span whose at is null leaves codes, or scales, where they
 * are. CHIPLM_ERR_ARENA when one is shorter than the tensor's; on failure nothing was changed. */
chiplm_status chiplm_bind_tensor(chiplm *lm, uint32_t index, chiplm_span codes, chiplm_span scales);

/* Forgets the sequence: the next token is at position 0. */
void chiplm_reset(chiplm *lm);

/* The position of the next token: how many have been fed since the start or the last reset. */
uint32_t chiplm_position(const chiplm *lm);

/* Feeds n token ids at the next positions. logits is null, or room for n rows of vocab_size floats: row i predicts the
 * token after ids[i]. n may be 0. Splitting a sequence over several calls changes no bit.
 * Ids and room are checked before anything is computed. On failure the position is what it was, logits are undefined,
 * and chiplm_last_fault says which position is at fault. */
chiplm_status chiplm_forward(chiplm *lm, const int32_t *ids, size_t n, float *logits);

/* The same, with logits (one row, not null) for the last id only; n is at least 1. */
chiplm_status chiplm_forward_last(chiplm *lm, const int32_t *ids, size_t n, float *logits);

/* How the output layer looks for the best tokens: docs/numerics.md, section "The best tokens". Rows that are read give the
 * same bits as in full. */
typedef struct chiplm_search {
    bool full;         /* read every row; the one way for an image without clusters */
    uint32_t clusters; /* look into so many clusters at most, those with the highest bounds; 0: into all that can matter */
    float margin;      /* of the bounds, 0 to 1. With 1 and clusters 0 the search proves its result: it is that of the full
                        * head, always. Less reads less and may miss */
} chiplm_search;

/* The search that proves its result where the image has clusters, and reads every row where not. */
chiplm_search chiplm_search_certified(const chiplm_image *image);

/* Up to so many best tokens a search is worth its while; for more it reads nearly all rows, or more than the whole layer with
 * its bounds, and takes longer on the chip (docs/cost.md). */
enum { CHIPLM_SEARCH_MOST = 4 };

/* The same as chiplm_forward_last, but only the k best tokens after the last id are wanted, 1 <= k <= vocab_size: their
 * ids go to best and their logits to logits, k of each, ordered by logit down, then id up, as chiplm_top would choose from
 * all. found is their number: k, or less when a search with a limit looked at fewer rows. CHIPLM_ERR_CLUSTERS when the
 * image has none and the search is not full. */
chiplm_status chiplm_forward_best(chiplm *lm, const int32_t *ids, size_t n, const chiplm_search *search, uint32_t k,
                                  int32_t *best, float *logits, uint32_t *found);

/* The fault of the last call that failed on this context; valid until the next call on it. */
const chiplm_fault *chiplm_last_fault(const chiplm *lm);

/* What a context has read since the start or chiplm_clear_reads, counted where it is read. A block of positions that
 * goes through the weights together reads them once. Bytes are those of codes and scales as they are stored, the padding
 * of a row included. */
typedef struct chiplm_reads {
    uint64_t positions;      /* fed */
    uint64_t blocks;         /* in which they went through the layers */
    uint64_t logits;         /* positions whose logits were all computed */
    uint64_t searches;       /* positions whose best tokens were searched for */
    uint64_t searched_rows;  /* of the head that these searches read in full */
    uint64_t blocks_read[2]; /* of the bounds of rows, 16 bytes each, at both levels */
    uint64_t rope;           /* bytes of rotary tables */
    uint64_t cache;          /* bytes of keys and values, with their scales */
    const uint64_t *tensors; /* [n_tensors] bytes of each tensor */
    /* Neurons of the feed-forward of each layer, [n_layers], positions times d_ff in all: those whose gate is open, and
     * those among them whose value is not 0 once quantised. Counted for relu alone. */
    const uint64_t *open, *used;
    /* Rows of up, and columns of down, that were read: [n_layers], blocks times d_ff at most (per expert). */
    const uint64_t *up_rows, *down_columns;
} chiplm_reads;

/* Valid until the context ends; its numbers change with every call. */
const chiplm_reads *chiplm_reads_of(const chiplm *lm);

void chiplm_clear_reads(chiplm *lm);

/* One step of the forward pass at one position, as a tracer sees it. values lives only during the call. */
typedef struct chiplm_step {
    int32_t layer;    /* -1: outside the layers */
    const char *name; /* static */
    uint32_t position;
    const float *values;
    uint32_t count;
} chiplm_step;

/* Has every step of later calls shown to tracer; null ends it. Steps of a block come step by step, position by position.
 * In the order of the forward pass: "token_embedding" (x, the
 * row of the bigram table included), "ple_projection" (the product), "mix" (the per-layer inputs);
 * in each layer "qkv", "attention" (all heads), "attention_output", "router", "gate", "ffn" (the gated neurons, d_ff
 * values), "down", "ple_gate", "ple_mix" (gelu(gate) * e), "ple_output", and "x", the stream after the layer; then
 * "output_norm" where logits or best tokens are asked for, and "head" where all logits are. Products are shown as they
 * leave the product. */
typedef void (*chiplm_tracer)(void *self, const chiplm_step *step);
void chiplm_trace(chiplm *lm, chiplm_tracer tracer, void *self);

/* Runs the golden of the image from position 0 and compares digest and best tokens bit for bit. logits is room for one
 * row. Leaves the context reset. CHIPLM_ERR_DIGEST when a bit differs: found is the digest of this run. */
chiplm_status chiplm_verify(chiplm *lm, float *logits);

/* ------------------------------------------------------------------------------------------------------- sampling */

/* The id of the largest of n logits; the lowest id on a tie. CHIPLM_ERR_NOT_FINITE if any is not finite. */
chiplm_status chiplm_arg_max(const float *logits, uint32_t n, int32_t *id);

/* Writes the ids of the k largest of n logits to order, ordered by logit down, then id up; 1 <= k <= n. */
chiplm_status chiplm_top(const float *logits, uint32_t n, uint32_t k, int32_t *order);

/* Draws an id. temperature 0, or below 2^-100, is arg-max and leaves the random state alone. k: only the k best may be
 * drawn; 0 or more than n: all. order is scratch for min(k, n) ids. random is the state of splitmix64: any value starts a sequence. */
chiplm_status chiplm_sample(const float *logits, uint32_t n, float temperature, uint32_t k, uint64_t *random,
                            int32_t *order, int32_t *id);

/* The same from candidates alone: n logits in descending order, of which one is drawn; index is its place. With the n = k
 * best tokens in their order it draws what chiplm_sample would draw from all. temperature 0 takes the first. */
chiplm_status chiplm_draw(const float *logits, uint32_t n, float temperature, uint64_t *random, uint32_t *index);

/* The next number of splitmix64. */
uint64_t chiplm_random(uint64_t *random);

/* The parts of a token's score: its negative log-likelihood is ln(sum) - shift, the logarithm taken in double by the
 * caller. sum is over exp(logit - largest logit); shift is logits[id] - largest logit. */
chiplm_status chiplm_score(const float *logits, uint32_t n, int32_t id, float *sum, float *shift);

/* The digest of a run (FNV-1a-64): start with chiplm_digest_start(), then add each position in turn. */
uint64_t chiplm_digest_start(void);
uint64_t chiplm_digest_add(uint64_t digest, uint32_t position, int32_t id, const float *logits, uint32_t n);

/* The digest of choices has its own sequence: id and logit of each token chosen by a search. */
uint64_t chiplm_digest_add_choice(uint64_t digest, int32_t id, float logit);

#ifdef __cplusplus
}
#endif

#endif
