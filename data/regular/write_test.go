package regular

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteReplacesFilesAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	file, link, loose, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "loose"), filepath.Join(dir, "pipe")
	for _, text := range []string{"first", "second"} {
		if err := WriteFile(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != text {
			t.Errorf("%q, %v; want %q", b, err, text)
		}
	}

	if err := errors.Join(os.Symlink("file", link), os.Symlink("later", loose), syscall.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for path, target := range map[string]string{link: file, loose: filepath.Join(dir, "later")} {
		if err := WriteFile(path, []byte("through")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is a link no more", path)
		}
		if b, err := os.ReadFile(target); err != nil || string(b) != "through" {
			t.Errorf("%s: %q, %v", target, b, err)
		}
	}

	before, _ := os.ReadDir(dir)
	for _, path := range []string{pipe, dir, "/dev/null"} {
		if err := WriteFile(path, []byte("x")); !errors.Is(err, ErrKind) {
			t.Fatalf("writing to %s: %v", path, err)
		}
	}
	broken := errors.New("broken")
	if err := Write(file, func(w io.Writer) error { w.Write([]byte("half")); return broken }); !errors.Is(err, broken) {
		t.Errorf("a failed write: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "through" {
		t.Errorf("after a failed write: %q, %v", b, err)
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) {
		t.Errorf("%d entries before, %d after: something was left", len(before), len(after))
	}
}
