package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/port"
	"github.com/chiplm/chiplm/firmware/host/virtual"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

func digestText(d uint64) string { return fmt.Sprintf("0x%016x", d) }

// client greets a board at its port.
func client(t *testing.T, b *virtual.Board) *line.Client {
	t.Helper()
	p, err := port.Open(b.Port())
	if err != nil {
		t.Fatal(err)
	}
	return greet(t, p)
}

func greet(t *testing.T, rw io.ReadWriteCloser) *line.Client {
	t.Helper()
	c := line.New(rw, line.Options{})
	t.Cleanup(func() { c.Close() })
	if err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// workFolders are the folders of pages that are served in this process.
func (s *served) workFolders() []string {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "chiplm-page-*"))
	if err != nil || len(found) == 0 {
		s.t.Errorf("no folder to work in: %v", err)
	}
	return found
}

// With --virtual, the page is told of a board that writes what the model's image gives at a port of its own.
func TestVirtual(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx := store(t, t.Context())
	s := serve(t, ctx, "--virtual")
	var a about
	s.decode("page.json", &a)
	if a.Virtual == nil || *a.Virtual != s.virtual || !strings.HasPrefix(s.virtual, "ws://127.0.0.1:") || a.Program == "" {
		t.Fatalf("%+v, %q", a, s.virtual)
	}
	ws, _, err := websocket.Dial(t.Context(), s.virtual, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {strings.TrimSuffix(s.address, "/")}}})
	if err != nil {
		t.Fatal(err)
	}
	c := greet(t, websocket.NetConn(context.Background(), ws, websocket.MessageBinary))
	var e told
	s.decode("models/tiny/model.json", &e) // it is there: the board has it
	if d, err := c.Digest(t.Context(), e.Digest.N, line.ModeFast); err != nil || digestText(d) != e.Digest.Value {
		t.Errorf("digest %#x, %v, want %s", d, err, e.Digest.Value)
	}
	how := line.Sampling{Tokens: 12, Temperature: 0.9, TopK: 40, Seed: 9}
	text := func(c *line.Client) (text string) {
		t.Helper()
		if _, err := c.Say(t.Context(), "Once", how, func(x line.Token) error {
			text += fmt.Sprintf("%d %q,", x.ID, x.Text)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	_, image := s.get(e.Board[targetName].Image)
	path := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := virtual.Start(virtual.Options{Model: path})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if got, want := text(c), text(client(t, own)); got != want || got == "" {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.end()
	if _, err := c.Info(t.Context()); !errors.Is(err, line.ErrGone) {
		t.Errorf("the board after the end: %v", err)
	}

	without := serve(t, ctx)
	without.decode("page.json", &a)
	if a.Virtual = nil; without.virtual != "" {
		t.Errorf("a virtual board that nobody asked for: %s", without.virtual)
	}
	if _, b := without.get("page.json"); !strings.Contains(string(b), `"virtual": null`) {
		t.Errorf("%s", b)
	}
}

// The page opens in a browser, and where that cannot be, or the usual port is in use, the user is told and helped.
func TestOpening(t *testing.T) {
	image := tinymodel.Image(t)
	for _, broken := range []error{nil, errNoBrowser} {
		taken, err := loopback.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		opened := make(chan string, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var out, notes strings.Builder
		o := options{listen: taken.Addr().String(), elsewhere: true, dist: dist, open: func(address string) error {
			opened <- address
			cancel()
			return broken
		}}
		if err := o.run(ctx, []string{image}, &out, &notes); err != nil {
			t.Fatal(err)
		}
		if address := <-opened; out.String() != address+"\n" || strings.Contains(address, taken.Addr().String()) {
			t.Errorf("opened %s, printed %q", address, out.String())
		}
		if !strings.Contains(notes.String(), "another port is taken") || strings.Contains(notes.String(), "open the address in one") != (broken != nil) {
			t.Errorf("%v: %s", broken, notes.String())
		}
		// A port that the user named is not changed in silence.
		_, _, err = execute(t, t.Context(), dist, image, "--no-open", "--listen", taken.Addr().String())
		if !errors.Is(err, loopback.ErrInUse) || !strings.Contains(err.Error(), "--listen 127.0.0.1:0") {
			t.Errorf("a port in use: %v", err)
		}
	}
}

// An end while an image is being made is an end: nothing is left, and nothing is said to be wrong.
func TestEndInTheMiddle(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := serve(t, store(t, t.Context()))
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if answer, err := http.Get(s.address + "models/tiny/model.json"); err == nil {
			answer.Body.Close()
		}
	}()
	s.get("models.json")
	work := s.workFolders()
	s.end()
	<-asked
	for _, dir := range work {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

func TestRefusedCommandLines(t *testing.T) {
	image := tinymodel.Image(t)
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"--listen", ""}, {"--listen", "0.0.0.0:0"}, {"--listen", "8000"}, {"--firmware", ""}, {"--out", ""},
		{"--out", out, "--virtual"}, {"--out", out, "--no-open"}, {"--out", out, "--listen", "127.0.0.1:0"}} {
		if _, _, err := execute(t, t.Context(), dist, append(args, image)...); !refusal(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
	damaged := filepath.Join(t.TempDir(), "damaged.clm")
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	floats := tinymodel.Run(t, "quant.weights.bits=32", "quant.activations.bits=32")
	for name, want := range map[string]string{"nothing-here": "nothing-here", "nothing-here.clm": "no such file", damaged: "damaged.clm", floats: "--bits 4", t.TempDir(): ""} {
		if _, _, err := execute(t, t.Context(), dist, name, "--no-open", "--listen", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// heard is a writer that tells a function of what is written.
type heard func(string)

func (h heard) Write(b []byte) (int, error) {
	h(string(b))
	return len(b), nil
}

// Nobody can ask while there is nothing to answer with: a browser would wait without a word. That is when the virtual board's
// image is made, of which the notes tell, again and again when it takes long.
func TestNothingIsServedTooEarly(t *testing.T) {
	free, err := loopback.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(store(t, t.Context()))
	defer cancel()
	making := false
	notes := heard(func(text string) {
		if !strings.Contains(text, "making the image of tiny for the virtual board") {
			return
		}
		making = true
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Error("a browser that asks now waits")
		}
	})
	out := heard(func(text string) {
		if _, err := http.Get(strings.TrimSpace(text)); err != nil {
			t.Errorf("the address that is told: %v", err)
		}
		cancel()
	})
	o := options{listen: address, virtual: true, noOpen: true, dist: dist}
	if err := o.run(ctx, []string{"tiny"}, out, notes); err != nil || !making {
		t.Errorf("%v, %v", err, making)
	}
}
