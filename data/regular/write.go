package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
	case errors.Is(err, syscall.ENOTDIR):
		return nil, &fs.PathError{Op: "write", Path: path, Err: folderFault(filepath.Dir(path), syscall.ENOTDIR)}
	case err != nil:
		return nil, err
	}
	if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "write", Path: path, Err: fmt.Errorf("%w but a %s, which is not replaced; name a file", ErrKind, kind(info.Mode()))}
	}
	folder := filepath.Dir(target)
	f, err := renameio.NewPendingFile(target, renameio.WithPermissions(0o644), renameio.WithTempDir(folder))
	if err != nil { // it names the temporary file, of which no user knows; what is wrong lies in the folder
		return nil, &fs.PathError{Op: "write", Path: path, Err: folderFault(folder, Cause(err))}
	}
	return f, nil
}

// folderFault says what is wrong with a folder in which no file can be made.
func folderFault(folder string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Absentf("there is no folder %s; make it first, or name another", folder)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s is no folder, but a file; name another", folder)
	}
	return fmt.Errorf("the folder %s: %w", folder, err)
}

// Write writes a file as [Create] does, by a function.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if err := write(f); err != nil {
		return known(err, f, path)
	}
	return known(f.CloseAtomicallyReplace(), f, path)
}

// known is an error of the temporary file under the name that users know.
func known(err error, f *renameio.PendingFile, path string) error {
	if e := new(fs.PathError); errors.As(err, &e) && e.Path == f.Name() {
		return &fs.PathError{Op: "write", Path: path, Err: e.Err}
	}
	if e := new(os.LinkError); errors.As(err, &e) && e.Old == f.Name() {
		return &fs.PathError{Op: "write", Path: path, Err: e.Err}
	}
	return err
}

// WriteFile writes the bytes of a file as [Create] does.
func WriteFile(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
