package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
)

// ErrFolder is wrapped where a folder holds something else than a page that was written earlier.
var ErrFolder = errors.New("would be lost")

// write writes the site as plain files at dir, whole or not at all. An older one there is replaced; what else there is stays,
// and is an error. skipped is told of what there is not.
func (s *site) write(ctx context.Context, dir string, skipped func(error)) (*about, error) {
	at, err := replaceable(dir)
	if err != nil {
		return nil, err
	}
	// First, so that models.json is complete.
	for _, m := range s.models {
		if _, err := m.chip.get(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			skipped(fmt.Errorf("%s %w: %w", m.name, ErrNoChip, err))
		}
	}
	a := new(about)
	err = export.PutFolder(at, func(tmp string) error {
		files, folders := map[string]released.File{}, map[string]bool{}
		for _, f := range s.files() {
			if f.name == pageFile {
				continue // last: it lists the others
			}
			b, err := f.content(ctx)
			if errors.Is(err, ErrNoChip) || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			path := filepath.Join(tmp, filepath.FromSlash(f.name))
			folders[filepath.Dir(path)] = true
			if err := put(path, f.name, b); err != nil {
				return err
			}
			files[f.name] = released.FileOf(b)
		}
		text, err := s.about(files)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, a); err != nil {
			return err
		}
		if err := put(filepath.Join(tmp, pageFile), pageFile, text); err != nil {
			return err
		}
		for folder := range folders {
			if err := syncFolder(folder); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return nil, fmt.Errorf("--out %s: %w: make room there, or choose another folder; nothing was changed", dir, err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("--out %s: %w: choose a folder that you may write to; nothing was changed", dir, regular.Cause(err))
	case err != nil:
		return nil, fmt.Errorf("--out %s: %w", dir, err)
	}
	return a, nil
}

// put writes a file of the page. An error has its name there, not that of a temporary one.
func put(path, name string, b []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = regular.WriteFile(path, b)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, regular.Cause(err))
	}
	return nil
}

// syncFolder makes the names in a folder last.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// replaceable allows a path that does not exist, an empty folder, and a page that was written earlier, as it was written and
// with nothing else in it. It gives where that is, behind links.
func replaceable(dir string) (string, error) {
	at, err := filepath.EvalSymlinks(dir)
	switch info, link := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist) && link == nil && info.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(dir)
		return "", fmt.Errorf("--out %s: it is a link to %s, which does not exist: make that folder, or remove the link", dir, to)
	case errors.Is(err, fs.ErrNotExist):
		return dir, nil
	case err != nil:
		return "", fmt.Errorf("--out %s: %w: name a folder, or one that does not exist yet", dir, regular.Cause(err))
	case link == nil && info.Mode()&fs.ModeSymlink == 0:
		at = dir // as it was named
	}
	entries, err := os.ReadDir(at)
	switch {
	case err == nil && len(entries) == 0:
		return at, nil
	case err != nil:
		return "", fmt.Errorf("--out %s: %w: name a folder, or one that does not exist yet", dir, regular.Cause(err))
	}
	var old about
	text, err := regular.ReadFile(filepath.Join(at, pageFile), mostText)
	if err != nil || json.Unmarshal(text, &old) != nil || old.Kind != pageKind || old.Files == nil {
		return "", fmt.Errorf("--out %s: there is something else than a page of chiplm page, which %w: choose another folder, or remove it", dir, ErrFolder)
	}
	return at, filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(at, path)
		if err != nil {
			return err
		}
		known, ours := old.Files[filepath.ToSlash(name)]
		switch {
		case name == pageFile:
			return nil
		case !ours:
			return fmt.Errorf("--out %s: beside an older page there is %s, which %w: move it, or choose another folder", dir, name, ErrFolder)
		}
		if b, err := os.ReadFile(path); err != nil || !d.Type().IsRegular() || released.FileOf(b) != known {
			return fmt.Errorf("--out %s: %s was changed since the older page was written, which %w: move it, or choose another folder", dir, name, ErrFolder)
		}
		return nil
	})
}
