package checkpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const temporaryPrefix = ".tmp-"

var stepForm = regexp.MustCompile(`^step-[0-9]{8,}(-[0-9]+)?$`)

// stored is a checkpoint folder of a run.
type stored struct {
	dir      string
	complete bool
	readable bool // state could be read
	state    State
}

// age orders the checkpoints of a run. One that is marked complete and whose state cannot be read counts as the
// newest, so that the damage is reported and not passed over.
func (s stored) age() int64 {
	if !s.readable {
		return math.MaxInt64
	}
	return s.state.Serial
}

// list gives the checkpoint folders of a run, the newest first, the incomplete ones among them.
func list(runDir string) ([]stored, error) {
	entries, err := os.ReadDir(runDir)
	if err != nil {
		return nil, err
	}
	var all []stored
	for _, e := range entries {
		if !stepForm.MatchString(e.Name()) {
			continue
		}
		s := stored{dir: filepath.Join(runDir, e.Name())}
		if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
			continue
		}
		_, err := os.Lstat(filepath.Join(s.dir, DoneFile))
		s.complete = err == nil
		if text, err := readSmall(filepath.Join(s.dir, StateFile), maxSmallFile); err == nil {
			s.state, err = decodeState(text)
			s.readable = err == nil
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b stored) int {
		switch {
		case a.age() > b.age():
			return -1
		case a.age() < b.age():
			return 1
		}
		return -strings.Compare(a.dir, b.dir)
	})
	return all, nil
}

// newestOf gives the newest complete checkpoint of a run, and a sentence for each newer one that was passed over.
func newestOf(runDir string) (stored, []string, error) {
	var passed []string
	// A save by another process may clear the only folder that we saw away before we look into it, so look again.
	for range 3 {
		all, err := list(runDir)
		if err != nil {
			return stored{}, nil, fmt.Errorf("run folder: %w", err)
		}
		passed = passed[:0]
		for _, s := range all {
			if s.complete {
				notes := make([]string, 0, len(passed))
				for _, p := range passed {
					notes = append(notes, fmt.Sprintf("%s is incomplete (its save was cut off); using %s", p, s.dir))
				}
				return s, notes, nil
			}
			passed = append(passed, s.dir)
		}
	}
	what := "it has no folders step-..."
	if len(passed) > 0 {
		what = fmt.Sprintf("all of its %d saves were cut off", len(passed))
	}
	return stored{}, nil, fmt.Errorf("%s: %w: %s; train first: chiplm train --config combo.yaml", runDir, ErrNone, what)
}

// Newest finds the newest complete checkpoint over all runs under root (a run's own folder will do as well), by the time
// recorded when it was saved, since copying and touching change the times of folders. The error wraps [ErrNone] when
// there is none.
func Newest(root string) (string, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for runs: %w", err)
	}
	runs := []string{root}
	for _, e := range entries {
		if !stepForm.MatchString(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			runs = append(runs, filepath.Join(root, e.Name()))
		}
	}
	var best stored
	for _, run := range runs {
		all, err := list(run)
		if err != nil {
			continue // not a folder, or not ours to read
		}
		for _, s := range all {
			if s.complete && s.readable {
				if best.dir == "" || s.state.SavedAt.After(best.state.SavedAt) {
					best = s
				}
				break // the run's newest
			}
		}
	}
	if best.dir == "" {
		return "", fmt.Errorf("%s: %w in any run; train first: chiplm train --config combo.yaml, or name a checkpoint", root, ErrNone)
	}
	return best.dir, nil
}
