package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
)

// ErrFolder is wrapped where a folder holds something else than a page that was written earlier.
var ErrFolder = errors.New("would be lost")

// write writes the site as plain files at dir, whole or not at all. An older one there is replaced; what else there is stays,
// and is an error. skipped is told of what there is not.
func (s *site) write(ctx context.Context, dir string, skipped func(error)) (*about, error) {
	if err := replaceable(dir); err != nil {
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
	err := export.PutFolder(dir, func(tmp string) error {
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
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := regular.WriteFile(path, b); err != nil {
				return fmt.Errorf("write %s: %w", f.name, err)
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
		if err := regular.WriteFile(filepath.Join(tmp, pageFile), text); err != nil {
			return err
		}
		for folder := range folders {
			if err := syncFolder(folder); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return a, nil
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

// replaceable allows a path that does not exist, an empty folder, and a page that was written earlier with nothing else in it.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("--out %s: %w: name a folder, or one that does not exist yet", dir, err)
	}
	var old about
	text, err := regular.ReadFile(filepath.Join(dir, pageFile), mostText)
	if err != nil || json.Unmarshal(text, &old) != nil || old.Kind != pageKind || old.Files == nil {
		return fmt.Errorf("--out %s: there is something else than a page of chiplm page, which %w: choose another folder, or remove it", dir, ErrFolder)
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if _, ours := old.Files[filepath.ToSlash(name)]; !ours && name != pageFile {
			return fmt.Errorf("--out %s: beside an older page there is %s, which %w: move it, or choose another folder", dir, name, ErrFolder)
		}
		return nil
	})
}
