package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// fake is a board that answers each line as told: answer gives the lines, or "" for silence. It knows V and X.
func fake(t *testing.T, opt Options, answer func(request string, say func(string))) *Client {
	t.Helper()
	ours, theirs := net.Pipe()
	out := make(chan string, 1000)
	say := func(s string) { out <- s }
	go func() {
		for s := range out {
			if _, err := io.WriteString(theirs, s); err != nil {
				return
			}
		}
	}()
	go func() {
		lines := bufio.NewScanner(theirs)
		for lines.Scan() {
			switch text := lines.Text(); text {
			case "":
			case "V":
				say("V 1\n")
			default:
				answer(text, say)
			}
		}
	}()
	if opt.Patience == 0 {
		opt.Patience = 5 * time.Second
	}
	c := New(ours, opt)
	t.Cleanup(func() { c.Close(); theirs.Close() })
	return c
}

// collect gathers the tokens of an answer.
func collect(into *[]Token) func(Token) error {
	return func(t Token) error { *into = append(*into, t); return nil }
}

func TestGenerate(t *testing.T) {
	var asked string
	c := fake(t, Options{}, func(request string, say func(string)) {
		if request != "X" {
			asked = request
			say("P 29.6\nT 11 10320\nT 612 10288\nE 2 10.29 length\n")
		}
	})
	var got []Token
	done, err := c.Generate(context.Background(), []int32{0, 7, 433}, Sampling{Tokens: 2, Temperature: 0.7, TopK: 40, Seed: 1<<64 - 1}, false, collect(&got))
	if err != nil {
		t.Fatal(err)
	}
	if want := "G 2 700 40 18446744073709551615 0 3 0 7 433"; asked != want {
		t.Errorf("sent %q, want %q", asked, want)
	}
	if want := (Done{29.6, 2, 10.29, "length", 0}); done != want || len(got) != 2 || got[1].ID != 612 || got[1].Micros != 10288 || got[0].Text != nil {
		t.Errorf("%+v, %+v", done, got)
	}
}

// Text keeps every byte, in both directions: spaces at its ends, line ends, and characters cut in two.
func TestSay(t *testing.T) {
	var asked string
	c := fake(t, Options{}, func(request string, say func(string)) {
		if request != "X" {
			asked = request
			say("P 1\r\nT 1 0  a \r\nT 2 5 \\n\\\\\\xC3\r\nT 3 5 \\xa9\r\nT 4 5 \r\nE 4 5.0 end\r\n")
		}
	})
	var got []Token
	if _, err := c.Say(context.Background(), " tab\t, line\n, é \\ \x7f ", Sampling{}, collect(&got)); err != nil {
		t.Fatal(err)
	}
	if want := `S 0 0 0 0  tab\x09, line\n, é \\ \x7F `; asked != want {
		t.Errorf("sent %q, want %q", asked, want)
	}
	var text []byte
	for _, x := range got {
		text = append(text, x.Text...)
	}
	if string(text) != " a \n\\é" || len(got) != 4 {
		t.Errorf("%q of %d tokens", text, len(got))
	}
}

// What shares the port with the answers is passed over, whatever it starts with; and a client that comes in the middle of
// an older answer, or of a line, finds its own.
func TestNoise(t *testing.T) {
	noise := "ESP-ROM:esp32s3-20210327\nBuild:Mar 27 2021\nrst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)\nentry 0x403c98d0\n" +
		"I (24) boot: ESP-IDF v5.5\nE (123) psram: not found\nD (9) x: y\nV (9) x: y\n# ready\nRebooting...\n\x00\xff\xfe\n" + strings.Repeat("z", 200_000) + "\n\n"
	var remarks []string
	c := fake(t, Options{Remark: func(s string) { remarks = append(remarks, s) }}, func(request string, say func(string)) {
		switch request {
		case "X":
			say("9\nT 1 2\nT 1 3\nE 2 3.0 stopped\n! unknown what\n{\"half\":\n" + noise)
		case "I":
			say(strings.ReplaceAll(noise, "# ready\n", "# warm\n") + "{\"chip\": \"esp32s3\"}\n")
		}
	})
	got, err := c.Info(context.Background())
	if err != nil || string(got) != `{"chip": "esp32s3"}` {
		t.Fatalf("%s, %v", got, err)
	}
	if all := strings.Join(remarks, "\n"); !strings.Contains(all, "E (123) psram: not found") || !strings.Contains(all, "# warm") || strings.Contains(all, "zzz") {
		t.Errorf("remarks: %q", shorten(all))
	}
}

// Every wrong answer is an error of its kind, and the next request is answered all the same.
func TestWrongAnswers(t *testing.T) {
	ctx := context.Background()
	say := func(c *Client) error {
		_, err := c.Say(ctx, "x", Sampling{Tokens: 2}, func(Token) error { return nil })
		return err
	}
	info := func(c *Client) error { _, err := c.Info(ctx); return err }
	digest := func(c *Client) error { _, err := c.Digest(ctx, 4, 1); return err }
	profile := func(c *Client) error { return c.SetProfiling(ctx, true) }
	restart := func(c *Client) error { return c.Restart(ctx) }
	for _, c := range []struct {
		name   string
		ask    func(*Client) error
		answer string
		want   error
	}{
		{"prompt without a number", say, "P\n", ErrAnswer},
		{"prompt with a sign", say, "P -1\n", ErrAnswer},
		{"prompt of no number", say, "P inf\n", ErrAnswer},
		{"prompt of hexadecimal", say, "P 0x1p3\n", ErrAnswer},
		{"prompt twice", say, "P 1\nP 1\n", ErrAnswer},
		{"end without a reason", say, "P 1\nE 0 0\n", ErrAnswer},
		{"end for an unknown reason", say, "P 1\nE 0 0 fun\n", ErrAnswer},
		{"end with more", say, "P 1\nE 0 0 end 1\n", ErrAnswer},
		{"more tokens than told", say, "P 1\nT 1 2 a\nT 1 2 a\nE 1 1.0 length\n", ErrAnswer},
		{"another request's answer", say, "{}\n", ErrAnswer},
		{"a digest", say, "D 4 1 0x0123456789abcdef\n", ErrAnswer},
		{"a start", say, "P 1\nT 1 2 a\nESP-ROM:esp32s3\n# ready\n", ErrRestarted},
		{"a failed start", say, "# not ready: psram there is none\n", ErrRestarted},
		{"silence", say, "P 1\nT 1 2 a\n", ErrSilent},
		{"a refusal without a message", say, "! what\n", ErrAnswer},
		{"a refusal without anything", say, "!\n", ErrAnswer},
		{"cut JSON", info, "{\"a\": \n", ErrAnswer},
		{"no JSON", info, "P 1\n", ErrAnswer},
		{"another digest's mode", digest, "D 4 2 0x0123456789abcdef\n", ErrAnswer},
		{"another digest's length", digest, "D 5 1 0x0123456789abcdef\n", ErrAnswer},
		{"a short digest", digest, "D 4 1 0x0123456789abcde\n", ErrAnswer},
		{"a digest of no digits", digest, "D 4 1 0x0123456789abcdeg\n", ErrAnswer},
		{"a digest with a sign", digest, "D 4 1 0x+123456789abcdef\n", ErrAnswer},
		{"the other switch", profile, "Q 0\n", ErrAnswer},
		{"more than R", restart, "R 1\n", ErrAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := true
			client := fake(t, Options{Patience: 300 * time.Millisecond}, func(request string, say func(string)) {
				switch {
				case request == "X":
				case first:
					first = false
					say(c.answer)
				default:
					say("{\"well\": true}\n")
				}
			})
			if err := client.Hello(ctx); err != nil {
				t.Fatal(err)
			}
			if c.ask(client); first {
				t.Fatal("nothing was asked")
			}
			if got, err := client.Info(ctx); err != nil || string(got) != `{"well": true}` {
				t.Errorf("afterwards: %s, %v", got, err)
			}
			first = true
			if err := c.ask(client); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	c := fake(t, Options{}, func(request string, say func(string)) {
		if request != "X" {
			say("! model-empty the partition holds no model\n")
		}
	})
	_, err := c.Info(context.Background())
	var refusal *BoardError
	if !errors.As(err, &refusal) || refusal.Code != "model-empty" || !strings.Contains(err.Error(), "chiplm flash") {
		t.Errorf("%v", err)
	}
}

// Lines of tokens that were lost or cut on the way are counted; the text goes on.
func TestLostTokens(t *testing.T) {
	c := fake(t, Options{}, func(request string, say func(string)) {
		if request != "X" {
			say("P 1\nT 1 2 a\nT 61\nT 3 4 \\x\nT 5 6 b\nE 6 1.0 length\n")
		}
	})
	var got []Token
	done, err := c.Say(context.Background(), "", Sampling{}, collect(&got))
	if err != nil || done.Lost != 4 || len(got) != 2 {
		t.Errorf("%+v, %d tokens, %v", done, len(got), err)
	}
}

// A cancelled request stops the board, and its end is waited for: the next answer is the next request's.
func TestCancel(t *testing.T) {
	stop := errors.New("enough")
	for name, c := range map[string]struct {
		each func(cancel func()) error
		want error
	}{
		"by the context":  {func(cancel func()) error { cancel(); return nil }, context.Canceled},
		"by the receiver": {func(func()) error { return stop }, stop},
	} {
		t.Run(name, func(t *testing.T) {
			running := false
			client := fake(t, Options{}, func(request string, say func(string)) {
				switch {
				case request == "X" && running:
					running = false
					say("T 1 2 late\nE 2 2.0 stopped\n")
				case request == "I":
					say("{}\n")
				case request != "X":
					running = true
					say("P 1\nT 1 2 a\n")
				}
			})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			n := 0
			done, err := client.Say(ctx, "", Sampling{Tokens: 9}, func(Token) error { n++; return c.each(cancel) })
			if !errors.Is(err, c.want) || done.Why != "stopped" || done.Tokens != 2 || done.Lost != 0 || n != 1 {
				t.Errorf("%+v, %d tokens, %v", done, n, err)
			}
			if got, err := client.Info(context.Background()); err != nil || string(got) != "{}" {
				t.Errorf("afterwards: %s, %v", got, err)
			}
		})
	}
}

func TestConnectionEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	c := New(ours, Options{})
	defer c.Close()
	go func() {
		r := bufio.NewReader(theirs)
		for {
			line, err := r.ReadString('\n')
			switch {
			case err != nil:
				return
			case line == "V\n":
				io.WriteString(theirs, "V 1\n")
			case line[0] == 'S':
				io.WriteString(theirs, "P 1\nT 1 2 a\nT 3")
				theirs.Close()
			}
		}
	}()
	n := 0
	_, err := c.Say(context.Background(), "", Sampling{}, func(Token) error { n++; return nil })
	if !errors.Is(err, ErrGone) || n != 1 {
		t.Errorf("%d tokens, %v", n, err)
	}
	if _, err := c.Info(context.Background()); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
	c.Close()
	if _, err := c.Info(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestGreeting(t *testing.T) {
	for answer, want := range map[string]error{"V 2": ErrVersion, "V 10": ErrVersion, "V": ErrSilent, "V one": ErrSilent, "hello": ErrSilent} {
		ours, theirs := net.Pipe()
		c := New(ours, Options{Greeting: 200 * time.Millisecond})
		go func() {
			lines := bufio.NewScanner(theirs)
			for lines.Scan() {
				if lines.Text() == "V" {
					fmt.Fprintln(theirs, answer)
				}
			}
		}()
		if err := c.Hello(context.Background()); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
		c.Close()
		theirs.Close()
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	ctx := context.Background()
	c := fake(t, Options{}, func(request string, _ func(string)) {
		if request != "X" {
			t.Errorf("sent %q", shorten(request))
		}
	})
	each := func(Token) error { return nil }
	for name, ask := range map[string]func() error{
		"long text":            func() error { _, err := c.Say(ctx, strings.Repeat("x", MostLine), Sampling{}, each); return err },
		"negative tokens":      func() error { _, err := c.Say(ctx, "", Sampling{Tokens: -1}, each); return err },
		"negative top-k":       func() error { _, err := c.Say(ctx, "", Sampling{TopK: -1}, each); return err },
		"negative temperature": func() error { _, err := c.Say(ctx, "", Sampling{Temperature: -1}, each); return err },
		"no ids":               func() error { _, err := c.Generate(ctx, nil, Sampling{}, false, each); return err },
		"no tokens":            func() error { _, err := c.Digest(ctx, 0, 0); return err },
		"unknown mode":         func() error { _, err := c.Digest(ctx, 1, 3); return err },
	} {
		if err := ask(); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every text comes back from its escapes, and an escaped text is one line.
func FuzzEscapes(f *testing.F) {
	f.Add("a\nb\\c\x00\x7fé\xff", `a\n\\\x00`)
	f.Fuzz(func(t *testing.T, text, escaped string) {
		e := escape(text)
		if strings.ContainsAny(e, "\n\r\x00") {
			t.Errorf("%q", e)
		}
		var ascii strings.Builder // bytes from 0x80 are escaped in answers only
		for i := range len(e) {
			if e[i] >= 0x80 {
				fmt.Fprintf(&ascii, `\x%02x`, e[i])
			} else {
				ascii.WriteByte(e[i])
			}
		}
		if back, err := unescape(ascii.String()); err != nil || string(back) != text {
			t.Errorf("%q becomes %q, %v", text, back, err)
		}
		if b, err := unescape(escaped); err == nil && len(b) > len(escaped) {
			t.Errorf("%q becomes longer: %q", escaped, b)
		}
	})
}

// No line makes a parser fall over, and what is accepted says nothing that is impossible.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{"P 29.6", "T 11 10320", "T 11 10320 \\xC3a", "E 120 10.32 length", "D 4 1 0x0123456789abcdef", "! range 5 is too many", "# ready", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		switch kind(s) {
		case 'P':
			if ms, err := parsePrompt(s); err == nil && !(ms >= 0) {
				t.Errorf("%q: %v", s, ms)
			}
		case 'T':
			for _, text := range []bool{false, true} {
				if x, err := parseToken(s, text); err == nil && (x.ID < 0 || x.Micros < 0 || text != (x.Text != nil)) {
					t.Errorf("%q: %+v", s, x)
				}
			}
		case 'E':
			if d, err := parseEnd(s); err == nil && (d.Tokens < 0 || !(d.MsPerToken >= 0)) {
				t.Errorf("%q: %+v", s, d)
			}
		case 'D':
			if _, err := parseDigest(s, 4, 1); err == nil && len(s) != len("D 4 1 0x0123456789abcdef") {
				t.Errorf("%q", s)
			}
		case '!':
			if parseRefusal(s) == nil {
				t.Errorf("%q refuses nothing", s)
			}
		}
		if k := kind(s); k != 0 && (s[0] != k || len(s) > 1 && s[1] != ' ' && k != '{') {
			t.Errorf("%q is a %c", s, k)
		}
	})
}
