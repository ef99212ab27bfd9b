package engine

// #include <stdlib.h>
// #include "chiplm.h"
// extern void chiplmTrace(void *self, chiplm_step *step);
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// Step is one step of the forward pass at one position.
type Step struct {
	Layer    int    // -1: outside the layers
	Name     string // as chiplm.h lists them: "qkv", "attention", "x", ...
	Position int
	Values   []float32 // valid during the call only
}

// Trace has every step of later calls shown to f, which runs inside of them; nil ends it. The steps of a block come step
// by step, position by position. f must not call methods of the engine, which would wait for the call that it runs in. The
// engine keeps f until Trace(nil) or Close: one whose f refers to it is not released without either.
func (e *Engine) Trace(f func(Step)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm == nil {
		return fmt.Errorf("engine: %w", ErrClosed)
	}
	e.arena.endTrace()
	if f == nil {
		C.chiplm_trace(e.lm, nil, nil)
		return nil
	}
	handle := cgo.NewHandle(f)
	e.arena.tracer = C.malloc(C.size_t(unsafe.Sizeof(handle))) // C keeps no pointer into Go's memory
	*(*cgo.Handle)(e.arena.tracer) = handle
	C.chiplm_trace(e.lm, C.chiplm_tracer(C.chiplmTrace), e.arena.tracer)
	return nil
}

// endTrace releases what the last tracer held.
func (a *arena) endTrace() {
	if a.tracer != nil {
		(*(*cgo.Handle)(a.tracer)).Delete()
		C.free(a.tracer)
		a.tracer = nil
	}
}

//export chiplmTrace
func chiplmTrace(self unsafe.Pointer, step *C.chiplm_step) {
	f := (*(*cgo.Handle)(self)).Value().(func(Step))
	f(Step{Layer: int(step.layer), Name: C.GoString(step.name), Position: int(step.position),
		Values: unsafe.Slice((*float32)(unsafe.Pointer(step.values)), int(step.count))})
}
