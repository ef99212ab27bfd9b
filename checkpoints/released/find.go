package released

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/regular"
)

// Found is what a name stands for: a path of the user's, or a released model.
type Found struct {
	Path  string
	Model *Model // nil: the path
}

// Find finds what a user names, as [checkpoints.Resolve] does, and beside that the released models of the context: by name,
// by released/NAME, or by the path of a folder. The user's own go before a released model of the same name. Without a name
// the newest checkpoint under root is meant, and where nothing was trained yet, the default model. What was taken where that
// is not plain goes to notes, a line each. The error for a name that is nowhere wraps [fs.ErrNotExist].
func Find(ctx context.Context, root, name string, notes io.Writer) (Found, error) {
	s := From(ctx)
	if name == "" {
		return s.unnamed(root, notes)
	}
	path, err := checkpoints.Resolve(root, name)
	has := slices.Contains(s.Names(), name)
	// The prefix is there for what a path or a run of the same name hides.
	if rest, ok := strings.CutPrefix(filepath.ToSlash(name), Prefix); ok && (slices.Contains(s.Names(), rest) || errors.Is(err, fs.ErrNotExist)) {
		m, err := s.Open(rest)
		if errors.Is(err, ErrUnknown) {
			err = regular.Absentf("%w", err)
		}
		return Found{Model: m}, err
	}
	switch {
	case err == nil && IsFolder(path):
		m, err := OpenFolder(path)
		return Found{Model: m}, err
	case err == nil && has && foreign(path):
		fmt.Fprintf(notes, "note: the released model %s; the folder of that name here is none of a model\n", name)
	case err == nil:
		if has {
			fmt.Fprintf(notes, "note: your own %s, in %s; the released model of that name is %s%s\n", name, path, Prefix, name)
		}
		return Found{Path: path}, nil
	case has && errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(notes, "note: the released model %s\n", name)
	case errors.Is(err, fs.ErrNotExist) && len(s.Names()) > 0:
		return Found{}, fmt.Errorf("%w; of the released models, %s", err, advice(name, s.Names()))
	default:
		return Found{}, err
	}
	m, err := s.Open(name)
	return Found{Model: m}, err
}

// unnamed is the newest checkpoint, or the default model where there is none.
func (s *Store) unnamed(root string, notes io.Writer) (Found, error) {
	path, err := checkpoints.Resolve(root, "")
	choice := s.Default()
	if err == nil || choice == "" || !errors.Is(err, checkpoints.ErrNone) {
		return Found{Path: path}, err
	}
	fmt.Fprintf(notes, "note: nothing was trained under %s yet: the released model %s; there are %s (chiplm models)\n", root, choice,
		strings.Join(s.Names(), ", "))
	m, err := s.Open(choice)
	return Found{Model: m}, err
}

// foreign says whether a path is a folder without any model, which does not hide a released model of its name.
func foreign(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || checkpoints.Kind(path) != "" {
		return false
	}
	_, err = os.Stat(filepath.Join(path, ImageFile))
	return err != nil
}

// Completions are the names that a shell may offer: of the runs under root, and of the released models.
func Completions(ctx context.Context, root string) []string {
	all := append(checkpoints.Runs(root), From(ctx).Names()...)
	slices.Sort(all)
	return slices.Compact(all)
}
