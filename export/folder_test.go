package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
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
		if _, err := Write(context.Background(), dir, nil, nil); !errors.Is(err, ErrFolder) {
			t.Errorf("--out %s: %v", dir, err)
		}
	}
}
