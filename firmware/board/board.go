package board

// /* The C engine that these sources call is linked with package engine. */
// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -I${SRCDIR}/../../engine
// #cgo LDFLAGS: -pthread
// #include <stdlib.h>
// #include "host.h"
import "C"

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unsafe"

	_ "github.com/chiplm/chiplm/engine" // links the engine
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// MostMemory is how many bytes a memory, or an image, of a virtual board may have.
const MostMemory = C.CHIPLM_BOARD_MOST

// Failure is why a board runs without its model.
type Failure struct{ Code, Message string } // as firmware/PROTOCOL.md has them

// Options of a virtual board.
type Options struct {
	// Model is the path of an image, of which the board takes a copy at every boot; "": a board whose model partition is
	// empty.
	Model string
	// SRAM and PSRAM are the bytes that models are planned with; 0 takes what the target esp32s3 says is usable, and a
	// negative PSRAM is a board without. What padding takes, and this machine's kernels beyond the chip's, comes on top. At most
	// [MostMemory] each.
	SRAM, PSRAM int64
	// In and Out are the descriptors that requests are read from and answers written to: both the master of a
	// pseudo-terminal, or two pipes. They are set not to block. The caller closes them after Run.
	In, Out uintptr
	// Booted, where it is not nil, is called once from another goroutine, when the board has booted: with why it has no
	// model to run, or nil. It is not called where there was no board.
	Booted func(*Failure)
}

// Run runs a virtual board until ctx ends or the other end of a pipe In is closed; a pseudo-terminal whose other end is
// closed is a cable that was pulled, and waits for the next. A board that cannot boot runs too, and says why. Any number of boards
// may run at the same time. The error is nil, that of ctx, or that of a system call.
func Run(ctx context.Context, o Options) error {
	if max(o.SRAM, o.PSRAM) > MostMemory {
		return fmt.Errorf("virtual board: %d bytes of SRAM, %d of PSRAM: a memory may have %d at most", o.SRAM, o.PSRAM, MostMemory)
	}
	chip, err := targets.Load("esp32s3")
	if err != nil {
		return fmt.Errorf("virtual board: %w", err)
	}
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
		model: model, sram: size(o.SRAM, chip.Memory(image.SRAM).Usable), psram: size(o.PSRAM, chip.Memory(image.PSRAM).Usable),
		in: C.int(o.In), out: C.int(o.Out), stop: C.int(r.Fd()), booted: -1,
	}
	if o.Booted != nil {
		told, tell, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("virtual board: %w", err)
		}
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			hear(told, o.Booted)
		}()
		defer func() {
			_ = tell.Close()
			<-heard
			_ = told.Close()
		}()
		options.booted = C.int(tell.Fd())
	}
	if errno := C.chiplm_board_run(options); errno != 0 {
		return errors.Join(fmt.Errorf("virtual board: %w", syscall.Errno(errno)), ctx.Err())
	}
	return ctx.Err()
}

// hear reads the line that a board writes when it has booted.
func hear(r io.Reader, booted func(*Failure)) {
	said, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return // there was no boot
	}
	if said == "\n" {
		booted(nil)
		return
	}
	code, message, _ := strings.Cut(strings.TrimSuffix(said, "\n"), " ")
	booted(&Failure{Code: code, Message: message})
}

func size(n, otherwise int64) C.size_t {
	if n == 0 {
		n = otherwise
	}
	return C.size_t(max(n, 0))
}
