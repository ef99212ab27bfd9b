package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Request says what to download. URL and Path must be set.
type Request struct {
	URL    string
	Path   string // final name of the file
	Bytes  int64  // expected size; 0: whatever the server says
	SHA256 string // expected hash in hexadecimal digits; empty: whatever the server announces
	Force  bool   // replace a file that is there already

	// Progress is told the bytes that are there of the total; total is -1 while it is unknown. May be nil.
	Progress func(done, total int64)
	// Note is told in a sentence what is noteworthy: a retry, a fresh start. May be nil.
	Note func(text string)

	Client  *http.Client  // nil: one with sensible time limits
	Retries int           // attempts in a row without a new byte before giving up; 0: 6
	Backoff time.Duration // wait after the first failure, doubled after each further one up to a minute; 0: a second
	Stall   time.Duration // time without a byte after which an attempt is given up; 0: 30 seconds
}

// Result says what was downloaded.
type Result struct {
	Path     string `json:"path"`
	URL      string `json:"url"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Verified string `json:"verified"` // what the hash was checked against: "expected", "server", or "size only"
	Present  bool   `json:"present"`  // the right file was there already, nothing was fetched
}

// fatal marks an error that trying again cannot mend.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// Get downloads a file. When it fails or ctx ends, what has arrived stays in Path.part and the next call goes on from
// there.
func Get(ctx context.Context, r Request) (*Result, error) {
	d := &download{Request: r}
	d.defaults()
	result, err := d.run(ctx)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		err = d.stopped(cause)
	}
	var lost *unreachable
	if errors.As(err, &lost) { // which names the host itself
		return nil, fmt.Errorf("downloading %s: %w", filepath.Base(r.Path), err)
	}
	if err != nil {
		return nil, fmt.Errorf("downloading %s from %s: %w", filepath.Base(r.Path), hostOf(r.URL), err)
	}
	return result, nil
}

// stopped is the error of a download that was interrupted, whatever it was doing.
func (d *download) stopped(cause error) error {
	return fmt.Errorf("stopped%s: run the same command to go on (%w)", d.kept(), cause)
}

// kept tells in an error what of the file stays for a later call; it is empty when that is nothing.
func (d *download) kept() string {
	if stat, err := os.Stat(d.part); err == nil && stat.Size() > 0 {
		return fmt.Sprintf(" with %d bytes, which are kept", stat.Size())
	}
	return ""
}

type download struct {
	Request
	part  string
	state state // of the part
	out   *os.File
}

func (d *download) defaults() {
	d.part = d.Path + ".part"
	d.SHA256 = strings.ToLower(d.SHA256)
	if d.Client == nil {
		d.Client = defaultClient()
	}
	if d.Retries == 0 {
		d.Retries = 6
	}
	if d.Backoff == 0 {
		d.Backoff = time.Second
	}
	if d.Stall == 0 {
		d.Stall = 30 * time.Second
	}
	if d.Progress == nil {
		d.Progress = func(int64, int64) {}
	}
	if d.Note == nil {
		d.Note = func(string) {}
	}
}

func (d *download) run(ctx context.Context) (*Result, error) {
	if d.SHA256 != "" {
		if raw, err := hex.DecodeString(d.SHA256); err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("the expected SHA-256 %q is not 64 hexadecimal digits", d.SHA256)
		}
	}
	if result, err := d.present(ctx); result != nil || err != nil {
		return result, err
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o777); err != nil {
		return nil, err
	}
	var err error
	if d.out, err = os.OpenFile(d.part, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	defer d.out.Close()
	d.state = readState(d.part)
	if err := d.attempts(ctx); err != nil {
		if d.size() == 0 {
			d.drop()
		}
		return nil, err
	}
	return d.finish(ctx)
}

// present looks at a file that is there already.
func (d *download) present(ctx context.Context) (*Result, error) {
	stat, err := os.Stat(d.Path)
	if errors.Is(err, os.ErrNotExist) || err == nil && d.Force && stat.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is there and is no file: choose another folder", d.Path)
	}
	const advice = "move it away, or replace it with --force"
	if d.Bytes > 0 && stat.Size() != d.Bytes {
		return nil, fmt.Errorf("%s is there with %d bytes where %d are expected: %s", d.Path, stat.Size(), d.Bytes, advice)
	}
	want, verified := d.SHA256, "expected"
	if want == "" {
		if want, err = d.announced(ctx); err != nil {
			return nil, err
		}
		verified = "server"
	}
	if want == "" {
		return nil, fmt.Errorf("%s is there, and no SHA-256 is known to check it: %s", d.Path, advice)
	}
	f, err := os.Open(d.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum, err := hashOf(ctx, f)
	if err != nil {
		return nil, err
	}
	if sum != want {
		return nil, fmt.Errorf("%s is there with SHA-256 %s where %s is expected: %s", d.Path, sum, want, advice)
	}
	return &Result{Path: d.Path, URL: d.URL, Bytes: stat.Size(), SHA256: sum, Verified: verified, Present: true}, nil
}

// fewRetries is how many attempts are made when the server cannot be reached at all and never could: that is rarely
// mended by waiting, and the user who is offline wants to know at once.
const fewRetries = 2

// attempts tries until the part is complete, or until nothing moves any more.
func (d *download) attempts(ctx context.Context) error {
	moved := false
	for failures, wait := 0, d.Backoff; ; {
		before := d.size()
		err := d.attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f := (fatal{}); errors.As(err, &f) {
			return f.error
		}
		if errors.Is(err, syscall.ENOSPC) {
			return d.full(err)
		}
		if d.size() > before {
			moved, failures, wait = true, 0, d.Backoff
		}
		limit, advice := d.Retries, "check the connection"
		var lost *unreachable
		if errors.As(err, &lost) {
			advice = "check the connection, or name a mirror with --base-url,"
			if lost.lasting && !moved {
				limit = min(limit, fewRetries)
			}
		}
		var slow *slowDown
		if errors.As(err, &slow) {
			wait, advice = max(wait, slow.wait), "wait a while"
		}
		if failures++; failures >= limit {
			return fmt.Errorf("%w; gave up after %d attempts%s: %s and run the same command again", err, failures, d.kept(),
				advice)
		}
		d.Note(fmt.Sprintf("%v; again in %v", err, wait))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, time.Minute)
	}
}

// full is the error of a disk without space.
func (d *download) full(err error) error {
	need := "the rest"
	if d.state.Size > 0 {
		need = fmt.Sprintf("%d more", d.state.Size-d.size())
	}
	return fmt.Errorf("the disk is full%s: make room for %s and run the same command to go on (%w)", d.kept(), need, err)
}

// size is how many bytes the part has.
func (d *download) size() int64 {
	stat, err := d.out.Stat()
	if err != nil {
		return 0
	}
	return stat.Size()
}

// finish checks the part and gives it its final name.
func (d *download) finish(ctx context.Context) (*Result, error) {
	size := d.size()
	if d.Bytes > 0 && size != d.Bytes {
		d.drop()
		return nil, fmt.Errorf("%d bytes arrived where %d are expected, and were thrown away: check --revision and --base-url",
			size, d.Bytes)
	}
	want, verified := d.SHA256, "expected"
	if want == "" && d.state.SHA256 != "" {
		want, verified = d.state.SHA256, "server"
	}
	if want == "" {
		verified = "size only"
	}
	sum, err := hashOf(ctx, io.NewSectionReader(d.out, 0, size))
	if err != nil {
		return nil, err
	}
	if want != "" && sum != want {
		d.drop()
		return nil, fmt.Errorf("the %d bytes that arrived have SHA-256 %s where %s is expected, and were thrown away: try again, "+
			"or another --base-url", size, sum, want)
	}
	if err := d.out.Sync(); err != nil {
		return nil, err
	}
	if err := os.Rename(d.part, d.Path); err != nil {
		return nil, err
	}
	os.Remove(stateName(d.part))
	if dir, err := os.Open(filepath.Dir(d.Path)); err == nil {
		_ = dir.Sync() // some systems cannot sync a folder
		dir.Close()
	}
	return &Result{Path: d.Path, URL: d.URL, Bytes: size, SHA256: sum, Verified: verified}, nil
}

// drop throws the part away.
func (d *download) drop() {
	os.Remove(stateName(d.part))
	os.Remove(d.part)
}

// hashOf is the SHA-256 of what r gives, in hexadecimal digits.
func hashOf(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
