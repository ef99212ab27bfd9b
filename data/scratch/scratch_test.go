package scratch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a program that was killed left behind goes; what somebody holds, what is new, what is of another kind, and what is no
// such folder stay.
func TestFolder(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	held, done, err := Folder("page")
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(parent, name) }
	for _, name := range []string{"chiplm-page-1", "chiplm-page-2", "chiplm-page-mine", "chiplm-page-3", "chiplm-flash-4"} {
		if err := os.MkdirAll(filepath.Join(at(name), "in"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{held, at("chiplm-page-1"), at("chiplm-page-2"), at("chiplm-page-mine"), at("chiplm-flash-4")} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	other, also, err := Folder("page")
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(parent, "*"))
	want := []string{held, other, at("chiplm-page-3"), at("chiplm-page-mine"), at("chiplm-flash-4")}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
	for _, done := range []func() error{done, also} {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(held); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", held, err)
	}
	t.Setenv("TMPDIR", at("none"))
	if _, _, err := Folder("page"); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("without a folder: %v", err)
	}
}
