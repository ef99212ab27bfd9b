package regular

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKeepInput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(name, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	abs, err := filepath.Abs("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", "soft"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link("a", "hard"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "./a", abs, "soft", "hard"} {
		if KeepInput(path, "b", "a") == nil {
			t.Errorf("%s is the input", path)
		}
		if err := KeepInput(path, "b", "builtin", "none"); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := KeepInput("new", "a"); err != nil {
		t.Error(err)
	}
}
