package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const deadAfter = time.Minute // a folder of this age whose maker lives is locked

var workName = regexp.MustCompile(`^chiplm-page-\d+$`)

// workFolder makes a folder for images that are made, which done removes. Folders of programs that were killed go too.
func workFolder() (path string, done func() error, err error) {
	parent := os.TempDir()
	clearDead(parent)
	path, err = os.MkdirTemp(parent, "chiplm-page-*")
	if err != nil {
		return "", nil, fmt.Errorf("the folder for temporary files, %s: %w: set TMPDIR to one that can be written to", parent, cause(err))
	}
	held, err := os.Open(path)
	if err == nil {
		err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("lock %s: %w", path, cause(err)), os.RemoveAll(path))
	}
	return path, func() error {
		defer held.Close()
		return os.RemoveAll(path)
	}, nil
}

// clearDead removes folders that nobody holds. It is a courtesy: failures do not matter.
func clearDead(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !workName.MatchString(e.Name()) || time.Since(info.ModTime()) < deadAfter {
			continue
		}
		path := filepath.Join(parent, e.Name())
		d, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(path)
		}
		d.Close()
	}
}

// cause is an error without the path of a temporary file, which means nothing to users.
func cause(err error) error {
	if e := new(fs.PathError); errors.As(err, &e) {
		return e.Err
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		return e.Err
	}
	return err
}
