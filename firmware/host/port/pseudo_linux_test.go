package port

import (
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A pseudo-terminal is known through links, and is not left locked by a program that does not close it.
func TestPseudoTerminalIsShared(t *testing.T) {
	_, path := terminal(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if !isPseudo(link) || isPseudo(os.DevNull) || isPseudo("/dev/ttyACM0") {
		t.Errorf("%s is taken for another kind of port", path)
	}
	p, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := p.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	locked := 0
	err = conn.Control(func(fd uintptr) { locked, err = unix.IoctlGetInt(int(fd), unix.TIOCGEXCL) })
	if err != nil || locked != 0 {
		t.Errorf("locked: %d, %v", locked, err)
	}
}

// What was opened gets its settings back when it is closed, whatever they were.
func TestSettingsComeBack(t *testing.T) {
	master, path := terminal(t)
	slave, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	settings := func() *unix.Termios {
		t.Helper()
		s, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 2 { // as a terminal that a person uses, then in another way
		before := settings()
		p, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(settings(), before) {
			t.Error("it was not opened raw")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if after := settings(); !reflect.DeepEqual(after, before) {
			t.Errorf("%+v, want %+v", after, before)
		}
		before.Lflag ^= unix.ECHO
		if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, before); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	master.Close()
	if err := p.Close(); err != nil {
		t.Errorf("when the other end is gone: %v", err)
	}
}
