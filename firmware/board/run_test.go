package board_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
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
