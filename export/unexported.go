package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export/targets"
)

// ErrUnexported is wrapped where an export is wanted and a run or a checkpoint is named.
var ErrUnexported = errors.New("export it first")

// Exported checks that a path is not one of a run or a checkpoint, of which no board and no flashing program reads anything.
// A path that is nowhere may be the name of a run under [checkpoints.DefaultRoot], or of a released model. It says nothing about what else the path is.
func Exported(path string) error {
	if _, err := os.Stat(filepath.Join(path, ImageFile)); path == "" || err == nil {
		return nil
	}
	kind := checkpoints.Kind(path)
	if _, err := os.Stat(path); kind == "" && err != nil && filepath.IsLocal(path) {
		kind = checkpoints.Kind(filepath.Join(checkpoints.DefaultRoot, path))
		if kind == "" && slices.Contains(released.Embedded().Names(), strings.TrimPrefix(path, released.Prefix)) {
			kind = "released model"
		}
	}
	if kind == "" {
		return absentExport(path)
	}
	name := path
	if filepath.Base(path) == checkpoints.ModelFile {
		name = filepath.Dir(path)
	}
	return fmt.Errorf("%s is a %s; %w: chiplm export %s --target esp32s3", path, kind, ErrUnexported, name)
}

// absentExport is the error for a path that nothing has and that is called as an export would be: NAME-TARGET.
func absentExport(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := path
	if filepath.Base(path) == ImageFile {
		dir = filepath.Dir(path)
	}
	base := filepath.Base(dir)
	for _, target := range targets.Builtin() {
		if name, ok := strings.CutSuffix(base, "-"+target); ok && name != "" && filepath.Base(filepath.Dir(dir)) == exportsFolder {
			return regular.Absentf("there is no %s: %w: chiplm export %s --target %s", path, ErrUnexported, name, target)
		}
	}
	return nil
}

// exportsFolder is where exports are written unless a user says otherwise.
const exportsFolder = "exports"
