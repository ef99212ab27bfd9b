package host

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
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

// watched is a writer that tells of what is written.
type watched struct{ told func(s string) }

func (w watched) Write(b []byte) (int, error) {
	w.told(string(b))
	return len(b), nil
}

// At a terminal, Ctrl-C stops an answer and the next prompt is answered; while nothing is written it ends the program.
// The signals are real, and end the program's context as they do in the program.
func TestCtrlC(t *testing.T) {
	name := board(t, tinymodel.Image(t, "context_length=1024", "train.batch_tokens=2048", "n_layers=8", "d_model=64", "d_ff=128"))
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
	interrupt := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}

	const prompt = "Once upon" // the answer to it takes the whole context
	written, said := "", make(chan string, 1000)
	ended := make(chan error, 1)
	go func() {
		c := ChatCommand()
		c.SetIn(terminal)
		c.SetOut(watched{func(s string) {
			if strings.HasSuffix(written, prompt) && s != "\n" { // the first token
				interrupt()
				<-guard
				time.Sleep(50 * time.Millisecond) // the command heard it too, while the answer is under way here
			}
			written += s
		}})
		c.SetErr(watched{func(s string) { said <- s }})
		c.SetArgs([]string{"--port", name, "--tokens", "4000", "--temperature", "0"})
		ended <- c.ExecuteContext(ctx)
	}()
	await := func(want string) string {
		t.Helper()
		for {
			select {
			case s := <-said:
				if strings.Contains(s, want) {
					return s
				}
			case err := <-ended:
				t.Fatalf("it ended before %q: %v", want, err)
			case <-time.After(20 * time.Second):
				t.Fatalf("no %q", want)
			}
		}
	}
	answers, stopped := 0, 0
	for answers < 3 || stopped == 0 && answers < 20 { // a slow reader may find that all of it was written already
		await("> ")
		if _, err := io.WriteString(master, prompt+"\n"); err != nil {
			t.Fatal(err)
		}
		answers++
		if strings.Contains(await("tokens ("), "(stopped)") {
			stopped++
		}
	}
	await("> ")
	if ctx.Err() == nil {
		t.Error("the program's context did not end")
	}
	interrupt()
	ends(t, ended)
	if n := strings.Count(written, prompt); n != answers || stopped == 0 {
		t.Errorf("%d answers to %d prompts, %d stopped", n, answers, stopped)
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
	if !strings.Contains(errs, "note: ") || !strings.Contains(errs, "(context)") || strings.Count(errs, "> ") != 4 || strings.Count(errs, ", 5 tokens (") != 1 {
		t.Errorf("%q", errs)
	}
	if !strings.HasPrefix(out, "Once") {
		t.Errorf("%q", out)
	}
}
