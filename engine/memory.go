package engine

// #include "chiplm.h"
import "C"

import (
	"fmt"
	"runtime"
)

// MemoryNeed is what an engine with these options takes beside the image, in bytes: the arena (activations, scratch)
// and the cache (keys and values of one sequence). Logits are the caller's and not counted. Errors: ErrArgument, ErrClosed.
// A chip with shorter pointers needs a little less.
func MemoryNeed(im *Image, opt Options) (arena, cache int64, err error) {
	if opt.Batch == 0 {
		opt.Batch = DefaultBatch
	}
	if opt.Batch < 1 || opt.Batch > MaxBatch {
		return 0, 0, fmt.Errorf("engine: batch %d is outside 1..%d: %w", opt.Batch, MaxBatch, ErrArgument)
	}
	if err := im.mem.acquire(); err != nil {
		return 0, 0, fmt.Errorf("engine: %w", err)
	}
	defer func() { err = joinErrors(err, im.mem.drop()) }()
	defer runtime.KeepAlive(im)
	options := C.chiplm_options{batch: C.uint32_t(opt.Batch)}
	return int64(C.chiplm_arena_bytes(&im.c, &options)), int64(C.chiplm_cache_bytes(&im.c)), nil
}
