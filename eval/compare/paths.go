package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/eval/results"
)

// files gives the files of results that arguments name: a folder stands for the results in it, as a sweep leaves them.
func files(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			folder := path
			path = filepath.Join(folder, results.File)
			if _, err := os.Stat(path); err != nil {
				return nil, missing(folder, err)
			}
		}
		all = append(all, path)
	}
	return all, nil
}

// missing says of a folder without results what to name instead.
func missing(folder string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read results: %w", err)
	}
	what := "name the folder of a sweep, or its file of results"
	if below, _ := filepath.Glob(filepath.Join(folder, "*", results.File)); len(below) > 0 {
		what = "there is one in " + filepath.Dir(below[0])
	}
	return regular.Absentf("read results: there is no %s in the folder %s; %s", results.File, folder, what)
}
