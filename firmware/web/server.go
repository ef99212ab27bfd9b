package web

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

// policy lets the page load its own files, run its own module, and talk to virtual boards of this machine: no request leaves
// the machine.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; " +
	"worker-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// sendWait is how long sending a file may take once it is made.
const sendWait = time.Minute

// server answers requests for files of a site.
type server struct{ files map[string]file }

func newServer(s *site) *server {
	out := &server{map[string]file{}}
	for _, f := range s.files() {
		out.files[f.name] = f
	}
	return out
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this server has files, which are asked for with GET", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = indexFile
	}
	f, ok := s.files[name]
	if !ok {
		http.Error(w, "there is no such file; the page is at /", http.StatusNotFound)
		return
	}
	b, err := f.content(r.Context())
	switch {
	case errors.Is(err, context.Canceled):
		http.Error(w, "the server ends", http.StatusServiceUnavailable) // or whoever asked is gone
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoChip):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendWait)) // a recorder in a test has none
		h.Set("Content-Type", typeOf(f.name))
		h.Set("ETag", `"`+hashOf(b)+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}
