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

// rawTerminal is a pseudo-terminal that gets its settings back in the end: the name may have been an old one, and now that
// of somebody's terminal.
type rawTerminal struct {
	*os.File
	before *term.State
}

// Close gives the terminal its settings back, which fails where the other end is gone, and closes it.
func (r *rawTerminal) Close() error {
	if conn, err := r.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = term.Restore(int(fd), r.before) })
	}
	return r.File.Close()
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
	r := &rawTerminal{File: f}
	conn, err := f.SyscallConn()
	if err == nil {
		var raw error
		err = conn.Control(func(fd uintptr) { r.before, raw = term.MakeRaw(int(fd)) })
		if err == nil {
			err = raw
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}
