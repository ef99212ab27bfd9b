package virtual

import (
	"os"

	"golang.org/x/sys/unix"
)

// discard drops what has arrived at a terminal and has not been read.
func discard(f *os.File) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
}
