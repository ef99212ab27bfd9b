package regular

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesOpen(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, word := range map[string]string{dir: "folder", pipe: "pipe", "/dev/zero": "device"} {
		_, err := Open(path)
		if !errors.Is(err, ErrKind) || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), path) {
			t.Errorf("opening a %s: %v", word, err)
		}
	}
	for _, path := range []string{file, link} {
		if b, err := ReadFile(path, 4); err != nil || !bytes.Equal(b, []byte("text")) {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if _, err := ReadFile(file, 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("4 bytes where 3 are allowed: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "nothing"), 3); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
