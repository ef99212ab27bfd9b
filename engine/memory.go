package engine

// #include "chiplm.h"
// static void nothing(void *self, void (*part)(void *argument, uint32_t index), void *argument) {
//     (void)self, (void)part, (void)argument;
// }
// /* A team that is never run. */
// static chiplm_team team_of(uint32_t members) { return (chiplm_team){.members = members, .run = nothing}; }
import "C"

import (
	"fmt"
	"runtime"
)

// MemoryNeed is what an engine with these options takes beside the image, in bytes: the arena (activations, scratch)
// and the cache (keys and values of one sequence). Logits are the caller's and not counted. Errors: ErrArgument, ErrClosed.
// They depend on the path: the ESP32-S3 takes [PathPIE], and its shorter pointers need a little less.
func MemoryNeed(im *Image, opt Options) (arena, cache int64, err error) {
	if err := opt.check(); err != nil {
		return 0, 0, err
	}
	if err := im.mem.acquire(); err != nil {
		return 0, 0, fmt.Errorf("engine: %w", err)
	}
	defer func() { err = joinErrors(err, im.mem.drop()) }()
	defer runtime.KeepAlive(im)
	team := C.team_of(C.uint32_t(opt.Threads))
	options := opt.c(&team)
	return int64(C.chiplm_arena_bytes(&im.c, &options)), int64(C.chiplm_cache_bytes(&im.c)), nil
}
