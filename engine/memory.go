package engine

// #include "chiplm.h"
import "C"

import (
	"fmt"
	"runtime"
)

// MemoryNeed is what an engine with these options takes beside the image, in bytes: the arena (activations, scratch)
// and the cache (keys and values of one sequence). Logits are the caller's and not counted. Errors: ErrArgument, ErrClosed.
// They depend on the path: a chip's is nearest to [PathPlain], and its shorter pointers need a little less. A team of
// opt.Threads is not counted.
func MemoryNeed(im *Image, opt Options) (arena, cache int64, err error) {
	if err := opt.check(); err != nil {
		return 0, 0, err
	}
	if err := im.mem.acquire(); err != nil {
		return 0, 0, fmt.Errorf("engine: %w", err)
	}
	defer func() { err = joinErrors(err, im.mem.drop()) }()
	defer runtime.KeepAlive(im)
	options := opt.c(nil)
	return int64(C.chiplm_arena_bytes(&im.c, &options)), int64(C.chiplm_cache_bytes(&im.c)), nil
}
