package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockRun takes the lock of a run directory, so that no two processes train into it. The system gives it back when the
// process ends, however it ends. The caller closes it.
func lockRun(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: another process is training this run: wait for it, or choose another --name", dir)
		}
		return nil, fmt.Errorf("lock the run %s: %w", dir, err)
	}
	return f, nil
}
