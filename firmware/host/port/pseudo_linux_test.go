package port

import (
	"os"
	"path/filepath"
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
	conn, err := p.(*os.File).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	locked := 0
	err = conn.Control(func(fd uintptr) { locked, err = unix.IoctlGetInt(int(fd), unix.TIOCGEXCL) })
	if err != nil || locked != 0 {
		t.Errorf("locked: %d, %v", locked, err)
	}
}
