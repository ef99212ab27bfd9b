package board

// /* The C engine that these sources call is linked with package engine. */
// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -I${SRCDIR}/../../engine
// #cgo LDFLAGS: -pthread
// #include <stdlib.h>
// #include "host.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	_ "github.com/chiplm/chiplm/engine" // links the engine
)

// The memories of an ESP32-S3-N16R8 that its firmware may take, in bytes.
const (
	DefaultSRAM  = 286720
	DefaultPSRAM = 8323072
)

// Options of a virtual board.
type Options struct {
	// Model is the path of an image; "": a board whose model partition is empty.
	Model string
	// SRAM and PSRAM are the bytes that the firmware may take; 0 takes the defaults, and a negative PSRAM is a board
	// without.
	SRAM, PSRAM int64
	// In and Out are the descriptors that requests are read from and answers written to: both the master of a
	// pseudo-terminal, or two pipes. They are set not to block. The caller closes them after Run.
	In, Out uintptr
}

// Run runs a virtual board until ctx ends or the other end of a pipe In is closed; a pseudo-terminal whose other end is
// closed is a cable that was pulled, and waits for the next. A board that cannot boot runs too, and says why. Any number of boards
// may run at the same time. The error is nil, that of ctx, or that of a system call.
func Run(ctx context.Context, o Options) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("virtual board: %w", err)
	}
	defer r.Close()
	stopped := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer func() {
		if stopped() {
			_ = w.Close()
		}
	}()
	model := C.CString(o.Model)
	defer C.free(unsafe.Pointer(model))
	options := &C.chiplm_board_options{
		model: model, sram: size(o.SRAM, DefaultSRAM), psram: size(o.PSRAM, DefaultPSRAM),
		in: C.int(o.In), out: C.int(o.Out), stop: C.int(r.Fd()),
	}
	if errno := C.chiplm_board_run(options); errno != 0 {
		return errors.Join(fmt.Errorf("virtual board: %w", syscall.Errno(errno)), ctx.Err())
	}
	return ctx.Err()
}

func size(n, otherwise int64) C.size_t {
	if n == 0 {
		n = otherwise
	}
	return C.size_t(max(n, 0))
}
