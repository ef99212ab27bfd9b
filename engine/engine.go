package engine

// #include <stdlib.h>
// #include "chiplm.h"
// #include "host_team.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Engine is one sequence running through a model. Its methods may be called from several goroutines and then run one
// after the other.
type Engine struct {
	mu      sync.Mutex
	lm      *C.chiplm // nil after Close
	arena   *arena
	image   *Image
	cleanup runtime.Cleanup
}

// arena is the memory of an engine, and its hold on the image.
type arena struct {
	engine, cache, tracer unsafe.Pointer
	team                  *C.chiplm_host_team
	image                 *memory
}

func (a *arena) free() error {
	C.chiplm_host_team_stop(a.team)
	C.free(a.engine)
	C.free(a.cache)
	a.endTrace()
	return a.image.drop()
}

// New makes an engine at position 0. Errors: ErrArgument, ErrClosed, or no memory.
func New(im *Image, opt Options) (*Engine, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if err := im.mem.acquire(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	a := &arena{image: im.mem}
	e, err := start(im, opt, a)
	if err != nil {
		return nil, joinErrors(fmt.Errorf("engine: %w", err), a.free())
	}
	e.cleanup = runtime.AddCleanup(e, func(a *arena) { _ = a.free() }, a)
	return e, nil
}

func start(im *Image, opt Options, a *arena) (*Engine, error) {
	var team C.chiplm_team
	if opt.Threads > 1 {
		if a.team = C.chiplm_host_team_start(C.uint32_t(opt.Threads), &team); a.team == nil {
			return nil, fmt.Errorf("the system gives no %d threads: use fewer", opt.Threads)
		}
	}
	options := opt.c(&team)
	arenaBytes := C.chiplm_arena_bytes(&im.c, &options)
	cacheBytes := C.chiplm_cache_bytes(&im.c)
	if arenaBytes == 0 || cacheBytes == 0 {
		return nil, fmt.Errorf("the model does not fit this machine's address space: %w", ErrArgument)
	}
	a.engine, a.cache = alloc(int(arenaBytes)), alloc(int(cacheBytes))
	if a.engine == nil || a.cache == nil {
		return nil, fmt.Errorf("no memory for %d bytes: use a smaller batch", uint64(arenaBytes)+uint64(cacheBytes))
	}
	e := &Engine{arena: a, image: im}
	status := C.chiplm_start(&e.lm, &im.c, &options, a.engine, arenaBytes, a.cache, cacheBytes)
	return e, failure(status)
}

// Close releases the engine's memory. Further calls return ErrClosed.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm == nil {
		return nil
	}
	e.cleanup.Stop()
	e.lm = nil
	return e.arena.free()
}

// Image returns the image the engine runs.
func (e *Engine) Image() *Image { return e.image }

// Reset forgets the sequence: the next token is at position 0.
func (e *Engine) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm != nil {
		C.chiplm_reset(e.lm)
	}
	runtime.KeepAlive(e)
}

// Position is the position of the next token.
func (e *Engine) Position() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm == nil {
		return 0
	}
	p := int(C.chiplm_position(e.lm))
	runtime.KeepAlive(e)
	return p
}

// Forward feeds ids at the next positions. logits is nil, or holds len(ids)*VocabSize values: row i predicts the token
// after ids[i]. How a sequence is split over calls changes no bit. On failure the position is what it was and logits
// are undefined. Errors: ErrID, ErrContext, ErrNotFinite, ErrArgument (length of logits), ErrClosed.
func (e *Engine) Forward(ids []int32, logits []float32) error {
	if logits != nil {
		if err := e.checkRoom(len(logits), len(ids)); err != nil {
			return err
		}
	}
	return e.call(func(lm *C.chiplm) C.chiplm_status {
		return C.chiplm_forward(lm, idsAt(ids), C.size_t(len(ids)), logitsAt(logits))
	})
}

// ForwardLast feeds ids, at least one, and fills logits, VocabSize values, for the last of them. Errors as Forward.
func (e *Engine) ForwardLast(ids []int32, logits []float32) error {
	if err := e.checkRoom(len(logits), 1); err != nil {
		return err
	}
	return e.call(func(lm *C.chiplm) C.chiplm_status {
		return C.chiplm_forward_last(lm, idsAt(ids), C.size_t(len(ids)), logitsAt(logits))
	})
}

// checkRoom says whether logits has the length of rows rows.
func (e *Engine) checkRoom(have, rows int) error {
	if want := rows * int(e.image.c.model.vocab_size); have != want {
		return fmt.Errorf("engine: room for %d logits, want %d (%d positions): %w", have, want, rows, ErrArgument)
	}
	return nil
}

// call runs a function of the C engine on the context and turns its fault into an error.
func (e *Engine) call(f func(*C.chiplm) C.chiplm_status) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm == nil {
		return fmt.Errorf("engine: %w", ErrClosed)
	}
	defer runtime.KeepAlive(e)
	if f(e.lm) == C.CHIPLM_OK {
		return nil
	}
	fault := *C.chiplm_last_fault(e.lm)
	return fmt.Errorf("engine: %w", failureAt(&fault))
}

func idsAt(ids []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(ids))) }

func logitsAt(logits []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(logits))) }

// Verify runs the golden of an image twice, one token at a time and all at once, and compares every bit. An error wraps
// ErrDigest when a bit differs.
func Verify(im *Image) error {
	g, v := im.Golden(), im.Model().VocabSize
	single, err := New(im, Options{Batch: 1})
	if err != nil {
		return err
	}
	defer single.Close()
	logits := make([]float32, v)
	err = single.call(func(lm *C.chiplm) C.chiplm_status { return C.chiplm_verify(lm, logitsAt(logits)) })
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	block, err := New(im, Options{})
	if err != nil {
		return err
	}
	defer block.Close()
	logits = make([]float32, len(g.IDs)*v)
	if err := block.Forward(g.IDs, logits); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	d := NewDigest()
	for i, id := range g.IDs {
		d = d.Add(i, id, logits[i*v:(i+1)*v])
	}
	if d != g.Digest {
		return fmt.Errorf("verify: digest of the whole prompt at once: this run gives %#x, the image stores %#x: %w", uint64(d),
			uint64(g.Digest), ErrDigest)
	}
	return nil
}
