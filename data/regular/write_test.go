package regular

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// What cannot be written is told under its own name, never under that of the temporary file, and with what is wrong.
func TestWriteNamesWhatUsersKnow(t *testing.T) {
	dir := t.TempDir()
	file, loose, shut := filepath.Join(dir, "file"), filepath.Join(dir, "loose"), filepath.Join(dir, "shut")
	if err := errors.Join(WriteFile(file, []byte("x")), os.Symlink("none/later", loose), os.Mkdir(shut, 0o500)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "x.html"): "there is no folder " + filepath.Join(dir, "none") + "; make it first",
		loose:                                "there is no folder " + filepath.Join(dir, "none") + "; make it first",
		filepath.Join(file, "x.html"):        file + " is no folder, but a file; name another",
		filepath.Join(shut, "x.html"):        "the folder " + shut + ": permission denied",
	} {
		err := WriteFile(path, []byte("x"))
		if err == nil && os.Getuid() == 0 {
			continue // who may write anywhere
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "/.") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if err := WriteFile(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is no missing file", err)
	}
	err := Write(file, func(w io.Writer) error { // as a full disk would
		w.(io.Closer).Close()
		_, err := w.Write([]byte("half"))
		return err
	})
	if err == nil || !strings.HasPrefix(err.Error(), "write "+file+": ") {
		t.Errorf("a failed write: %v", err)
	}
}
