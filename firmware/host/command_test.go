package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/port"
	"github.com/chiplm/chiplm/firmware/host/virtual"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// run executes a command line and returns what it printed.
func run(t *testing.T, ctx context.Context, in io.Reader, c *cobra.Command, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.SetIn(in)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// board starts a virtual board with a model and gives its port.
func board(t *testing.T, model string) string {
	t.Helper()
	b, err := virtual.Start(virtual.Options{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.Port()
}

// What chat prints is the prompt and what the board wrote; figures go to standard error. It is the same text whoever
// encodes the prompt, and wherever that comes from.
func TestChat(t *testing.T) {
	model := tinymodel.Image(t)
	name, ctx := board(t, model), context.Background()
	flags := []string{"--port", name, "--tokens", "12", "--temperature", "0.8", "--top-k", "20", "--seed", "3"}
	chat := func(in string, more ...string) (string, string) {
		t.Helper()
		out, errs, err := run(t, ctx, strings.NewReader(in), ChatCommand(), append(append([]string{}, flags...), more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out, errs
	}
	text, figures := chat("", "Once upon")
	if !strings.HasPrefix(text, "Once upon") || len(text) < len("Once upon")+12 || !strings.HasSuffix(text, "\n") {
		t.Errorf("%q", text)
	}
	for _, want := range []string{"prompt ", "12 tokens (as many as asked for)", " ms a token", " tokens/s", " bytes of text/s\n"} {
		if !strings.Contains(figures, want) {
			t.Errorf("no %q in %q", want, figures)
		}
	}
	if piped, _ := chat("Once upon\r\n"); piped != text {
		t.Errorf("from standard input: %q, want %q", piped, text)
	}
	if ids, _ := chat("", "--ids", "--model", filepath.Dir(model), "Once upon"); ids != text {
		t.Errorf("encoded here: %q, want %q", ids, text)
	}
	if other, _ := chat("", "--seed", "4", "Once upon"); other == text {
		t.Error("another seed writes the same")
	}
	out, errs := chat("", "--json", "Once upon")
	var a Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || errs != "" {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	if a.Prompt+a.Text+"\n" != throughJSON(t, text) || a.Tokens != 12 || len(a.IDs) != 12 || a.Stopped != "length" || a.Port != name || a.TokensPerSecond <= 0 || a.BytesPerSecond <= 0 {
		t.Errorf("%+v\n%q", a, text)
	}
	var refused *line.BoardError
	if _, _, err := run(t, ctx, nil, ChatCommand(), "--port", name, strings.Repeat("z", 100)); !errors.As(err, &refused) || !strings.Contains(err.Error(), name) {
		t.Errorf("a prompt that is too long: %v", err)
	}
}

// Tokens that did not arrive are an error, after all that did was printed; a prompt that is refused is not printed.
func TestChatWithHoles(t *testing.T) {
	for name, lost := range map[string]bool{"whole": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			master, slave, err := pty.Open()
			if err != nil {
				t.Skipf("no pseudo-terminals here: %v", err)
			}
			if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			defer slave.Close()
			go func() {
				for s := bufio.NewScanner(master); s.Scan(); {
					switch text := s.Text(); {
					case text == "V":
						io.WriteString(master, "V 1\n")
					case strings.HasSuffix(text, "refuse"):
						io.WriteString(master, "! context too long for this board\n")
					case strings.HasPrefix(text, "S"):
						second := "T 2 5 b\n"
						if lost {
							second = "T 2\n"
						}
						io.WriteString(master, "P 1.0\nT 1 5 a\n"+second+"T 3 5 c\nE 3 1.00 length\n")
					}
				}
			}()
			out, _, err := run(t, t.Context(), nil, ChatCommand(), "--port", slave.Name(), "x")
			if errors.Is(err, ErrLost) != lost || !lost && err != nil || out != map[bool]string{false: "xabc\n", true: "xac\n"}[lost] {
				t.Errorf("%q, %v", out, err)
			}
			out, _, err = run(t, t.Context(), nil, ChatCommand(), "--port", slave.Name(), "--json", "x")
			var a Answer
			if bad := json.Unmarshal([]byte(out), &a); bad != nil || errors.Is(err, ErrLost) != lost || (a.Lost == 1) != lost || a.Tokens != 3 || len(a.IDs) != 3-a.Lost {
				t.Errorf("%s, %v, %v", out, err, bad)
			}
			var refused *line.BoardError
			if out, _, err := run(t, t.Context(), nil, ChatCommand(), "--port", slave.Name(), "refuse"); out != "" || !errors.As(err, &refused) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// throughJSON is a text as JSON gives it back: bytes that are no UTF-8 are replaced.
func throughJSON(t *testing.T, s string) (back string) {
	t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestChatRefuses(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"--temperature", "-1"}, {"--temperature", "NaN"}, {"--tokens", "0"}, {"--top-k", "-1"}, {"--ids"}, {"--model", none}, {"--port", ""}, {"a", "b"}} {
		var coded interface{ ExitCode() int }
		_, _, err := run(t, context.Background(), strings.NewReader("x"), ChatCommand(), args...)
		if err == nil || !errors.As(err, &coded) && len(args) == 2 && args[0][0] == '-' {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, _, err := run(t, context.Background(), nil, ChatCommand(), "--port", none, "x"); !errors.Is(err, port.ErrNone) {
		t.Errorf("a port that is not there: %v", err)
	}
	if _, _, err := run(t, context.Background(), strings.NewReader(strings.Repeat("x", 5000)), ChatCommand(), "--port", none); err == nil || !strings.Contains(err.Error(), "4096") {
		t.Errorf("a long prompt: %v", err)
	}
}

func TestDigestCommand(t *testing.T) {
	model, ctx := tinymodel.Image(t), context.Background()
	other := tinymodel.Image(t, "d_ff=64")
	name := board(t, model)
	out, _, err := run(t, ctx, nil, BoardCommand(), "digest", "--port", name, "--model", model)
	if err != nil || !strings.HasSuffix(out, "\nequal\n") || strings.Count(out, "0x") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = run(t, ctx, nil, BoardCommand(), "digest", "--port", name, "--model", other, "--tokens", "7", "--mode", "plain")
	if !errors.Is(err, ErrDiffers) || !strings.Contains(out, "NOT EQUAL") || strings.Count(out, "0x") != 2 {
		t.Errorf("another model: %v\n%s", err, out)
	}
	for mode, equal := range map[string]bool{"all": true, "one": false} {
		out, _, err = run(t, ctx, nil, BoardCommand(), "digest", "--port", name, "--json", "--mode", mode)
		var d digests
		if err != nil || json.Unmarshal([]byte(out), &d) != nil || (d.Equal != nil) != equal || d.Host != "" || d.Tokens != 32 || len(d.Board[0].Digest) != 18 {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
	for _, args := range [][]string{{"--tokens", "33"}, {"--tokens", "33", "--model", model}, {"--tokens", "0"}, {"--mode", "fast"}, {"--model", name}} {
		if out, _, err := run(t, ctx, nil, BoardCommand(), append([]string{"digest", "--port", name}, args...)...); err == nil || out != "" {
			t.Errorf("%v was accepted: %s", args, out)
		}
	}
}

func TestQuestions(t *testing.T) {
	name := board(t, tinymodel.Image(t))
	for _, c := range []struct{ question, want string }{{"info", `"vocab_size": 270`}, {"profile", `"operation"`}, {"benchmark", `"memories"`}} {
		out, _, err := run(t, context.Background(), nil, BoardCommand(), c.question, "--port", name)
		if err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s", c.question, err, out)
		}
	}
	c, _, err := connect(context.Background(), name, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before, err := c.Profile(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Say(context.Background(), "x", line.Sampling{Tokens: 9}, func(line.Token) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if after, err := c.Profile(context.Background()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the profile was left on: %v\n%s\n%s", err, before, after)
	}
}

// The virtual board runs until it is interrupted, which is its good end.
func TestVirtualBoard(t *testing.T) {
	dir, link := filepath.Dir(tinymodel.Image(t)), filepath.Join(t.TempDir(), "board")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, ended := startBoard(ctx, "--virtual", dir, "--link", link)
	if said, err := bufio.NewReader(r).ReadString('\n'); err != nil || said != link+"\n" {
		t.Fatalf("%q, %v", said, err)
	}
	for range 3 {
		if out, _, err := run(t, context.Background(), nil, BoardCommand(), "info", "--port", link); err != nil || !strings.Contains(out, "virtual") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	cancel()
	ends(t, ended)
	if _, err := os.Lstat(link); err == nil {
		t.Error("the link is left")
	}
	short, cancelShort := context.WithCancel(context.Background())
	defer cancelShort()
	var notes bytes.Buffer
	little := BoardCommand()
	little.SetOut(watched{func(string) { cancelShort() }}) // the port is told last
	little.SetErr(&notes)
	little.SetArgs([]string{"--virtual", dir, "--sram", "2000"})
	if err := little.ExecuteContext(short); err != nil || !strings.Contains(notes.String(), "(memory)") {
		t.Errorf("a board with little memory: %v\n%s", err, notes.String())
	}
	for _, args := range [][]string{{"--virtual", filepath.Join(dir, "none")}, {"--virtual", ""}, {"--link", link}, {"--virtual", dir, "--sram", "-1"}, {"--virtual", dir, "--sram", "9223372036854775807"}, {"--virtual", dir, "--psram", "1073741825"}, {"--virtual", filepath.Join(dir, "golden.json")}} {
		if _, _, err := run(t, context.Background(), nil, BoardCommand(), args...); err == nil {
			t.Errorf("%v was accepted", args)
		} else if refused := (*usage.Error)(nil); len(args) == 4 && (!errors.As(err, &refused) || !strings.Contains(err.Error(), args[2]+" "+args[3])) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// With --listen, the same board writes the same text to a client over WebSocket; an address that is in use, or that others can
// reach, is told before there is a board.
func TestVirtualBoardListens(t *testing.T) {
	model := tinymodel.Image(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, ended := startBoard(ctx, "--virtual", model, "--listen", "127.0.0.1:0")
	var name, address string
	if n, err := fmt.Fscanf(r, "%s\n%s\n", &name, &address); n != 2 || err != nil || !strings.HasPrefix(address, "ws://127.0.0.1:") {
		t.Fatalf("%q, %q: %v", name, address, err)
	}
	want, _, err := run(t, ctx, nil, ChatCommand(), "--port", name, "--tokens", "9", "Once")
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := line.New(websocket.NetConn(ctx, ws, websocket.MessageBinary), line.Options{})
	got := "Once"
	if _, err := client.Say(ctx, "Once", line.Sampling{Tokens: 9, Temperature: 0.7, TopK: 40, Seed: 1}, func(x line.Token) error {
		got += string(x.Text)
		return nil
	}); err != nil || got+"\n" != want {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	client.Close()
	if _, _, err := run(t, ctx, nil, BoardCommand(), "--virtual", model, "--listen", strings.Trim(address, "ws:/")); !errors.Is(err, loopback.ErrInUse) {
		t.Errorf("an address that is in use: %v", err)
	}
	for _, args := range [][]string{{"--virtual", model, "--listen", "0.0.0.0:0"}, {"--virtual", model, "--listen", ""}, {"--listen", "127.0.0.1:0"}} {
		if _, _, err := run(t, ctx, nil, BoardCommand(), args...); !errors.As(err, new(*usage.Error)) {
			t.Errorf("%v: %v", args, err)
		}
	}
	cancel()
	ends(t, ended)
}

// startBoard runs the board's command until ctx ends: what it says, and what it ends with.
func startBoard(ctx context.Context, args ...string) (said io.Reader, ended <-chan error) {
	r, w := io.Pipe()
	end := make(chan error, 1)
	go func() {
		c := BoardCommand()
		c.SetOut(w)
		c.SetErr(io.Discard)
		c.SetArgs(args)
		end <- c.ExecuteContext(ctx)
	}()
	return r, end
}

// ends wants a command that was told to end to do so, and well.
func ends(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// What a virtual board measures of itself is taken for the target of this machine, and for no chip.
func TestBenchmarkIsTaken(t *testing.T) {
	out, _, err := run(t, context.Background(), nil, BoardCommand(), "benchmark", "--port", board(t, tinymodel.Image(t)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := cost.ParseBenchmark([]byte(out))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !b.Virtual || b.Target != "host" {
		t.Errorf("virtual %v, target %s", b.Virtual, b.Target)
	}
	for _, m := range b.Memories {
		for _, r := range m.Rows {
			if r.Us <= 0 {
				t.Errorf("%s: %d bytes in %v us", m.Name, r.Bytes, r.Us)
			}
		}
	}
	for name, want := range map[string]error{"host": nil, "esp32s3": cost.ErrBenchmark} {
		chip, err := targets.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Calibrate(chip); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client that takes the port as soon as it is there, and writes and reads what it likes, is in nobody's way.
func TestVirtualBoardAndHastyClients(t *testing.T) {
	model, link := tinymodel.Image(t), filepath.Join(t.TempDir(), "board")
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for ctx.Err() == nil {
				f, err := os.OpenFile(link, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
				if err != nil {
					continue
				}
				_, _ = f.WriteString("V\nR\n! range no\nG 5 0 0 0 0 1 1\n\x04")
				_, _ = f.Read(make([]byte, 100))
				f.Close()
			}
		}()
		c := BoardCommand()
		c.SetErr(io.Discard)
		said := make(chan string, 1)
		c.SetOut(watched{func(s string) { said <- s }})
		c.SetArgs([]string{"--virtual", model, "--link", link})
		c.SilenceErrors, c.SilenceUsage = true, true
		ended := make(chan error, 1)
		go func() { ended <- c.ExecuteContext(ctx) }()
		select {
		case <-said:
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		}
		for range 100 {
			f, err := os.OpenFile(link, os.O_RDWR|syscall.O_NOCTTY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-over
	}
}
