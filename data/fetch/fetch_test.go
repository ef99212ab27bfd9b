package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server gives one file and can be made to misbehave. Its hub part answers like the Hugging Face hub: with a redirect
// that announces hash and size.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	content  []byte
	etag     string
	requests []string            // "range/if-range" of each request for the bytes
	cut      []int               // the n-th answer breaks off after so many bytes
	before   func(request int)   // called before the n-th request for the bytes
	answer   http.HandlerFunc    // in place of the file
	ignore   bool                // Range
	chunked  bool                // no Content-Length
	announce func(h http.Header) // headers of the redirect
}

func newServer(t *testing.T, content []byte) *server {
	s := &server{content: content, etag: `"one"`}
	mux := http.NewServeMux()
	mux.HandleFunc("/bytes", s.bytes)
	mux.HandleFunc("/datasets/", func(w http.ResponseWriter, r *http.Request) {
		if s.announce != nil {
			s.announce(w.Header())
		}
		http.Redirect(w, r, "/bytes", http.StatusFound)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) bytes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r.Header.Get("Range")+"/"+r.Header.Get("If-Range"))
	if s.before != nil {
		s.before(n)
	}
	content, etag := s.content, s.etag
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if s.ignore {
		r.Header.Del("Range")
	}
	if n < len(s.cut) {
		w = &cutter{w, s.cut[n]}
	}
	if s.chunked {
		w.(http.Flusher).Flush()
		w.Write(content)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// cutter breaks the connection after some bytes of the body.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func someBytes(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i*i>>3)
	}
	return b
}

// request is one that loses no time.
func request(t *testing.T, s *server) Request {
	return Request{URL: s.URL + "/datasets/x", Path: filepath.Join(t.TempDir(), "folder", "file.txt"), Backoff: time.Millisecond,
		Stall: 5 * time.Second, Note: func(text string) { t.Log(text) }}
}

// check wants the file whole and nothing beside it.
func check(t *testing.T, r Request, want []byte) {
	t.Helper()
	got, err := os.ReadFile(r.Path)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes (%v), want %d", len(got), err, len(want))
	}
	if entries, _ := os.ReadDir(filepath.Dir(r.Path)); len(entries) != 1 {
		t.Errorf("%d files in the folder, want the one", len(entries))
	}
}

// failed wants an error with a text, and no file under the final name.
func failed(t *testing.T, r Request, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	if _, err := os.Stat(r.Path); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a file under the final name")
	}
}

func TestWhole(t *testing.T) {
	content := someBytes(1_000_000, 1)
	s := newServer(t, content)
	r := request(t, s)
	r.Bytes, r.SHA256 = int64(len(content)), strings.ToUpper(sumOf(content))
	last := int64(0)
	r.Progress = func(done, total int64) {
		if done < last || total != int64(len(content)) {
			t.Errorf("progress goes from %d to %d of %d", last, done, total)
		}
		last = done
	}
	got, err := Get(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
	if got.SHA256 != sumOf(content) || got.Bytes != int64(len(content)) || got.Verified != "expected" || got.Present || last != got.Bytes {
		t.Errorf("result %+v, progress up to %d", got, last)
	}
	// Once more: it is there, and the server is not asked.
	if got, err = Get(context.Background(), r); err != nil || !got.Present || len(s.requests) != 1 {
		t.Errorf("once more: %+v, %v, %d requests", got, err, len(s.requests))
	}
	// A wrong file under the name is kept unless it may be replaced.
	if err := os.WriteFile(r.Path, someBytes(len(content), 2), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = Get(context.Background(), r); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a wrong file: error %v", err)
	}
	r.Force, r.Progress = true, nil
	if _, err = Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
}

func TestBrokenConnectionGoesOn(t *testing.T) {
	content := someBytes(900_000, 1)
	s := newServer(t, content)
	s.cut = []int{450_000, 100_000, 1}
	r := request(t, s)
	r.SHA256 = sumOf(content)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
	if want := `[/ bytes=450000-/"one" bytes=550000-/"one" bytes=550001-/"one"]`; fmt.Sprint(s.requests) != want {
		t.Errorf("requests %v, want %s", s.requests, want)
	}
}

func TestLaterCallGoesOn(t *testing.T) {
	content := someBytes(900_000, 1)
	s := newServer(t, content)
	s.cut = []int{300_000}
	r := request(t, s)
	r.Retries = 1
	_, err := Get(context.Background(), r)
	failed(t, r, err, "300000 bytes, which are kept")
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
	if s.requests[1] != `bytes=300000-/"one"` {
		t.Errorf("the second call asks for %s", s.requests[1])
	}
}

func TestServerIgnoresRange(t *testing.T) {
	content := someBytes(900_000, 1)
	s := newServer(t, content)
	s.ignore, s.cut = true, []int{300_000, 600_000}
	r := request(t, s)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
}

func TestFileChangesBetweenAttempts(t *testing.T) {
	before, after := someBytes(900_000, 1), someBytes(800_000, 77)
	s := newServer(t, before)
	s.cut = []int{300_000}
	s.before = func(n int) {
		if n == 1 {
			s.content, s.etag = after, `"two"`
		}
	}
	r := request(t, s)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, after)
}

// Without a validator the parts of two versions could be glued together: known hash or not, that never gets the name.
func TestFileChangesUnnoticed(t *testing.T) {
	before, after := someBytes(900_000, 1), someBytes(900_000, 77)
	for _, known := range []bool{true, false} {
		s := newServer(t, before)
		s.etag, s.cut = "", []int{300_000}
		s.before = func(n int) {
			if n == 1 {
				s.content = after
			}
		}
		r := request(t, s)
		if known {
			r.SHA256 = sumOf(after)
		}
		_, err := Get(context.Background(), r)
		if known {
			failed(t, r, err, "were thrown away")
			if _, err = os.Stat(r.Path + ".part"); !errors.Is(err, os.ErrNotExist) {
				t.Error("the wrong bytes are kept")
			}
			_, err = Get(context.Background(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, after)
	}
}

func TestWrongContent(t *testing.T) {
	content := someBytes(1000, 1)
	wrong := someBytes(1000, 2)
	s := newServer(t, wrong)
	r := request(t, s)
	r.Bytes, r.SHA256 = 1000, sumOf(content)
	_, err := Get(context.Background(), r)
	failed(t, r, err, "SHA-256 "+sumOf(wrong)+" where "+sumOf(content)+" is expected")

	r = request(t, s)
	r.Bytes = 999
	_, err = Get(context.Background(), r)
	failed(t, r, err, "a file of 1000 bytes where 999 are expected")

	r = request(t, s)
	r.SHA256 = "abc"
	_, err = Get(context.Background(), r)
	failed(t, r, err, "64 hexadecimal digits")

	s.chunked = true
	r = request(t, s)
	r.Bytes = 1001
	_, err = Get(context.Background(), r)
	failed(t, r, err, "1000 of 1001 bytes")
	r = request(t, s)
	r.Bytes = 999
	_, err = Get(context.Background(), r)
	failed(t, r, err, "more than the 999 bytes")
}

func TestServerAnnouncesTheHash(t *testing.T) {
	content := someBytes(1000, 1)
	s := newServer(t, content)
	announced := sumOf(content)
	s.announce = func(h http.Header) {
		h.Set("X-Linked-Etag", `"`+announced+`"`)
		h.Set("X-Linked-Size", "1000")
	}
	r := request(t, s)
	got, err := Get(context.Background(), r)
	if err != nil || got.Verified != "server" {
		t.Fatalf("%+v, %v", got, err)
	}
	check(t, r, content)

	announced = sumOf([]byte("other"))
	r = request(t, s)
	_, err = Get(context.Background(), r)
	failed(t, r, err, "were thrown away")
	r = request(t, s)
	r.SHA256 = sumOf(content)
	_, err = Get(context.Background(), r)
	failed(t, r, err, "it is another version")

	s.announce = func(h http.Header) { h.Set("X-Linked-Size", "1001") }
	r = request(t, s)
	_, err = Get(context.Background(), r)
	failed(t, r, err, "announces a file of 1001")

	s.announce = nil
	r = request(t, s)
	if got, err = Get(context.Background(), r); err != nil || got.Verified != "size only" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnswersWithoutTheFile(t *testing.T) {
	for code, c := range map[int]struct {
		want     string
		requests int
	}{
		404: {"404 Not Found: check --variant", 1},
		403: {"403 Forbidden", 1},
		418: {"not understood", 1},
		500: {"500 Internal Server Error; gave up after 3 attempts", 3},
		429: {"429 Too Many Requests; gave up after 3 attempts", 3},
	} {
		s := newServer(t, nil)
		s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		r := request(t, s)
		r.Retries = 3
		_, err := Get(context.Background(), r)
		failed(t, r, err, c.want)
		if entries, _ := os.ReadDir(filepath.Dir(r.Path)); len(entries) != 0 {
			t.Errorf("%d: %s is left behind", code, entries[0].Name())
		}
		if len(s.requests) != c.requests {
			t.Errorf("%d: %d requests, want %d", code, len(s.requests), c.requests)
		}
	}
}

func TestServerRecovers(t *testing.T) {
	content := someBytes(1000, 1)
	s := newServer(t, content)
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if len(s.requests) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write(content)
	}
	r := request(t, s)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
}

func TestWrongRanges(t *testing.T) {
	content := someBytes(1000, 1)
	for _, wrong := range []string{"bytes 400-999/1000", "bytes 500-999/2000", "nonsense", ""} {
		s := newServer(t, content)
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"one"`)
			switch len(s.requests) {
			case 1:
				w.Header().Set("Content-Length", "1000")
				w.Write(content[:500])
			case 2:
				w.Header().Set("Content-Range", wrong)
				w.WriteHeader(http.StatusPartialContent)
				w.Write(content[400:])
			default:
				w.Write(content)
			}
		}
		r := request(t, s)
		if _, err := Get(context.Background(), r); err != nil {
			t.Fatalf("range %q: %v", wrong, err)
		}
		check(t, r, content)
	}
}

func TestRangeNotThere(t *testing.T) {
	s := newServer(t, someBytes(1000, 1))
	s.cut = []int{700}
	s.before = func(n int) {
		if n == 1 {
			s.content = s.content[:600] // shorter, but by its tag the same
		}
	}
	r := request(t, s)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, s.content)
}

func TestStallIsGivenUp(t *testing.T) {
	content := someBytes(1000, 1)
	s := newServer(t, content)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		if len(s.requests) == 1 {
			w.Header().Set("Content-Length", "1000")
			w.Write(content[:500])
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
	r := request(t, s)
	r.Stall = 100 * time.Millisecond
	var notes []string
	r.Note = func(text string) { notes = append(notes, text) }
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
	if len(notes) == 0 || !strings.Contains(notes[0], "no byte came for 100ms") {
		t.Errorf("notes %q", notes)
	}
}

func TestDiskFull(t *testing.T) {
	content := someBytes(100_000, 1)
	r := request(t, newServer(t, content))
	d := &download{Request: r}
	d.defaults()
	var err error
	d.part = filepath.Join(t.TempDir(), "part")
	if d.out, err = os.Create(d.part); err != nil {
		t.Fatal(err)
	}
	d.out.WriteString("12345")
	d.state.Size = 100
	err = d.full(&os.PathError{Op: "write", Path: "part", Err: syscall.ENOSPC})
	if want := "the disk is full with 5 bytes, which are kept: make room for 95 more"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	// A device that is always full, where the system has one.
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	d.out = full
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if err := d.copy(ctx, cancel, bytes.NewReader(content)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("copying to a full device: error %v", err)
	}
}

func TestOfficialFiles(t *testing.T) {
	for _, variant := range []string{"v1", "v2"} {
		for _, split := range []string{"train", "valid"} {
			f, err := TinyStories(variant, split)
			if raw, _ := hex.DecodeString(f.SHA256); err != nil || len(raw) != 32 || f.Bytes < 1e7 || !strings.Contains(f.Name, split) {
				t.Errorf("%s %s: %+v, %v", variant, split, f, err)
			}
		}
	}
	if _, err := TinyStories("v3", "train"); err == nil {
		t.Error("v3 is accepted")
	}
	got, err := TinyStoriesURL("http://localhost:1/mirror/", "main", "a.txt")
	if want := "http://localhost:1/mirror/datasets/roneneldan/TinyStories/resolve/main/a.txt"; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, base := range []string{"", "huggingface.co", "ftp://x", "http://", "%"} {
		if _, err := TinyStoriesURL(base, "main", "a.txt"); err == nil {
			t.Errorf("the base URL %q is accepted", base)
		}
	}
}
