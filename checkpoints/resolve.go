package checkpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/regular"
)

// listed is how many runs an error names.
const listed = 8

// Resolve finds what a user names: nothing for the newest checkpoint of all runs under root, a path, or the name of a run
// under root (or of a checkpoint in it: combo/step-00000200). A path that exists goes before a run, except that a folder
// that is neither checkpoint nor run does not hide a run of the same name. The result exists, but may be anything, a file
// of another kind included: [Load] says what is wrong with it. The error for a name that is nowhere wraps
// [fs.ErrNotExist], and names the nearest run.
func Resolve(root, nameOrPath string) (string, error) {
	if nameOrPath == "" {
		return Newest(root)
	}
	info, err := os.Stat(nameOrPath)
	if err == nil && (!info.IsDir() || isCheckpoint(nameOrPath) || isRun(nameOrPath)) {
		return nameOrPath, nil
	}
	if err != nil && !absent(err) {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	if filepath.IsLocal(nameOrPath) {
		run := filepath.Join(root, nameOrPath)
		if _, err := os.Stat(run); err == nil && filepath.Clean(nameOrPath) != "." {
			return run, nil
		}
	}
	if err == nil {
		return nameOrPath, nil
	}
	return "", regular.Absentf("%s: there is no such path, and no run of that name under %s: %s", nameOrPath, root, advice(nameOrPath, Runs(root)))
}

// advice says which of the runs may be meant.
func advice(name string, runs []string) string {
	if len(runs) == 0 {
		return "there are no runs; train first: chiplm train --config combo.yaml"
	}
	first, rest, inRun := strings.Cut(filepath.ToSlash(name), "/")
	near := configs.Nearest(first, runs)
	switch {
	case near == "":
		shown, more := runs, ""
		if len(runs) > listed {
			shown, more = runs[:listed], fmt.Sprintf(" and %d more", len(runs)-listed)
		}
		return "the runs are " + strings.Join(shown, ", ") + more
	case near == first && inRun:
		return fmt.Sprintf("the run %s has no %s; name the run alone for its newest checkpoint", first, rest)
	}
	return "did you mean " + near + "?"
}

// Runs names the runs under root, in order of their names; none when root cannot be read. A run counts with its first
// save, complete or not.
func Runs(root string) []string {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !stepForm.MatchString(e.Name()) && isRun(filepath.Join(root, e.Name())) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// RunName is the name of the run that a checkpoint's folder belongs to: that of the folder around step-...; of a released
// model, which may have any name, its own. Empty for weights that lie in no folder.
func RunName(checkpointDir string) string {
	if checkpointDir == "" {
		return ""
	}
	dir, err := filepath.Abs(checkpointDir)
	if err != nil {
		dir = filepath.Clean(checkpointDir)
	}
	if stepForm.MatchString(filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return filepath.Base(dir)
}

// isRun tells a run by its checkpoints.
func isRun(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return stepForm.MatchString(e.Name()) })
}

// absent reports whether nothing has the path. A path below a file is no error of the system, but a name like any other.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
