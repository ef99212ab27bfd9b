package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// dist is a page of a few files.
var dist = fstest.MapFS{
	"README.md":            {Data: []byte("stands for the page")},
	"index.html":           {Data: []byte("<!doctype html><title>chiplm</title>")},
	"main.js":              {Data: []byte("export const answer = 42;\n")},
	"style.css":            {Data: []byte("body { margin: 0 }\n")},
	"engine.wasm":          {Data: []byte("\x00asm\x01\x00\x00\x00")},
	"vendor/esptool.js":    {Data: []byte("export {};\n")},
	"vendor/LICENSE":       {Data: []byte("free\n")},
	"vendor/data/stub.bin": {Data: []byte{1, 2, 3}},
}

// store is a context with released models: tiny, and no other.
func store(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	return released.With(ctx, released.New(os.DirFS(filepath.Dir(tinymodel.Release(t)))))
}

// execute runs the command without a browser, and gives what it printed.
func execute(t *testing.T, ctx context.Context, page fs.FS, args ...string) (out, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := Command(page)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// served is a page that is served until the test ends.
type served struct {
	t       *testing.T
	address string // with the slash at the end
	virtual string
	notes   *bytes.Buffer // to be read after end
	stop    context.CancelFunc
	ended   chan error
}

// serve starts the command.
func serve(t *testing.T, ctx context.Context, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	s := &served{t: t, notes: new(bytes.Buffer), stop: cancel, ended: make(chan error, 1)}
	r, w := io.Pipe()
	c := Command(dist)
	c.SetOut(w)
	c.SetErr(s.notes)
	c.SetArgs(append([]string{"--no-open", "--listen", "127.0.0.1:0", "--json"}, args...))
	c.SilenceUsage, c.SilenceErrors = true, true
	go func() {
		err := c.ExecuteContext(ctx)
		w.CloseWithError(err)
		s.ended <- err
	}()
	t.Cleanup(func() { s.end() })
	var told struct{ Address, Virtual string }
	if err := json.NewDecoder(bufio.NewReader(r)).Decode(&told); err != nil {
		t.Fatal(err)
	}
	s.address, s.virtual = told.Address, told.Virtual
	return s
}

// end interrupts the command, which is how it is meant to end.
func (s *served) end() {
	s.t.Helper()
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Error(err)
		}
		s.ended <- nil
	case <-time.After(time.Minute):
		s.t.Fatal("it does not end")
	}
}

// get asks for a file, which must be there.
func (s *served) get(name string) (*http.Response, []byte) {
	s.t.Helper()
	answer, err := http.Get(s.address + name)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, b
}

// decode reads a file of JSON.
func (s *served) decode(name string, into any) {
	s.t.Helper()
	answer, b := s.get(name)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
		s.t.Fatalf("%s: %s: %s", name, answer.Status, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, b)
	}
}

// buildFolder writes a firmware as idf.py leaves it, with a model partition at an offset.
func buildFolder(t *testing.T, modelLine string) string {
	t.Helper()
	table, err := parts.ParseCSV([]byte("nvs,data,nvs,0x9000,0x6000\nfactory,app,factory,0x10000,768K\n" + modelLine))
	if err != nil {
		t.Fatal(err)
	}
	program := make([]byte, 5000)
	program[0] = 0xE9
	binary.LittleEndian.PutUint16(program[12:], 9)
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"bootloader/bootloader.bin":           program[:3000],
		"partition_table/partition-table.bin": table.Binary(),
		"chiplm.bin":                          program,
		"flasher_args.json": []byte(`{"bootloader": {"offset": "0x0", "file": "bootloader/bootloader.bin"},
			"app": {"offset": "0x10000", "file": "chiplm.bin"},
			"partition-table": {"offset": "0x8000", "file": "partition_table/partition-table.bin"},
			"extra_esptool_args": {"chip": "esp32s3"}}`),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// refusal says whether an error is one of the command line.
func refusal(err error) bool {
	var coded interface{ ExitCode() int }
	return errors.As(err, &coded) && coded.ExitCode() == 2
}

// A program that was built without its page says how it gets one, and does nothing else.
func TestNotBuilt(t *testing.T) {
	empty := fstest.MapFS{"README.md": dist["README.md"]}
	for _, args := range [][]string{nil, {"--out", filepath.Join(t.TempDir(), "out")}} {
		out, _, err := execute(t, t.Context(), empty, args...)
		if !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "make build") || out != "" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

// What the program carries is either a page or nothing but the file that stands for one.
func TestDist(t *testing.T) {
	files, err := pageFiles(Dist())
	if errors.Is(err, ErrNotBuilt) {
		entries, err := fs.ReadDir(Dist(), ".")
		if err != nil || len(entries) != 1 || entries[0].Name() != notServed {
			t.Errorf("a page without %s: %v, %v", indexFile, entries, err)
		}
		t.Skip("the page is not built here: make build")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.name == notServed {
			t.Errorf("%s is served", f.name)
		}
		if b, err := f.content(t.Context()); err != nil || len(b) == 0 {
			t.Errorf("%s is empty: %v", f.name, err)
		}
	}
}
