package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// Every file of the page is served as it is, with its type and the headers that keep the page to itself.
func TestFilesAndHeaders(t *testing.T) {
	s := serve(t, t.Context(), tinymodel.Export(t, targetName, nil))
	for name, kind := range map[string]string{
		"":                     "text/html; charset=utf-8",
		"index.html":           "text/html; charset=utf-8",
		"main.js":              "text/javascript; charset=utf-8",
		"style.css":            "text/css; charset=utf-8",
		"engine.wasm":          "application/wasm",
		"vendor/esptool.js":    "text/javascript; charset=utf-8",
		"vendor/LICENSE":       "text/plain; charset=utf-8",
		"vendor/data/stub.bin": "application/octet-stream",
		"models.json":          "application/json",
		"page.json":            "application/json",
		"firmware.json":        "application/json",
	} {
		answer, b := s.get(name)
		h := answer.Header
		if answer.StatusCode != http.StatusOK || h.Get("Content-Type") != kind {
			t.Errorf("/%s: %s, %s, want %s", name, answer.Status, h.Get("Content-Type"), kind)
		}
		if want, ok := dist[name]; ok && string(b) != string(want.Data) {
			t.Errorf("/%s: %q", name, b)
		}
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*;") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("/%s: headers %v", name, h)
		}
		// A browser that has the file is told so.
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-None-Match", h.Get("ETag"))
		again, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		again.Body.Close()
		if name != "models.json" && again.StatusCode != http.StatusNotModified { // models.json may be more complete by now
			t.Errorf("/%s again: %s", name, again.Status)
		}
	}
}

// No path leads out of the list of files, and folders are no files.
func TestPathsThatLeadNowhere(t *testing.T) {
	s := serve(t, t.Context(), tinymodel.Image(t))
	host := strings.TrimSuffix(strings.TrimPrefix(s.address, "http://"), "/")
	for _, path := range []string{"/README.md", "/vendor", "/vendor/", "/models", "/models/", "/models/tiny", "/models/tiny/", "/models/tiny/esp32s3/", "/nothing",
		"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/vendor/../README.md", "/vendor/..%2fREADME.md", "//etc/passwd", "/main.js/", "/main.js%00",
		"/..\\..\\etc", "/models/../go.mod", "/models/tiny/..%2f..%2findex.html", "/MAIN.JS", "/main.js;x", "/.git/config"} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusBadRequest || len(body) > 200 {
			t.Errorf("%s: %s: %s", path, answer.Status, body)
		}
		conn.Close()
	}
}

// Files are asked for, and that is all; requests for another name get none.
func TestOtherRequests(t *testing.T) {
	s := serve(t, t.Context(), tinymodel.Image(t))
	for _, c := range []struct {
		method, host string
		want         int
	}{
		{http.MethodHead, "", 200}, {http.MethodGet, "localhost", 200}, {http.MethodPost, "", 405}, {http.MethodPut, "", 405}, {http.MethodDelete, "", 405},
		{http.MethodOptions, "", 405}, {http.MethodGet, "example.com", 403}, {http.MethodPost, "example.com", 403}, {http.MethodGet, "127.0.0.1.example.com:7410", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.address+"models.json", strings.NewReader(strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.want || strings.Contains(string(b), "sha256") != (c.want == 200 && c.method == http.MethodGet) {
			t.Errorf("%s, Host %q: %s: %s", c.method, c.host, answer.Status, b)
		}
		if answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other sites may read it", c.method)
		}
	}
}
