package web

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// tree is all files under a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, rel := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(b)
		return errors.Join(err, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The folder holds what the server serves, complete, and nothing else; a second writing replaces the first.
func TestOut(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	fw := buildFolder(t, "model,0x40,0,0xD0000,0xF30000")
	exported, hosted := tinymodel.Export(t, targetName, nil), tinymodel.Export(t, "host", nil)
	parent := t.TempDir()
	dir := filepath.Join(parent, "public")
	out, notes, err := execute(t, t.Context(), dist, exported, hosted, "--firmware", fw, "--out", dir)
	if err != nil || !strings.HasPrefix(out, dir+": ") || !strings.Contains(notes, "tiny-2 cannot go on the chip") {
		t.Fatalf("%v\n%s%s", err, out, notes)
	}
	files := tree(t, dir)
	s := serve(t, t.Context(), exported, hosted, "--firmware", fw)
	s.get("models/tiny/model.json")
	s.get("models/tiny-2/model.json")
	var a about
	if err := json.Unmarshal([]byte(files[pageFile]), &a); err != nil || a.Kind != pageKind || len(a.Files) != len(files)-1 || a.Virtual != nil {
		t.Fatalf("%v\n%s", err, files[pageFile])
	}
	for name, b := range files {
		if name == pageFile {
			continue
		}
		if f := a.Files[name]; f.SHA256 != hashOf([]byte(b)) || f.Bytes != int64(len(b)) {
			t.Errorf("%s: %+v", name, f)
		}
		if _, served := s.get(name); string(served) != b {
			t.Errorf("%s is not what is served", name)
		}
	}
	for _, name := range []string{"index.html", "vendor/esptool.js", "models/tiny/model.clm", "models/tiny/esp32s3/model.clm", "models/tiny-2/model.clm", "firmware/firmware.bin"} {
		if _, ok := files[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	if _, ok := files["models/tiny-2/esp32s3/model.clm"]; ok {
		t.Error("an image for a host as one for the chip")
	}

	if _, _, err := execute(t, t.Context(), dist, exported, "--out", dir, "--json"); err != nil {
		t.Fatal(err)
	}
	if again := tree(t, dir); again["models/tiny/model.clm"] != files["models/tiny/model.clm"] || len(again) >= len(files) {
		t.Errorf("written again: %d files, before %d", len(again), len(files))
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("beside the folder there is left: %v", entries)
	}
}

// What is no older page is not touched.
func TestOutRefuses(t *testing.T) {
	image := tinymodel.Image(t)
	write := func(path, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(t.TempDir(), "page")
	if _, _, err := execute(t, t.Context(), dist, image, "--out", page); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(page, "models", "mine.txt"), "mine")
	home := t.TempDir()
	write(filepath.Join(home, "letter.txt"), "dear")
	foreign := t.TempDir()
	write(filepath.Join(foreign, pageFile), `{"kind": "another page", "files": {}}`)
	file := filepath.Join(t.TempDir(), "file")
	write(file, "text")
	changed := filepath.Join(t.TempDir(), "page")
	if _, _, err := execute(t, t.Context(), dist, image, "--out", changed); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(changed, "index.html"), strings.ToUpper("<!doctype html><title>chiplm</title>")) // of the same length
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(page, link); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(home, "none"), nowhere); err != nil {
		t.Fatal(err)
	}
	for name, told := range map[string]string{link: "mine.txt", nowhere: "does not exist", changed: "index.html was changed"} {
		if _, _, err := execute(t, t.Context(), dist, image, "--out", name); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(os.Remove(link), os.Remove(nowhere)); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a changed page": changed, "a page with something more": page, "another folder": home, "another's page": foreign, "a file": file} {
		before := tree(t, filepath.Dir(dir))
		_, _, err := execute(t, t.Context(), dist, image, "--out", dir)
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if after := tree(t, filepath.Dir(dir)); len(after) != len(before) {
			t.Errorf("%s: %d files, before %d", name, len(after), len(before))
		}
	}
	t.Chdir(home)
	if _, _, err := execute(t, t.Context(), dist, image, "--out", "."); !errors.Is(err, ErrFolder) {
		t.Errorf("the folder one is in: %v", err)
	}
	empty := t.TempDir()
	if _, _, err := execute(t, t.Context(), dist, image, "--out", empty); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}

// A link leads to the folder that is written, and stays one.
func TestOutThroughLink(t *testing.T) {
	image := tinymodel.Image(t)
	at, link := filepath.Join(t.TempDir(), "page"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(at, 0o755), os.Symlink(at, link)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := execute(t, t.Context(), dist, image, "--out", link); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != at {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if _, err := os.Stat(filepath.Join(at, "index.html")); err != nil {
		t.Error(err)
	}
}

// An error names a file as the page has it, and not a temporary one.
func TestPutNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(filepath.Join(file, "index.html"), "index.html", nil); err == nil || strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "index.html") {
		t.Errorf("%v", err)
	}
}
