package checkpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const temporaryPrefix = ".tmp-"

var stepForm = regexp.MustCompile(`^step-[0-9]{8,}(-[0-9]+)?$`)

// stored is a checkpoint folder of a run.
type stored struct {
	dir      string
	complete bool  // it has a DONE
	fault    error // why its state cannot be trusted; nil for a complete checkpoint whose state is the one that was saved
	state    State // what could be read of it
}

// inspect looks at a checkpoint folder without its tensors.
func inspect(dir string) stored {
	s := stored{dir: dir}
	_, err := os.Lstat(filepath.Join(dir, DoneFile))
	s.complete = !errors.Is(err, fs.ErrNotExist)
	done, err := readDone(dir)
	if err != nil {
		s.fault = err
		text, _ := readSmall(filepath.Join(dir, StateFile), maxSmallFile)
		s.state, _ = decodeState(text)
		return s
	}
	text, err := readChecked(dir, StateFile, done)
	if err != nil {
		s.fault = err
		return s
	}
	if s.state, err = decodeState(text); err != nil {
		s.fault = fmt.Errorf("%s: %w", dir, err)
	}
	return s
}

// newer is the one rule for which of two checkpoints of a run is the newer: the one with the higher serial, or, where a
// serial cannot be read, the one whose folder has the higher number.
func newer(a, b stored) bool {
	if a.state.Serial > 0 && b.state.Serial > 0 && a.state.Serial != b.state.Serial {
		return a.state.Serial > b.state.Serial
	}
	stepA, againA := folderNumbers(a.dir)
	stepB, againB := folderNumbers(b.dir)
	if stepA != stepB {
		return stepA > stepB
	}
	return againA > againB
}

// folderNumbers takes step-00000200-3 apart: step 200, its third folder.
func folderNumbers(dir string) (step, again uint64) {
	number, count, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "step-"), "-")
	step, _ = strconv.ParseUint(number, 10, 64) // out of range gives the largest
	again, _ = strconv.ParseUint(count, 10, 64)
	return step, again
}

// list gives the checkpoint folders of a run, the newest first, the incomplete and the damaged ones among them.
func list(runDir string) ([]stored, error) {
	entries, err := os.ReadDir(runDir)
	if err != nil {
		return nil, err
	}
	var known, unknown []stored
	for _, e := range entries {
		dir := filepath.Join(runDir, e.Name())
		if !stepForm.MatchString(e.Name()) || !isFolder(dir) {
			continue
		}
		if s := inspect(dir); s.state.Serial > 0 {
			known = append(known, s)
		} else {
			unknown = append(unknown, s)
		}
	}
	order := func(a, b stored) int {
		if newer(a, b) {
			return -1
		}
		return 1
	}
	slices.SortStableFunc(known, order)
	slices.SortStableFunc(unknown, order)
	// A run that went back to an earlier step has serials and numbers that disagree, so the two rules together order
	// pairs and not lists. What has no serial goes in front of the first that it is newer than.
	all := known
	for _, s := range unknown {
		at := slices.IndexFunc(all, func(other stored) bool { return newer(s, other) })
		if at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, s)
	}
	return all, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// HasCheckpoints says whether a run's folder holds any checkpoint at all, be it damaged, cut off or of a newer format.
// A new run does not start in such a folder. A folder that does not exist holds none.
func HasCheckpoints(runDir string) (bool, error) {
	entries, err := os.ReadDir(runDir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("run folder: %w", err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "step-") && isFolder(filepath.Join(runDir, e.Name()))
	}), nil
}

// newestOf gives the newest complete checkpoint of a run, and a sentence for each newer one that was passed over. Its
// fault is not looked at.
func newestOf(runDir string) (stored, []string, error) {
	var passed []string
	// A save by another process may clear the only folder that we saw away before we look into it, so look again.
look:
	for range 5 {
		all, err := list(runDir)
		if err != nil {
			return stored{}, nil, fmt.Errorf("run folder: %w", err)
		}
		passed = passed[:0]
		for _, s := range all {
			if s.fault != nil && !isFolder(s.dir) {
				continue look
			}
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
// recorded when it was saved, since copying and touching change the times of folders. A run whose newest checkpoint
// cannot be read is an error that names it: an older one is never taken in its place. The error wraps [ErrNone] when
// there is no checkpoint.
func Newest(root string) (string, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for runs: %w", err)
	}
	runs := []string{root}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if !stepForm.MatchString(e.Name()) && !strings.HasPrefix(e.Name(), ".") && isFolder(path) {
			runs = append(runs, path)
		}
	}
	var best stored
	for _, run := range runs {
		s, _, err := newestOf(run)
		if errors.Is(err, ErrNone) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("looking for runs: %w", err)
		}
		if s.fault != nil {
			return "", withRemedy(s.dir, s.fault)
		}
		if best.dir == "" || s.state.SavedAt.After(best.state.SavedAt) {
			best = s
		}
	}
	if best.dir == "" {
		return "", fmt.Errorf("%s: %w in any run; train first: chiplm train --config combo.yaml, or name a checkpoint", root, ErrNone)
	}
	return best.dir, nil
}
