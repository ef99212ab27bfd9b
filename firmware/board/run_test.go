package board_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chiplm/chiplm/firmware/board"
)

// The board as it runs inside of a Go program.

// running is a board of Run, with the other ends of its pipes.
type running struct {
	in    *os.File
	lines chan string
	ended chan error
}

func run(t *testing.T, ctx context.Context, o board.Options) *running {
	t.Helper()
	in, toBoard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBoard, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.In, o.Out = in.Fd(), out.Fd()
	r := &running{in: toBoard, lines: make(chan string, 100000), ended: make(chan error, 1)}
	go read(fromBoard, r.lines)
	go func() {
		err := board.Run(ctx, o)
		_, _ = in.Close(), out.Close()
		r.ended <- err
	}()
	t.Cleanup(func() { _, _ = toBoard.Close(), fromBoard.Close() })
	return r
}

// until reads lines up to one that starts so, and is not empty.
func until(t *testing.T, lines <-chan string, prefix string) (line string) {
	t.Helper()
	for {
		if strings.HasPrefix(line, prefix) && line != "" {
			return line
		}
		select {
		case next, ok := <-lines:
			if !ok {
				t.Fatalf("the board ended before %q", prefix)
			}
			line = next
		case <-time.After(patience):
			t.Fatalf("%q did not come", prefix)
		}
	}
}

func TestRunEndsWithItsInput(t *testing.T) {
	im, path := model(t)
	boards := []*running{}
	for range 3 { // at the same time
		boards = append(boards, run(t, t.Context(), board.Options{Model: path}))
	}
	for _, b := range boards {
		fmt.Fprint(b.in, "D 9 0\nD 9 2\nV\n")
		if err := b.in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var digests []string
	for _, b := range boards {
		for range 2 {
			digests = append(digests, strings.Fields(until(t, b.lines, "D 9 "))[3])
		}
		until(t, b.lines, "V 1")
		if err := <-b.ended; err != nil {
			t.Errorf("Run gave %v", err)
		}
	}
	if slices.Sort(digests); digests[0] != digests[len(digests)-1] || im.Size() == 0 {
		t.Errorf("the boards gave the digests %v", digests)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	_, path := model(t)
	for _, request := range []string{"", "G 1000000 700 5 3 0 1 1\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		b := run(t, ctx, board.Options{Model: path, PSRAM: 1 << 20})
		fmt.Fprint(b.in, request)
		until(t, b.lines, "# ready")
		cancel()
		select {
		case err := <-b.ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Run gave %v", err)
			}
		case <-time.After(patience):
			t.Fatal("the board runs on")
		}
	}
}

func TestRunRefusesWhatIsNoDescriptor(t *testing.T) {
	if err := board.Run(t.Context(), board.Options{In: 1 << 20, Out: 1 << 20}); !errors.Is(err, unix.EBADF) {
		t.Errorf("Run gave %v", err)
	}
}

// When nobody reads, the board drops output and goes on; when somebody reads again, lines start at the start of a line.
func TestNobodyReads(t *testing.T) {
	_, path := model(t)
	in, toBoard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer toBoard.Close()
	fromBoard, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer fromBoard.Close()
	ended := make(chan error, 1)
	go func() {
		err := board.Run(t.Context(), board.Options{Model: path, In: in.Fd(), Out: out.Fd()})
		_, _ = in.Close(), out.Close()
		ended <- err
	}()
	for range 400 { // 400 kB of answers, where a pipe holds 64
		fmt.Fprint(toBoard, "I\n")
	}
	// The board has taken all requests when the last of a pipe's fill was taken too.
	fmt.Fprint(toBoard, strings.Repeat("X\n", 40000))
	lines := make(chan string, 100000)
	go read(fromBoard, lines)
	fmt.Fprint(toBoard, "V\n")
	broken := 0
	for line := ""; line != "V 1"; {
		line = until(t, lines, "")
		if !anyLine.MatchString(line) {
			broken++
		}
	}
	if broken > 1 {
		t.Errorf("%d lines are broken", broken)
	}
	if err := toBoard.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run gave %v", err)
	}
}

// terminal opens a pseudo-terminal: the board's end, and the path of the other.
func terminal(t *testing.T) (master *os.File, path string) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	return master, fmt.Sprintf("/dev/pts/%d", n)
}

// plug opens the other end without echo and line editing.
func plug(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	mode.Iflag &^= unix.ICRNL | unix.IXON
	mode.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	return f
}

// A cable that is pulled in the middle of an answer, and plugged in again.
func TestCableIsPulled(t *testing.T) {
	_, path := model(t)
	master, name := terminal(t)
	defer master.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := plug(t, name)
	ended := make(chan error, 1)
	go func() { ended <- board.Run(ctx, board.Options{Model: path, In: master.Fd(), Out: master.Fd()}) }()
	for scanner := bufio.NewScanner(first); scanner.Scan() && scanner.Text() != "# ready"; {
	}
	for range 3 {
		fmt.Fprint(first, "G 1000000 700 5 3 0 1 1\n")
		if _, err := first.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		first = plug(t, name)
	}
	fmt.Fprint(first, "\nV\n")
	lines := make(chan string, 100000)
	go read(first, lines)
	until(t, lines, "V 1")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run gave %v", err)
	}
	_ = first.Close()
}

// Flash does not change under a firmware: a board runs on with the model that it started with, until it starts again.
func TestModelFileChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		code   string // after a restart
	}{
		"cut":         {func(path string) error { return os.Truncate(path, 0) }, "model-empty"},
		"overwritten": {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 5000)), 0o600) }, "model"},
		"removed":     {os.Remove, "model"},
	} {
		t.Run(name, func(t *testing.T) {
			_, path := model(t)
			b := run(t, t.Context(), board.Options{Model: path})
			fmt.Fprint(b.in, "D 9 0\n")
			want := until(t, b.lines, "D 9 ")
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(b.in, "D 9 0\nR\n")
			if got := until(t, b.lines, "D 9 "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			until(t, b.lines, "# not ready: "+c.code+" ")
			if err := b.in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-b.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A board tells once how its boot went; what is no regular file is no model, and does not hold it up.
func TestBooted(t *testing.T) {
	_, path := model(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    board.Options
		want string
	}{
		{board.Options{Model: path}, ""},
		{board.Options{}, "model-empty"},
		{board.Options{Model: write(t, nil)}, "model-empty"},
		{board.Options{Model: write(t, []byte("no image"))}, "model"},
		{board.Options{Model: fifo}, "model"},
		{board.Options{Model: t.TempDir()}, "model"},
		{board.Options{Model: os.DevNull}, "model"},
		{board.Options{Model: fifo + "-none"}, "model"},
		{board.Options{Model: path, PSRAM: -1}, "psram"},
		{board.Options{Model: path, SRAM: 2000}, "memory"},
		{board.Options{Model: path, SRAM: board.MostMemory, PSRAM: board.MostMemory}, ""},
	} {
		told := make(chan *board.Failure, 2)
		c.o.Booted = func(f *board.Failure) { told <- f }
		b := run(t, t.Context(), c.o)
		fmt.Fprint(b.in, "R\n")
		if err := b.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-b.ended; err != nil {
			t.Errorf("%+v: %v", c.o, err)
		}
		if len(told) != 1 {
			t.Fatalf("%+v: told %d times", c.o, len(told))
		}
		f := <-told
		if (f == nil) != (c.want == "") || f != nil && (f.Code != c.want || len(f.Message) < 10) {
			t.Errorf("%+v: %+v, want %q", c.o, f, c.want)
		}
	}
}

// Sizes that no board has are refused, by the function and by the program; so is a model that would hold the program up.
func TestRefusals(t *testing.T) {
	for _, o := range []board.Options{{SRAM: board.MostMemory + 1}, {PSRAM: board.MostMemory + 1}, {SRAM: 1<<63 - 1}, {PSRAM: 1<<63 - 1}} {
		o.Booted = func(*board.Failure) { t.Errorf("%+v: a boot", o) }
		b := run(t, t.Context(), o)
		if err := <-b.ended; err == nil || !strings.Contains(err.Error(), fmt.Sprint(board.MostMemory)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{
		"--sram 1073741825":            2,
		"--psram 18446744073709551615": 2,
		"--sram 18446744073705357312":  2, // wraps with what is added
		"--psram 18446744073709551616": 2,
		"--sram -1":                    2,
		"--model " + fifo:              1,
		"--model " + t.TempDir():       1,
		"--model " + os.DevNull:        1,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		out, err := exec.CommandContext(ctx, path, strings.Fields(args)...).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != want || !strings.HasPrefix(string(out), "board: ") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}
