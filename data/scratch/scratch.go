// Package scratch makes folders for what a command keeps on the disk while it runs. Who makes one clears away those that
// killed commands of its kind left.
//
// Caveat: whether somebody still uses a folder is known by a lock on it, so a file system without locks keeps none.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chiplm/chiplm/data/regular"
)

const deadAfter = time.Hour // a folder of this age whose maker lives is locked

// Folder makes a folder for a kind of command, such as "page", which done removes. It lies where the environment has
// temporary files. Folders of that kind whose programs were killed go too.
func Folder(kind string) (path string, done func() error, err error) {
	parent, prefix := os.TempDir(), "chiplm-"+kind+"-"
	clearDead(parent, prefix)
	path, err = os.MkdirTemp(parent, prefix)
	if err != nil {
		return "", nil, fmt.Errorf("the folder for temporary files, %s: %w: set TMPDIR to one that can be written to", parent, regular.Cause(err))
	}
	held, err := os.Open(path)
	if err == nil {
		err = lock(held)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("lock %s: %w", path, regular.Cause(err)), os.RemoveAll(path))
	}
	return path, func() error {
		defer held.Close()
		return os.RemoveAll(path)
	}, nil
}

// clearDead removes folders that nobody holds. It is a courtesy: failures do not matter.
func clearDead(parent, prefix string) {
	name := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + `\d+$`)
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !name.MatchString(e.Name()) || time.Since(info.ModTime()) < deadAfter {
			continue
		}
		path := filepath.Join(parent, e.Name())
		d, err := os.Open(path)
		if err != nil {
			continue
		}
		if lock(d) == nil {
			_ = os.RemoveAll(path) // those of other users stay
		}
		d.Close()
	}
}

// lock takes a folder until it is closed; it fails where another has it.
func lock(d *os.File) error {
	for {
		if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}
