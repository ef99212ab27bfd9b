package virtual

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/port"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// listening is a board that takes clients at an address, until the test ends or end is called.
func listening(t *testing.T, b *Board, address string) (at string, end func()) {
	t.Helper()
	l, err := loopback.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx, l) }()
	end = func() {
		cancel()
		select {
		case err := <-served:
			if err != nil && !errors.Is(err, ErrEnded) {
				t.Error(err)
			}
			served <- nil
		case <-time.After(20 * time.Second):
			t.Error("it does not end")
		}
	}
	t.Cleanup(end)
	return l.Addr().String(), end
}

// dial connects as a page of this machine does.
func dial(t *testing.T, address string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	if header == nil {
		header = http.Header{"Origin": {"http://localhost:7410"}}
	}
	c, answer, err := websocket.Dial(t.Context(), "ws://"+address+"/", &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		t.Cleanup(func() { c.CloseNow() })
	}
	return c, answer, err
}

// overSocket greets a board through its socket.
func overSocket(t *testing.T, address string) *line.Client {
	t.Helper()
	ws, _, err := dial(t, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := line.New(websocket.NetConn(context.Background(), ws, websocket.MessageBinary), line.Options{})
	t.Cleanup(func() { c.Close() })
	if err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// A story over WebSocket is the one over the pseudo-terminal, which is the engine's.
func TestSocketWritesTheEnginesText(t *testing.T) {
	path := tinymodel.Image(t)
	im, b := image(t, path), start(t, Options{Model: path})
	at, _ := listening(t, b, "127.0.0.1:0")
	s := line.Sampling{Tokens: 20, Temperature: 0.9, TopK: 30, Seed: 1<<64 - 3}
	for range 3 { // one after the other
		c := overSocket(t, at)
		for _, text := range []string{"Once upon a time", "a\\b\nc ☃ \xff"} {
			want := host(t, im, text, s)
			if got := say(t, c, text, s); !slices.Equal(got.ids, want.ids) || got.text != want.text || got.why != want.why {
				t.Errorf("%q: %+v, want %+v", text, got, want)
			}
		}
		c.Close()
		p := client(t, b.Port())
		want := host(t, im, "Once", s)
		if got := say(t, p, "Once", s); !slices.Equal(got.ids, want.ids) {
			t.Errorf("over the pseudo-terminal: %+v, want %+v", got, want)
		}
		p.Close()
	}
}

// One client talks at a time, and another is told why it cannot.
func TestSecondClient(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t)})
	at, _ := listening(t, b, "127.0.0.1:0")
	first := overSocket(t, at)
	refused := func() {
		t.Helper()
		ws, _, err := dial(t, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = ws.Read(t.Context())
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusTryAgainLater || closed.Reason != taken {
			t.Errorf("a second client: %v", err)
		}
	}
	refused()
	if _, err := port.Open(b.Port()); !errors.Is(err, port.ErrBusy) {
		t.Errorf("the port beside it: %v", err)
	}
	if got := say(t, first, "Once", line.Sampling{Tokens: 5}); len(got.ids) != 5 {
		t.Errorf("the first client got %+v", got)
	}
	first.Close()
	p := client(t, b.Port())
	refused()
	p.Close()
	// A page that is loaded anew connects before its old connection is gone.
	for range 5 {
		old := overSocket(t, at)
		next := make(chan *line.Client, 1)
		go func() { next <- overSocket(t, at) }()
		time.Sleep(20 * time.Millisecond)
		old.Close()
		(<-next).Close()
	}
}

// Pages of other sites, and requests for other names, get nothing of the board.
func TestForeignClients(t *testing.T) {
	at, _ := listening(t, start(t, Options{Model: tinymodel.Image(t)}), "127.0.0.1:0")
	for name, c := range map[string]struct {
		header http.Header
		host   string
		want   int
	}{
		"another site":        {http.Header{"Origin": {"https://example.com"}}, at, 403},
		"a file":              {http.Header{"Origin": {"null"}}, at, 403},
		"another name":        {http.Header{}, "example.com", 403},
		"both":                {http.Header{"Origin": {"http://example.com"}}, "example.com", 403},
		"a page of ours":      {http.Header{"Origin": {"http://127.0.0.1:7410"}}, at, 101},
		"no browser":          {http.Header{}, at, 101},
		"no WebSocket at all": {nil, at, 426},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.header != nil {
			r.Header = c.header
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Sec-WebSocket-Version", "13")
			r.Header.Set("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.want)
		}
		answer.Body.Close()
	}
}

// What is no line, and clients that leave in the middle or do not read, leave nothing behind for the next.
func TestSocketAndWildClients(t *testing.T) {
	path := tinymodel.Image(t, "context_length=256", "train.batch_tokens=512")
	im, b := image(t, path), start(t, Options{Model: path})
	at, _ := listening(t, b, "127.0.0.1:0")
	s := line.Sampling{Tokens: 12, Temperature: 0.8, Seed: 3}
	want := host(t, im, "Once", s)
	for name, wild := range map[string]func(*websocket.Conn){
		"text": func(ws *websocket.Conn) {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte("V\n")); err != nil {
				t.Error(err)
			}
			_, _, err := ws.Read(t.Context())
			for err == nil { // what the board says first
				_, _, err = ws.Read(t.Context())
			}
			if websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
				t.Errorf("text: %v", err)
			}
		},
		"a message larger than any line": func(ws *websocket.Conn) {
			go func() {
				for {
					if _, _, err := ws.Read(context.Background()); err != nil {
						return
					}
				}
			}()
			if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(strings.Repeat("x", 1<<18)+"\n")); err != nil {
				t.Error(err)
			}
		},
		"leaves in a story": func(ws *websocket.Conn) {
			if err := ws.Write(t.Context(), websocket.MessageBinary, []byte("S 200 0 0 0 Once\n")); err != nil {
				t.Error(err)
			}
			for range 5 {
				if _, _, err := ws.Read(t.Context()); err != nil {
					t.Error(err)
				}
			}
		},
		"does not read": func(ws *websocket.Conn) {
			if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(strings.Repeat("S 200 0 0 0 Once\n", 3))); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		},
	} {
		ws, _, err := dial(t, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		ws.SetReadLimit(1 << 20)
		wild(ws)
		ws.CloseNow()
		c := overSocket(t, at)
		if got := say(t, c, "Once", s); !slices.Equal(got.ids, want.ids) {
			t.Errorf("after one that %s: %v, want %v", name, got.ids, want.ids)
		}
		c.Close()
	}
}

// A board that goes away in the middle of a story says goodbye, and another at the same address takes its place. So does one
// whose socket is closed, though a client reads nothing.
func TestSocketEndsAndStartsAgain(t *testing.T) {
	path := tinymodel.Image(t, "context_length=1024", "train.batch_tokens=2048")
	im := image(t, path)
	want := host(t, im, "Once", line.Sampling{Tokens: 5})
	address := "127.0.0.1:0"
	for round, how := range []string{"killed", "closed"} {
		b := start(t, Options{Model: path})
		var end func()
		address, end = listening(t, b, address)
		c := overSocket(t, address)
		if got := say(t, c, "Once", line.Sampling{Tokens: 5}); !slices.Equal(got.ids, want.ids) {
			t.Errorf("round %d: %v, want %v", round, got.ids, want.ids)
		}
		c.Close()
		ws, _, err := dial(t, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := ws.Write(t.Context(), websocket.MessageBinary, []byte("\nS 1000 0 0 0 Once\n")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ws.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if how == "killed" {
				b.Close()
			}
			end()
		}()
		for err == nil {
			_, _, err = ws.Read(t.Context())
		}
		if websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("%s: %v", how, err)
		}
		<-ended
		b.Close()
	}
}

// The end is not held up by a client that reads nothing of what a board says.
func TestDeafClientAtTheEnd(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t)})
	at, end := listening(t, b, "127.0.0.1:0")
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	// A client of its own making: the library reads ahead.
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	request := []byte("I\n")
	frame := append([]byte{0x82, 0x80 | byte(len(request)), 0, 0, 0, 0}, request...) // binary, masked with zeros
	go func() {
		for range 20000 {
			if _, err := conn.Write(frame); err != nil {
				return
			}
		}
	}()
	time.Sleep(time.Second)
	begin := time.Now()
	end()
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// Nor by one that does not answer the goodbye.
func TestRudeClientAtTheEnd(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t)})
	at, end := listening(t, b, "127.0.0.1:0")
	ws, _, err := dial(t, at, nil) // nobody reads it, and it is the reader that answers
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	time.Sleep(100 * time.Millisecond)
	begin := time.Now()
	end()
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// A board ends at once, whatever a client has asked for and not read.
func TestEndsBeneathAFlood(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t, "context_length=4096", "train.batch_tokens=8192")})
	at, _ := listening(t, b, "127.0.0.1:0")
	ws, _, err := dial(t, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	flood := []byte(strings.Repeat("S 4000 0 0 1 hi\n", 4000))
	go func() { _ = ws.Write(context.Background(), websocket.MessageBinary, flood) }()
	if _, _, err := ws.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	begin := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("its end took %v", took)
	}
}

// The story of a client that is gone is given up.
func TestGivenUp(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t, "context_length=4096", "train.batch_tokens=8192")})
	p := open(t, b.Port())
	if _, err := io.WriteString(p, "\nS 4000 0 0 1 hi\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(p)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "T ") {
	}
	b.giveUp(p)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "E ") {
	}
	if end := lines.Text(); !strings.HasSuffix(end, " stopped") {
		t.Errorf("the story ended with %q", end)
	}
}

// What nobody has read can be taken back; the line goes on.
func TestDiscard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("on Linux alone")
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	defer slave.Close()
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := io.WriteString(slave, strings.Repeat("dropped\n", 100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		discard(master)
		if _, err := io.WriteString(slave, "kept\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 64)
		if n, err := master.Read(got); err != nil || string(got[:n]) != "kept\n" {
			t.Errorf("%q arrived, %v", got[:n], err)
		}
	}
}
