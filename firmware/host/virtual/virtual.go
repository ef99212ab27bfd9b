package virtual

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/chiplm/chiplm/firmware/board"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// MostMemory is how many bytes a memory of a virtual board may have.
const MostMemory = board.MostMemory

// Options of a virtual board.
type Options struct {
	Model       string // path of an image, copied at a boot; "": a board without a model
	SRAM, PSRAM int64  // bytes that models are planned with; 0: usable of the target esp32s3; a negative PSRAM: a board without
	Link        string // path of a symbolic link to the port, removed in the end; "": none
}

// Board is a virtual board that runs.
type Board struct {
	port    string
	master  *os.File
	link    string
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // of the board; read after done
	booted  chan struct{}
	failure *board.Failure // read after booted
	closing sync.Once
}

// Start starts a virtual board. It fails where the link that is asked for is already another's ([ErrLink]). A model that it cannot run is not an error here: the board says so to its clients, as a
// real one would.
func Start(opt Options) (*Board, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("virtual board: no pseudo-terminal: %w", err)
	}
	b := &Board{port: slave.Name(), master: master, done: make(chan struct{}), booted: make(chan struct{})}
	// A terminal would echo what the board says back to it, until a client opens it raw.
	_, err = term.MakeRaw(int(slave.Fd()))
	if err == nil && opt.Link != "" {
		err = b.makeLink(opt.Link)
	}
	slave.Close()
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("virtual board: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() {
		defer close(b.done)
		defer master.Close()
		defer b.removeLink() // before another terminal can have the name of the port
		fd := master.Fd()
		err := board.Run(ctx, board.Options{Model: opt.Model, SRAM: opt.SRAM, PSRAM: opt.PSRAM, In: fd, Out: fd, Booted: func(why *board.Failure) {
			b.failure = why
			close(b.booted)
		}})
		if !errors.Is(err, context.Canceled) {
			b.err = err
		}
	}()
	return b, nil
}

// Port is the path of the port, to be opened by clients.
func (b *Board) Port() string { return b.port }

// Done is closed when the board has ended.
func (b *Board) Done() <-chan struct{} { return b.done }

// Booted waits until the board has booted. The failure is why it has no model to run, nil if it has one. It asks the board
// itself, not over the port, so that no client can be in the way. The error is that of ctx, or of a board that ended.
func (b *Board) Booted(ctx context.Context) (failure *line.BoardError, err error) {
	select {
	case <-b.booted:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.done:
		select {
		case <-b.booted: // both
		default:
			return nil, errors.Join(errors.New("the virtual board ended before it had booted"), b.err)
		}
	}
	if b.failure == nil {
		return nil, nil
	}
	return &line.BoardError{Code: b.failure.Code, Message: b.failure.Message}, nil
}

// ErrEnded occurs when a board ends that nobody ended.
var ErrEnded = errors.New("the virtual board ended by itself")

// Wait waits until ctx ends, which is the good end, or the board has ended by itself.
func (b *Board) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.Done():
		return ErrEnded
	}
}

// Close ends the board, and says what went wrong with it, if anything did.
func (b *Board) Close() error {
	b.closing.Do(func() {
		b.cancel()
		<-b.done
	})
	return b.err
}
