package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A kill between two renames must leave a whole export under the name: where the system can exchange two folders, the
// old and the new one change places in one step.
func TestSwapLeavesOneFolderAndNoRest(t *testing.T) {
	parent := t.TempDir()
	for round, want := range []string{"first", "second", "third"} {
		tmp := filepath.Join(parent, ".out.tmp")
		if err := os.Mkdir(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tmp, "name"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(parent, "out")
		if err := swap(tmp, dir); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "name")); err != nil || string(got) != want {
			t.Errorf("round %d: %q, %v", round, got, err)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("round %d: %v are left beside the folder", round, entries)
		}
	}
}

func TestFoldersThatCannotBeReplacedAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{".", "..", "/", "./"} {
		if _, err := write(context.Background(), dir, nil, Manifest{}); !errors.Is(err, ErrFolder) {
			t.Errorf("--out %s: %v", dir, err)
		}
	}
}

// What killed exports left is cleared once it is old; a young one may be an export under way.
func TestDeadExportsAreCleared(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{".out.1.tmp", ".out.2.tmp", ".other.1.tmp"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * deadAfter)
	for _, name := range []string{".out.1.tmp", ".other.1.tmp"} {
		if err := os.Chtimes(filepath.Join(parent, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	clearDead(parent, "out")
	var left []string
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".other.1.tmp", ".out.2.tmp"}; !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
}

// While exports replace one another, somebody who looks finds a whole one every time: a kill at any moment would too.
func TestSwapNeverLeavesTheNameEmpty(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	fresh := func() string {
		tmp := filepath.Join(parent, ".out.tmp")
		if err := os.Mkdir(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tmp, "name"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return tmp
	}
	other := filepath.Join(parent, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exchange(fresh(), other); err != nil {
		t.Skipf("this file system cannot exchange folders: %v", err)
	}
	if err := os.Rename(other, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(parent, ".out.tmp")); err != nil {
		t.Fatal(err)
	}
	stop, missing := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				missing <- nil
				return
			default:
			}
			if _, err := os.Stat(dir); err != nil {
				missing <- err
				return
			}
		}
	}()
	for range 500 {
		if err := swap(fresh(), dir); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-missing; err != nil {
		t.Errorf("between two exports: %v", err)
	}
}
