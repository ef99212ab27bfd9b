package virtual

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrLink is wrapped when a link to a board cannot be made because its path is taken.
var ErrLink = errors.New("choose another path with --link")

// makeLink makes a symbolic link to the port. A link that a board which was killed has left is replaced; nothing else is.
func (b *Board) makeLink(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil { // two boards that start see each other's links
		return fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	at, err := os.Readlink(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s exists and is no link: %w", path, ErrLink)
	case !strings.HasPrefix(at, "/dev/"):
		return fmt.Errorf("%s is a link to %s, which is no port: %w", path, at, ErrLink)
	case at != b.port && living(at):
		return fmt.Errorf("%s leads to %s, which is in use: a board that runs; end that first, or %w (if no board is behind it any more, remove the link)", path, at, ErrLink)
	}
	tmp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	if err := os.Symlink(b.port, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	b.link = path
	return nil
}

// removeLink removes the link if it still leads to this board.
func (b *Board) removeLink() {
	if b.link == "" {
		return
	}
	if at, err := os.Readlink(b.link); err == nil && at == b.port {
		os.Remove(b.link)
	}
}

// living says whether a port has somebody behind it: that of a board which was killed cannot be opened.
func living(name string) bool {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err == nil {
		f.Close()
		return true
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EBUSY)
}
