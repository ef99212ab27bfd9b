package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Create starts a file that appears under its name whole or not at all: it is written under a temporary name beside it,
// and CloseAtomicallyReplace syncs and renames it. Cleanup, which may always be deferred, drops what is not finished.
// An older regular file gives way. A symbolic link stays, and what it points to is replaced. A folder, pipe or device
// is refused with [ErrKind]: a rename would put a file in its place.
func Create(path string) (*renameio.PendingFile, error) {
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = path
		if link, err := os.Readlink(path); err == nil { // points to what is not there yet
			if !filepath.IsAbs(link) {
				link = filepath.Join(filepath.Dir(path), link)
			}
			target = link
		}
	case err != nil:
		return nil, err
	}
	if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "write", Path: path, Err: fmt.Errorf("%w but a %s, which is not replaced; name a file", ErrKind, kind(info.Mode()))}
	}
	return renameio.NewPendingFile(target, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(target)))
}

// Write writes a file as [Create] does, by a function.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if err := write(f); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// WriteFile writes the bytes of a file as [Create] does.
func WriteFile(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
