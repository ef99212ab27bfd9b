package checkpoints

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	runLock  = ".lock"      // held by the training process for as long as it runs
	saveLock = ".save-lock" // held during a save
)

// RunLock keeps other processes from training into the same run.
type RunLock struct{ file *os.File }

// Lock takes a run for this process, making its folder if need be. The error wraps [ErrLocked] when another process
// holds it. The lock ends with Unlock or with the process, however that ends.
func Lock(runDir string) (*RunLock, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := flock(filepath.Join(runDir, runLock), false)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := ""
		if text, err := readSmall(filepath.Join(runDir, runLock), 64); err == nil && len(text) > 0 {
			holder = " by process " + strings.TrimSpace(string(text))
		}
		return nil, fmt.Errorf("%s: %w%s; wait for it, stop it, or train under another --name", runDir, ErrLocked, holder)
	}
	if err != nil {
		return nil, err
	}
	// The number only serves the message above, so a failure to write it is no failure of the lock.
	if f.Truncate(0) == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &RunLock{f}, nil
}

// Unlock gives the run back.
func (l *RunLock) Unlock() error { return l.file.Close() }

// flock opens a file and takes an exclusive lock that closing it gives back.
func flock(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
