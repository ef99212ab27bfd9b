package port

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.bug.st/serial"
)

// A pseudo-terminal is a port: every byte passes both ways as it is, and an end of the other side ends a read.
func TestPseudoTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	name := slave.Name()
	slave.Close()
	p, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, way := range []struct{ from, to io.ReadWriter }{{p, master}, {master, p}} {
		if _, err := way.from.Write(all); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(all))
		if _, err := io.ReadFull(way.to, got); err != nil || !bytes.Equal(got, all) {
			t.Errorf("%x arrived, %v", got, err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Read(all)
		ended <- err
	}()
	master.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a read after the end succeeded")
		}
	case <-time.After(10 * time.Second):
		t.Error("a read does not end when the other side does")
	}
}

// Closing a port ends a read that waits.
func TestCloseEndsARead(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	defer slave.Close()
	p, err := Open(slave.Name())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Read(make([]byte, 1))
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the read succeeded")
		}
	case <-time.After(10 * time.Second):
		t.Error("the read does not end")
	}
}

func TestWhatIsNoPort(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{file: ErrKind, fifo: ErrKind, dir: ErrKind, os.DevNull: ErrKind, filepath.Join(dir, "none"): ErrNone} {
		if p, err := Open(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
			if err == nil {
				p.Close()
			}
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind error
		want string
	}{
		{syscall.EBUSY, ErrBusy, "another program"},
		{syscall.EACCES, ErrPermission, "dialout"},
		{syscall.ENXIO, ErrNone, "plug"},
		{syscall.ENOTTY, ErrKind, "not a serial port"},
		{new(serial.PortError), ErrBusy, "end that first"}, // the first code
	} {
		if got := explain("/dev/ttyACM0", c.err); !errors.Is(got, c.kind) || !strings.Contains(got.Error(), c.want) || !strings.Contains(got.Error(), "/dev/ttyACM0") {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestChoice(t *testing.T) {
	own := Candidate{"/dev/ttyACM1", "303A:1001", "ESP32-S3, built-in USB", "", true}
	two := Candidate{"/dev/ttyACM2", "303A:4001", "ESP32-S3, USB library", "", true}
	bridge := Candidate{"/dev/ttyUSB0", "10C4:EA60", "", "", false}
	for _, c := range []struct {
		all  []Candidate
		want string
		err  error
		says string
	}{
		{[]Candidate{own, bridge}, own.Name, nil, ""},
		{[]Candidate{own, two, bridge}, "", ErrMany, "/dev/ttyACM1 (303A:1001, ESP32-S3, built-in USB), /dev/ttyACM2"},
		{[]Candidate{bridge}, "", ErrNone, "/dev/ttyUSB0 (10C4:EA60)"},
		{nil, "", ErrNone, "--virtual"},
	} {
		got, err := choose(c.all)
		if got != c.want || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q, %v", c.all, got, err)
		}
	}
	if _, err := List(); err != nil {
		t.Errorf("listing what is here: %v", err)
	}
}
