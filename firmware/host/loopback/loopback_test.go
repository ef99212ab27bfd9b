package loopback

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chiplm/chiplm/data/usage"
)

// Only addresses of this machine that no other can reach are listened at.
func TestListen(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := Listen(t.Context(), address)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		if at := Address("ws", l); !strings.HasPrefix(at, "ws://") || !strings.HasSuffix(at, "/") || strings.HasSuffix(at, ":0/") {
			t.Errorf("%s is at %s", address, at)
		}
		taken := l.Addr().String()
		if _, err := Listen(t.Context(), taken); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), taken) {
			t.Errorf("an address that is in use: %v", err)
		}
		l.Close()
		again, err := Listen(t.Context(), taken)
		if err != nil {
			t.Errorf("an address that was in use: %v", err)
			continue
		}
		again.Close()
	}
	for _, address := range []string{"", ":0", ":8000", "8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "localhost:65536", "127.0.0.1:-1", "127.0.0.1:no-such-port", "0.0.0.0:0", "[::]:0", "192.168.1.1:80", "example.com:80", "localhost.example.com:80"} {
		l, err := Listen(t.Context(), address)
		if refused := (*usage.Error)(nil); !errors.As(err, &refused) {
			t.Errorf("%q: %v", address, err)
		}
		if err == nil {
			l.Close()
		}
	}
}

// serve serves a handler until the test ends or end is called, which gives what Serve returned.
func serve(t *testing.T, h http.Handler) (address string, end func() error) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, h) }()
	end = func() error {
		cancel()
		select {
		case err := <-served:
			served <- err
			return err
		case <-time.After(20 * time.Second):
			return errors.New("it does not end")
		}
	}
	t.Cleanup(func() { end() })
	return l.Addr().String(), end
}

// Requests for another name, as one that was made to lead here, get nothing.
func TestForeignHosts(t *testing.T) {
	address, end := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret") }))
	for host, want := range map[string]int{
		address:                   200,
		"localhost":               200,
		"localhost:1":             200, // as behind a tunnel
		"127.0.0.1":               200,
		"[::1]:80":                200,
		"[::1]":                   200,
		"example.com":             403,
		"example.com:80":          403,
		"localhost.example.com":   403,
		"127.0.0.1.example.com":   403,
		"192.168.1.1":             403,
		"0.0.0.0":                 403,
		"":                        403,
		"::1":                     200,
		"127.0.0.1:1@example.com": 400, // refused before it gets here, or here
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", host, err)
		}
		body, _ := io.ReadAll(answer.Body)
		if ok := answer.StatusCode == want || want == 400 && answer.StatusCode == 403; !ok || (string(body) == "secret") != (want == 200) {
			t.Errorf("Host %q: %d %q, want %d", host, answer.StatusCode, body, want)
		}
		conn.Close()
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Headers that are too large, and clients that say nothing, are cut off.
func TestLargeHeaders(t *testing.T) {
	address, _ := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 2*mostHeader))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v, %v", answer, err)
	}
}

// The end waits for answers under way, and tells them of it.
func TestEndsGracefully(t *testing.T) {
	asked := make(chan struct{})
	address, end := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		io.WriteString(w, "whole")
	}))
	got := make(chan string, 1)
	go func() {
		answer, err := http.Get("http://" + address)
		if err != nil {
			got <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		got <- string(body)
	}()
	<-asked
	if err := end(); err != nil {
		t.Error(err)
	}
	if body := <-got; body != "whole" {
		t.Errorf("the answer under way: %q", body)
	}
	if _, err := http.Get("http://" + address); err == nil {
		t.Error("it answers after its end")
	}
}

func TestOurs(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://127.0.0.1:7410":        true,
		"http://localhost":             true,
		"https://localhost:8443":       true,
		"http://[::1]:80":              true,
		"http://example.com":           false,
		"http://localhost.example.com": false,
		"http://127.0.0.1.example.com": false,
		"http://127.0.0.1@example.com": false,
		"null":                         false,
		"":                             false,
		"file://":                      false,
		"chrome-extension://localhost": false,
		"http://%zz":                   false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Origin", origin)
		if Ours(r) != want {
			t.Errorf("%q: %v", origin, !want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if !Ours(r) {
		t.Error("a program that is no browser")
	}
	r.Header["Origin"] = []string{"http://localhost", "http://example.com"}
	if Ours(r) {
		t.Error("two origins")
	}
}
