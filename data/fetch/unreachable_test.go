package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unreachableClient fails every request in a given way.
type unreachableClient struct {
	err      error
	requests int
}

func (u *unreachableClient) RoundTrip(*http.Request) (*http.Response, error) {
	u.requests++
	return nil, u.err
}

// A server that cannot be reached is told in short sentences, soon, and without a claim that something is kept.
func TestUnreachable(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}, Err: err}
	}
	for _, c := range []struct {
		err      error
		want     string
		requests int
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "hub.example", Server: "192.0.2.53:53"}),
			"the name hub.example cannot be resolved", 2},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "hub.example", IsTemporary: true}),
			"the name hub.example cannot be resolved", 2},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "hub.example refuses the connection", 2},
		{dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), "no network reaches hub.example", 2},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))},
			"the proxy refuses the connection", 2},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "hub.example is not trusted: certificate", 2},
		{dial(os.ErrDeadlineExceeded), "hub.example does not answer in time", 4},
		{io.EOF, "hub.example ended the connection without an answer", 4},
		{dial(os.NewSyscallError("read", syscall.ECONNRESET)), "hub.example: read: connection reset by peer", 4},
	} {
		client := &unreachableClient{err: c.err}
		var notes []string
		r := Request{URL: "https://hub.example/" + strings.Repeat("long/", 30) + "stories.txt",
			Path: filepath.Join(t.TempDir(), "folder", "stories.txt"), Client: &http.Client{Transport: client}, Retries: 4,
			Backoff: time.Millisecond, Note: func(text string) { notes = append(notes, text) }}
		_, err := Get(context.Background(), r)
		failed(t, r, err, "downloading stories.txt: "+c.want)
		if err == nil {
			continue
		}
		if !errors.Is(err, c.err) || strings.Contains(err.Error(), "kept") || strings.Contains(err.Error(), "long/") ||
			len(err.Error()) > 250 || !strings.Contains(err.Error(), "run the same command again") {
			t.Errorf("error of %d characters: %v", len(err.Error()), err)
		}
		if client.requests != c.requests || len(notes) != c.requests-1 {
			t.Errorf("%s: %d requests and %d notes, want %d", c.want, client.requests, len(notes), c.requests)
		}
		for _, note := range notes {
			if len(note) > 85 || !strings.HasPrefix(note, c.want[:10]) {
				t.Errorf("note of %d characters: %s", len(note), note)
			}
		}
		if entries, _ := os.ReadDir(filepath.Dir(r.Path)); len(entries) != 0 {
			t.Errorf("%s is left behind", entries[0].Name())
		}
	}
}

// Once bytes have come, a network that goes away for a while is waited for.
func TestNetworkGoesAway(t *testing.T) {
	content := someBytes(1000, 1)
	s := newServer(t, content)
	s.cut = []int{300}
	r := request(t, s)
	r.Client = &http.Client{Transport: &gap{from: 2, to: 5}} // a whole fetch is two requests: the hub's and the bytes'
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	check(t, r, content)
}

// gap is a network without names for some requests.
type gap struct{ n, from, to int }

func (g *gap) RoundTrip(r *http.Request) (*http.Response, error) {
	g.n++
	if g.n > g.from && g.n <= g.to {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: r.URL.Hostname()}}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A file whose hash only the server knows is checked against what it announces, so that the same command can go on.
func TestPresentByTheServersHash(t *testing.T) {
	content := someBytes(1000, 1)
	s := newServer(t, content)
	r := request(t, s)
	if _, err := Get(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(context.Background(), r); err == nil || !strings.Contains(err.Error(), "no SHA-256 is known") {
		t.Errorf("nothing announced: error %v", err)
	}
	announced := sumOf(content)
	s.announce = func(h http.Header) { h.Set("X-Linked-Etag", `"`+announced+`"`) }
	if got, err := Get(context.Background(), r); err != nil || !got.Present || got.Verified != "server" {
		t.Errorf("%+v, %v", got, err)
	}
	announced = sumOf([]byte("other"))
	if _, err := Get(context.Background(), r); err == nil || !strings.Contains(err.Error(), announced+" is expected") {
		t.Errorf("another file: error %v", err)
	}
	check(t, r, content)
}
