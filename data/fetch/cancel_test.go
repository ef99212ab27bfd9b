package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCancelKeepsThePart(t *testing.T) {
	content := someBytes(1_000_000, 1)
	s := newServer(t, content)
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		if len(s.requests) > 1 {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			return
		}
		// The rest never comes, so the cancelling always falls into the middle.
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:400_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := request(t, s)
	r.Progress = func(done, _ int64) {
		if done == 400_000 {
			cancel()
		}
	}
	_, err := Get(ctx, r)
	failed(t, r, err, "400000 bytes, which are kept: run the same command to go on")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v is not that of the context", err)
	}
	if stat, err := os.Stat(r.Path + ".part"); err != nil || stat.Size() != 400_000 {
		t.Errorf("the part is not kept: %v", err)
	}
	r.Progress = nil
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
	if len(s.requests) != 2 || s.requests[1] != `bytes=400000-/"one"` {
		t.Errorf("requests %q, want the second to go on from byte 400000", s.requests)
	}
}

// Whatever a download is doing when it is interrupted, its error says how to go on, and nothing that is not so.
func TestCancelledStages(t *testing.T) {
	content := someBytes(1000, 1)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		stage   string
		prepare func(r Request)
		kept    bool
	}{
		{"before the first byte", func(Request) {}, false},
		{"checking what has arrived", func(r Request) {
			if err := os.WriteFile(r.Path+".part", content, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := (state{URL: r.URL, ETag: `"one"`, Size: 1000}).write(r.Path + ".part"); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"checking the file that is there", func(r Request) {
			if err := os.WriteFile(r.Path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"asking for the hash of the file that is there", func(r Request) {
			if err := os.WriteFile(r.Path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		s := newServer(t, content)
		r := request(t, s)
		if !strings.HasPrefix(c.stage, "asking") {
			r.SHA256 = sumOf(content)
		}
		if err := os.MkdirAll(filepath.Dir(r.Path), 0o777); err != nil {
			t.Fatal(err)
		}
		c.prepare(r)
		_, err := Get(cancelled, r)
		if err == nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "run the same command to go on") {
			t.Errorf("%s: error %v does not say how to go on", c.stage, err)
			continue
		}
		if got := strings.Contains(err.Error(), "kept"); got != c.kept {
			t.Errorf("%s: error %v, bytes kept: %v", c.stage, err, c.kept)
		}
		if len(s.requests) != 0 {
			t.Errorf("%s: %d requests after the end", c.stage, len(s.requests))
		}
		// Going on is what it says.
		if r.SHA256 == "" {
			continue
		}
		if _, err := Get(context.Background(), r); err != nil {
			t.Errorf("%s: going on: %v", c.stage, err)
		}
		check(t, r, content)
	}
}
