package virtual

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/port"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// start starts a board that ends with the test.
func start(t *testing.T, opt Options) *Board {
	t.Helper()
	b, err := Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// open opens a port.
func open(t *testing.T, name string) io.ReadWriteCloser {
	t.Helper()
	p, err := port.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// client greets the board at a port.
func client(t *testing.T, name string) *line.Client {
	t.Helper()
	c := line.New(open(t, name), line.Options{})
	t.Cleanup(func() { c.Close() })
	if err := c.Hello(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is what a board wrote.
type answer struct {
	ids  []int32
	text string
	why  string
}

func say(t *testing.T, c *line.Client, text string, s line.Sampling) answer {
	t.Helper()
	var a answer
	done, err := c.Say(context.Background(), text, s, a.add)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return a.end(t, done)
}

func (a *answer) add(x line.Token) error {
	a.ids, a.text = append(a.ids, x.ID), a.text+string(x.Text)
	return nil
}

func (a *answer) end(t *testing.T, done line.Done) answer {
	t.Helper()
	if done.Lost != 0 || done.Tokens != len(a.ids) {
		t.Errorf("%+v for %d tokens", done, len(a.ids))
	}
	a.why = done.Why
	return *a
}

// host writes what a board must write: the engine's own tokens, sampled as the protocol says.
func host(t *testing.T, im *engine.Image, text string, s line.Sampling) answer {
	t.Helper()
	tok, err := bpe.FromImage(im.Tokenizer())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(im, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ids := tok.Encode([]int32{tok.EOT()}, []byte(text))
	rng, logits := engine.RNG(s.Seed), make([]float32, im.Model().VocabSize)
	a := answer{why: "length"}
	for len(a.ids) < s.Tokens {
		if err := e.ForwardLast(ids, logits); err != nil {
			t.Fatal(err)
		}
		id, err := engine.Sample(logits, float32(s.Temperature*1000+0.5-0.5)/1000, s.TopK, &rng)
		if err != nil {
			t.Fatal(err)
		}
		if id == tok.EOT() {
			a.why = "end"
			break
		}
		a.ids, a.text = append(a.ids, id), a.text+string(tok.Bytes(id))
		if len(a.ids) < s.Tokens && e.Position() == im.Model().ContextLength {
			a.why = "context"
			break
		}
		ids = []int32{id}
	}
	return a
}

func image(t *testing.T, path string) *engine.Image {
	t.Helper()
	im, err := engine.OpenImage(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// What a board writes is what the engine writes, token by token, for every kind of model: from a text that the board
// encodes, and from ids.
func TestWritesTheEnginesText(t *testing.T) {
	for name, sets := range map[string][]string{
		"plain":    nil,
		"no PLE":   {"ple_dim=0"},
		"untied":   {"tie_embeddings=false", "activation=swiglu"},
		"experts":  {"experts=3", "n_layers=2"},
		"bigrams":  {"ngram_rows=1000", "attention_scale=2"},
		"f16 rows": {"quant.weights.scale=f16", "quant.weights.group=0"},
	} {
		t.Run(name, func(t *testing.T) {
			path := tinymodel.Image(t, sets...)
			im, c := image(t, path), client(t, start(t, Options{Model: path}).Port())
			tok, err := bpe.FromImage(im.Tokenizer())
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range []string{"", " ", "Once upon a time", "a\\b\nc\td", "naïve ☃ \xff\xfe", "Once " + strings.Repeat("x", 20)} {
				for _, s := range []line.Sampling{{Tokens: 8}, {Tokens: 40, Temperature: 0.7, TopK: 40, Seed: uint64(i)}, {Tokens: 12, Temperature: 1.5, Seed: 1<<64 - 1}, {Tokens: 1, TopK: 1, Temperature: 1}} {
					want := host(t, im, text, s)
					if got := say(t, c, text, s); !slices.Equal(got.ids, want.ids) || got.text != want.text || got.why != want.why {
						t.Errorf("%q, %+v: %+v, want %+v", text, s, got, want)
					}
					var got answer
					done, err := c.Generate(context.Background(), tok.Encode([]int32{tok.EOT()}, []byte(text)), s, true, got.add)
					if err != nil {
						t.Fatal(err)
					}
					if got = got.end(t, done); !slices.Equal(got.ids, want.ids) || got.text != want.text {
						t.Errorf("ids of %q, %+v: %+v, want %+v", text, s, got, want)
					}
				}
			}
		})
	}
}

// The board's digest is the engine's in every mode, over the whole context.
func TestDigests(t *testing.T) {
	path := tinymodel.Image(t, "n_layers=3")
	im, c := image(t, path), client(t, start(t, Options{Model: path}).Port())
	e, err := engine.New(im, engine.Options{Path: engine.PathPlain})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, id, logits := engine.NewDigest(), im.EndOfText(), make([]float32, im.Model().VocabSize)
	for n := 1; n <= im.Model().ContextLength; n++ {
		if err := e.ForwardLast([]int32{id}, logits); err != nil {
			t.Fatal(err)
		}
		want = want.Add(n-1, id, logits)
		if id, err = engine.ArgMax(logits); err != nil {
			t.Fatal(err)
		}
		for mode := range line.ModesCount {
			got, err := c.Digest(context.Background(), n, mode)
			if err != nil {
				t.Fatal(err)
			}
			if engine.Digest(got) != want {
				t.Errorf("%d tokens, mode %d: %#x, want %#x", n, mode, got, uint64(want))
			}
		}
	}
}

// Every wrong request is refused with the code of the protocol, and the next one is answered with the same text as ever.
func TestMalformedRequests(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t)})
	c := client(t, b.Port())
	sampling := line.Sampling{Tokens: 5, Temperature: 0.8, TopK: 5, Seed: 3}
	want := say(t, c, "Once", sampling)
	c.Close()
	long := strings.Repeat("7 ", 2100)
	for request, code := range map[string]string{
		"Z":                                  "unknown",
		"hello there":                        "unknown",
		"g 1 0 0 0 0 1 0":                    "unknown",
		"G":                                  "missing",
		"G 1 0 0 0 0":                        "missing",
		"G 1 0 0 0 0 2 0":                    "missing",
		"S 1 0 0":                            "missing",
		"D 1":                                "missing",
		"G 1 0 0 0 0 1 0 0":                  "extra",
		"D 1 0 0":                            "extra",
		"I now":                              "extra",
		"G -1 0 0 0 0 1 0":                   "number",
		"G 1 0.5 0 0 0 1 0":                  "number",
		"G 1 0 0 0 0 1 x":                    "number",
		"G 1 0 0 18446744073709551616 0 1 0": "range",
		"G 1 0 0 0 2 1 0":                    "range",
		"G 1 0 0 0 0 0":                      "range",
		"D 0 0":                              "range",
		"D 1 3":                              "range",
		"Q 2":                                "range",
		"G 1 0 0 0 0 1 270":                  "id",
		"G 1 0 0 0 0 1 4294967296":           "id",
		"D 33 0":                             "context",
		"G 1 0 0 0 0 33" + strings.Repeat(" 1", 33): "context",
		"S 1 0 0 0 " + strings.Repeat("q", 100):     "context",
		"S 1 0 0 0 \\q":                             "escape",
		"S 1 0 0 0 \\x4":                            "escape",
		"S 1 0 0 0 a\\":                             "escape",
		"G 1 0 0 0 0 1 0\x07":                       "not-ascii",
		"S 1 0 0 0 a\x00b":                          "not-ascii",
		"Q":                                         "profile",
		"G 1 0 0 0 0 2100 " + long:                  "line-too-long",
	} {
		p := open(t, b.Port())
		if _, err := io.WriteString(p, "\nV\n"+request+"\nV\n"); err != nil {
			t.Fatal(err)
		}
		if got := between(t, p); !strings.HasPrefix(got, "! "+code+" ") || strings.Count(got, "\n") != 1 || len(got) < len("! "+code+" ")+5 {
			t.Errorf("%q: %q, want ! %s and a message", request[:min(len(request), 40)], got, code)
		}
		p.Close()
	}
	if got := say(t, client(t, b.Port()), "Once", sampling); !slices.Equal(got.ids, want.ids) {
		t.Errorf("afterwards %v, want %v", got.ids, want.ids)
	}
}

// between reads up to the second V 1 and gives what stands between the two, without remarks.
func between(t *testing.T, p io.Reader) string {
	t.Helper()
	text, buf := "", make([]byte, 4096)
	for {
		n, err := p.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, text)
		}
		text += string(buf[:n])
		if parts := strings.Split(strings.ReplaceAll(text, "\r", ""), "V 1\n"); len(parts) > 2 {
			var out strings.Builder
			for l := range strings.Lines(parts[len(parts)-2]) {
				if l[0] != '#' {
					out.WriteString(l)
				}
			}
			return out.String()
		}
	}
}

// Whatever bytes rain down, with lines among them or not, the next request is answered as ever.
func TestFlood(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t)})
	c := client(t, b.Port())
	sampling := line.Sampling{Tokens: 5, Temperature: 0.8, Seed: 3}
	want := say(t, c, "Once", sampling)
	c.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for name, letters := range map[string]string{
		"any bytes":      "",
		"no line end":    "abc 0123",
		"short lines":    "GSIQDVPTE! 01\n",
		"X and line end": "X\n",
	} {
		p := open(t, b.Port())
		go io.Copy(io.Discard, p) // the answers, which nobody looks at
		flood := make([]byte, 1<<18)
		for i := range flood {
			if letters == "" {
				flood[i] = byte(rng.Uint32())
			} else {
				flood[i] = letters[rng.IntN(len(letters))]
			}
			if flood[i] == 'R' || flood[i] == 'M' {
				flood[i] = 'r' // a restart, and a benchmark, are not what is tested here
			}
		}
		if _, err := p.Write(flood); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.Close()
		c := client(t, b.Port())
		if got := say(t, c, "Once", sampling); !slices.Equal(got.ids, want.ids) {
			t.Errorf("after %s: %v, want %v", name, got.ids, want.ids)
		}
		c.Close() // two would take the answers from each other
	}
}

// A client that leaves in the middle of an answer, and one that does not read its answers, leave nothing behind for the next.
func TestClientsComeAndGo(t *testing.T) {
	b := start(t, Options{Model: tinymodel.Image(t, "context_length=1024", "train.batch_tokens=2048")})
	sampling := line.Sampling{Tokens: 5, Temperature: 0.8, Seed: 3}
	first := client(t, b.Port())
	want := say(t, first, "Once", sampling)
	first.Close()
	for round := range 6 {
		c := line.New(open(t, b.Port()), line.Options{})
		n := 0
		_, err := c.Say(context.Background(), "Once", line.Sampling{Tokens: 1000}, func(line.Token) error {
			if n++; n == 3+round {
				return c.Close() // the cable
			}
			return nil
		})
		if n != 3+round || !errors.Is(err, line.ErrClosed) {
			t.Fatalf("round %d: the answer ended after %d tokens: %v", round, n, err)
		}
		deaf, err := os.OpenFile(b.Port(), os.O_RDWR|syscall.O_NOCTTY, 0) // as programs do that know of no lock
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(deaf, "\nS 1000 0 0 1 Once\nI\nI\nS 1000 0 0 1 Once\n"); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			deaf.Close()
		}
		last := client(t, b.Port())
		if got := say(t, last, "Once", sampling); !slices.Equal(got.ids, want.ids) {
			t.Errorf("round %d: %v, want %v", round, got.ids, want.ids)
		}
		last.Close()
		deaf.Close()
	}
}

// A board that goes away in the middle of an answer is an error of its own, and another board takes its place under the
// same name.
func TestBoardGoesAway(t *testing.T) {
	path := tinymodel.Image(t, "context_length=1024", "train.batch_tokens=2048")
	link := filepath.Join(t.TempDir(), "board")
	var want answer
	gone := 0
	for round := range 5 {
		b := start(t, Options{Model: path, Link: link})
		c := client(t, link)
		got := say(t, c, "Once", line.Sampling{Tokens: 5})
		if round == 0 {
			want = got
		}
		if !slices.Equal(got.ids, want.ids) {
			t.Errorf("round %d: %v, want %v", round, got.ids, want.ids)
		}
		n := 0
		_, err := c.Say(context.Background(), "Once", line.Sampling{Tokens: 1000}, func(line.Token) error {
			if n++; n == 3 {
				return b.Close()
			}
			return nil
		})
		switch {
		case errors.Is(err, line.ErrGone):
			gone++
		case err != nil || n != 1000: // all of it may have been on its way
			t.Errorf("round %d: after %d tokens: %v", round, n, err)
		}
		if _, err := os.Lstat(link); err == nil {
			t.Error("the link is left")
		}
	}
	if gone == 0 {
		t.Error("no answer was cut off")
	}
}

// Stopping works between two tokens, and costs the next request nothing.
func TestStop(t *testing.T) {
	c := client(t, start(t, Options{Model: tinymodel.Image(t, "context_length=1024", "train.batch_tokens=2048")}).Port())
	want := say(t, c, "Once", line.Sampling{Tokens: 5})
	stopped := 0
	for round := range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		done, err := c.Say(ctx, "Once", line.Sampling{Tokens: 1000}, func(line.Token) error {
			if n++; n == 1+round {
				cancel()
			}
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) && done.Why != "length" || done.Lost != 0 {
			t.Fatalf("round %d: %+v, %v", round, done, err)
		}
		if done.Why == "stopped" {
			stopped++
		}
		if got := say(t, c, "Once", line.Sampling{Tokens: 5}); !slices.Equal(got.ids, want.ids) {
			t.Errorf("round %d: %v, want %v", round, got.ids, want.ids)
		}
	}
	if stopped == 0 {
		t.Error("no answer was stopped") // some may end first
	}
}

// A thousand requests, of all kinds, take no memory that they do not give back.
func TestMemoryStaysFlat(t *testing.T) {
	c := client(t, start(t, Options{Model: tinymodel.Image(t)}).Port())
	ctx := context.Background()
	each := func(line.Token) error { return nil }
	requests := func(n int) {
		for i := range n {
			var err error
			switch i % 5 {
			case 0:
				_, err = c.Info(ctx)
			case 1:
				_, err = c.Digest(ctx, 1+i%8, i%3)
			case 2:
				_, err = c.Generate(ctx, []int32{0, 1, 2}, line.Sampling{Tokens: 10, Temperature: 1, Seed: uint64(i)}, false, each)
			case 3:
				if _, err = c.Say(ctx, strings.Repeat("y", 500), line.Sampling{Tokens: 1}, each); err != nil {
					if refused := (*line.BoardError)(nil); errors.As(err, &refused) && refused.Code == "context" {
						err = nil
					}
				}
			default:
				_, err = c.Say(ctx, fmt.Sprint("Once ", i), line.Sampling{Tokens: 10, Temperature: 1, Seed: uint64(i)}, each)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	requests(200) // until everything has its size
	before := resident(t)
	begin := time.Now()
	requests(1000)
	after := resident(t)
	t.Logf("1,000 requests in %v; resident %d KB before, %d KB after", time.Since(begin).Round(time.Millisecond), before>>10, after>>10)
	if grown := after - before; grown > 2<<20 {
		t.Errorf("1,000 requests took %d bytes", grown)
	}
}

// A board that cannot run a model says what it wanted, and stays to say it again.
func TestBoardsThatCannotStart(t *testing.T) {
	path := tinymodel.Image(t)
	damaged := filepath.Join(t.TempDir(), "damaged.clm")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opt  Options
		code string
	}{
		"no model":     {Options{}, "model-empty"},
		"damaged":      {Options{Model: damaged}, "model"},
		"no PSRAM":     {Options{Model: path, PSRAM: -1}, "psram"},
		"little SRAM":  {Options{Model: path, SRAM: 2000}, "memory"},
		"little PSRAM": {Options{Model: path, PSRAM: 64}, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			board := client(t, start(t, c.opt).Port())
			for range 2 {
				_, err := board.Say(context.Background(), "Once", line.Sampling{Tokens: 3}, func(line.Token) error { return nil })
				var refused *line.BoardError
				if !errors.As(err, &refused) || refused.Code != c.code {
					t.Errorf("%v, want %s", err, c.code)
				}
			}
			if info, err := board.Info(context.Background()); err != nil || !strings.Contains(string(info), c.code) {
				t.Errorf("%s, %v", info, err)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	c := client(t, start(t, Options{Model: tinymodel.Image(t)}).Port())
	want := say(t, c, "Once", line.Sampling{Tokens: 5})
	for range 3 {
		if err := c.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := say(t, c, "Once", line.Sampling{Tokens: 5}); !slices.Equal(got.ids, want.ids) {
			t.Errorf("%v, want %v", got.ids, want.ids)
		}
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(dir, "none", "board")} {
		if b, err := Start(Options{Link: path}); err == nil {
			b.Close()
			t.Errorf("a link at %s", path)
		}
	}
	if got, err := os.ReadFile(link); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	stale := filepath.Join(dir, "stale")
	if err := os.Symlink("/dev/pts/none", stale); err != nil {
		t.Fatal(err)
	}
	b := start(t, Options{Link: stale})
	if at, err := os.Readlink(stale); err != nil || at != b.Port() {
		t.Errorf("%s, %v, want %s", at, err, b.Port())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("left: %v", entries)
	}
	if second, err := Start(Options{Link: stale}); !errors.Is(err, ErrLink) || !strings.Contains(err.Error(), b.Port()) {
		t.Errorf("a second board took the link: %v", err)
		if err == nil {
			second.Close()
		}
	}
	if at, err := os.Readlink(stale); err != nil || at != b.Port() {
		t.Errorf("%s, %v after a second board, want %s", at, err, b.Port())
	}
	client(t, stale).Close() // it was not disturbed
	if err := os.Remove(stale); err != nil {
		t.Fatal(err)
	}
	other := start(t, Options{Link: stale})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if at, err := os.Readlink(stale); err != nil || at != other.Port() {
		t.Errorf("%s, %v after the first board has ended, want %s", at, err, other.Port())
	}
}

// Of boards that want one link at the same time one gets it.
func TestOneBoardGetsALink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "board")
	type result struct {
		b   *Board
		err error
	}
	results := make(chan result)
	for range 8 {
		go func() {
			b, err := Start(Options{Link: link})
			results <- result{b, err}
		}()
	}
	var got []*Board
	for range 8 {
		switch r := <-results; {
		case r.err == nil:
			got = append(got, r.b)
		case !errors.Is(r.err, ErrLink):
			t.Error(r.err)
		}
	}
	if at, err := os.Readlink(link); err != nil || len(got) != 1 || at != got[0].Port() {
		t.Errorf("%d boards, link %s, %v", len(got), at, err)
	}
	for _, b := range got {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
