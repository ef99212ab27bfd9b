package port

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"golang.org/x/term"
)

// pseudo matches the paths of pseudo-terminals, of Linux and of macOS.
var pseudo = regexp.MustCompile(`^/dev/(pts/|ttys)\d+$`)

// isPseudo says whether a name, through links, is that of a pseudo-terminal.
func isPseudo(name string) bool {
	at, err := filepath.EvalSymlinks(name)
	return err == nil && pseudo.MatchString(at)
}

// openPseudo opens a pseudo-terminal, raw, and locks it. The system is not asked to open it for nobody else, as with a port:
// it would keep to that for as long as the other end is open, and a program that was killed would lock out all that come
// after.
func openPseudo(name string) (io.ReadWriteCloser, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err == nil {
		var raw error
		err = conn.Control(func(fd uintptr) { _, raw = term.MakeRaw(int(fd)) })
		if err == nil {
			err = raw
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
