package host

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/chiplm/chiplm/firmware/host/internal/tinymodel"
)

// An interrupt that ends the context of the program is one interrupt, whichever of the two is seen first.
func TestOneInterruptIsOne(t *testing.T) {
	for _, contextFirst := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		i := newInterrupts(ctx)
		if contextFirst {
			cancel()
			if !i.next(nil) {
				t.Error("the end of the context is no interrupt")
			}
			i.signals <- os.Interrupt
		} else {
			i.signals <- os.Interrupt
			if !i.next(nil) {
				t.Error("a signal is no interrupt")
			}
			cancel()
		}
		stop := make(chan struct{})
		time.AfterFunc(50*time.Millisecond, func() { close(stop) })
		if i.next(stop) {
			t.Errorf("context first %v: one interrupt was told twice", contextFirst)
		}
		i.signals <- os.Interrupt
		if !i.next(nil) {
			t.Error("a second interrupt is not told")
		}
		i.end()
		cancel()
	}
}

// At a terminal, Ctrl-C stops an answer and the next prompt is answered; while nothing is written it ends the program.
// The signals are real, and end the program's context as they do in the program.
func TestCtrlC(t *testing.T) {
	name := board(t, tinymodel.Image(t, "context_length=4096", "train.batch_tokens=8192", "n_layers=4"))
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	defer terminal.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	guard := make(chan os.Signal, 4) // should the command not listen, the test must not die of the signal
	signal.Notify(guard, os.Interrupt)
	defer signal.Stop(guard)

	out, w := io.Pipe()
	errs, we := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		c := ChatCommand()
		c.SetIn(terminal)
		c.SetOut(w)
		c.SetErr(we)
		c.SetArgs([]string{"--port", name, "--tokens", "4000", "--temperature", "0"})
		ended <- c.ExecuteContext(ctx)
		w.Close()
		we.Close()
	}()
	// lines gives what is printed, a line or a prompt at a time.
	lines := func(r io.Reader) <-chan string {
		c := make(chan string, 10000)
		go func() {
			defer close(c)
			b, s := bufio.NewReader(r), ""
			for {
				x, err := b.ReadByte()
				if err != nil {
					return
				}
				if s += string(rune(x)); x == '\n' || s == "> " {
					c <- s
					s = ""
				}
			}
		}()
		return c
	}
	said := lines(errs)
	await := func(want string) {
		t.Helper()
		for {
			select {
			case s, ok := <-said:
				if !ok {
					t.Fatalf("it ended before %q", want)
				}
				if strings.Contains(s, want) {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("no %q", want)
			}
		}
	}
	text := bufio.NewReader(out)
	for round := range 2 {
		await("> ")
		if _, err := io.WriteString(master, "Once upon\n"); err != nil {
			t.Fatal(err)
		}
		// The answer is under way, and waits for its reader: text is a pipe.
		if _, err := io.ReadFull(text, make([]byte, len("Once upon")+20)); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		go io.CopyN(io.Discard, text, 0)
		drained := make(chan struct{})
		go func() { // up to the line end that closes an answer
			defer close(drained)
			for {
				b, err := text.ReadByte()
				if err != nil || b == '\n' && text.Buffered() == 0 {
					return
				}
			}
		}()
		await("(stopped)")
		<-drained
		if round == 0 && ctx.Err() == nil {
			t.Error("the program's context did not end")
		}
	}
	await("> ")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// A prompt that the board refuses is told, and the next one asked for; the end of the input ends the program.
func TestTalk(t *testing.T) {
	name := board(t, tinymodel.Image(t))
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	defer terminal.Close()
	go io.Copy(io.Discard, master) // its echo
	if _, err := io.WriteString(master, strings.Repeat("z", 60)+"\n\nOnce\n\x04"); err != nil {
		t.Fatal(err)
	}
	out, errs, err := run(t, context.Background(), terminal, ChatCommand(), "--port", name, "--tokens", "5", "--temperature", "0")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs, "note: ") || !strings.Contains(errs, "(context)") || strings.Count(errs, "> ") != 4 || strings.Count(errs, "5 tokens") != 1 {
		t.Errorf("%q", errs)
	}
	if !strings.Contains(out, "\nOnce") {
		t.Errorf("%q", out)
	}
}
