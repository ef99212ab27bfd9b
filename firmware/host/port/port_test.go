package port

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.bug.st/serial"
)

// ways are those to open a port; a pseudo-terminal serves for both.
var ways = map[string]func(string) (io.ReadWriteCloser, error){"port": openSerial, "pseudo-terminal": openPseudo, "either": Open}

// terminal makes a pseudo-terminal, with its other end.
func terminal(t *testing.T) (master *os.File, name string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave.Name()
}

// ends waits for a read that must fail.
func ends(t *testing.T, ended <-chan error, when string) {
	t.Helper()
	select {
	case err := <-ended:
		if err == nil {
			t.Errorf("a read succeeds %s", when)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("a read does not end %s", when)
	}
}

// Every byte passes both ways as it is, and the end of the other side ends a read.
func TestEveryByte(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			master, path := terminal(t)
			p, err := open(path)
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
			ends(t, ended, "when the other side is gone")
		})
	}
}

// Closing a port ends a read that waits.
func TestCloseEndsARead(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			_, path := terminal(t)
			p, err := open(path)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := p.Read(make([]byte, 1))
				ended <- err
			}()
			time.Sleep(10 * time.Millisecond) // most often the read waits by then; both orders must work
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			ends(t, ended, "when the port is closed")
		})
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
		{syscall.EBUSY, ErrBusy, "in use by another program"},
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

// A port is one program's until that closes it, or ends in any way; another is told so, and takes no byte from it.
func TestOneClientAtATime(t *testing.T) {
	if name := os.Getenv("CHIPLM_TEST_PORT"); name != "" { // the program that is killed
		p, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write([]byte("open\n")); err != nil {
			t.Fatal(err)
		}
		_, _ = p.Read(make([]byte, 1))
		t.Fatal("the port ended")
	}
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			_, path := terminal(t)
			p, err := open(path)
			if err != nil {
				t.Fatal(err)
			}
			if q, err := Open(path); !errors.Is(explain(path, err), ErrBusy) {
				t.Errorf("a second client: %v", err)
				if err == nil {
					q.Close()
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if p, err = open(path); err != nil {
				t.Fatalf("after the first has closed it: %v", err)
			}
			p.Close()
		})
	}
	master, path := terminal(t)
	c := exec.Command(os.Args[0], "-test.run=^TestOneClientAtATime$")
	c.Env = append(os.Environ(), "CHIPLM_TEST_PORT="+path)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(master).ReadString('\n'); err != nil || said != "open\n" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := Open(path); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another program: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it says that it was killed
	p, err := Open(path)
	if err != nil {
		t.Fatalf("after a program was killed: %v", err)
	}
	p.Close()
}
