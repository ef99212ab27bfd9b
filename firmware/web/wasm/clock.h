/* clock.h - time in the page. Internal. */
#ifndef CHIPLM_WASM_CLOCK_H
#define CHIPLM_WASM_CLOCK_H

#include <stdint.h>

/* performance.now(). Browsers round it, most to 0.1 ms: means over many tokens are right, single steps are not. */
__attribute__((import_module("page"), import_name("milliseconds"))) double page_milliseconds(void);

uint64_t clock_nanoseconds(void);

#endif
