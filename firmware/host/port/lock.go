package port

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// A program that has just ended may hold its lock for a moment longer, and a board that starts greets itself.
const (
	lockTurns = 50
	lockPause = 10 * time.Millisecond
)

// lock takes a device for one program: an advisory lock, which the system gives back however the program ends.
func lock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	for turn := 1; ; turn++ {
		var locked error
		if err := conn.Control(func(fd uintptr) { locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
			return err
		}
		switch {
		case locked == nil:
			return nil
		case errors.Is(locked, syscall.EINTR):
		case !errors.Is(locked, syscall.EWOULDBLOCK):
			return locked
		case turn >= lockTurns:
			return syscall.EBUSY
		default:
			time.Sleep(lockPause)
		}
	}
}

// locked is a port with the descriptor that its lock hangs on.
type locked struct {
	io.ReadWriteCloser
	lock *os.File
}

func (l *locked) Close() error { return errors.Join(l.ReadWriteCloser.Close(), l.lock.Close()) }

// openLocked opens a port after locking it by a descriptor of its own: the serial library keeps its descriptor to itself.
func openLocked(name string, open func(string) (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	p, err := open(name)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &locked{p, f}, nil
}
