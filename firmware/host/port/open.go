package port

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"go.bug.st/serial"
)

// Baud is the speed asked for, where it means something.
const Baud = 115200

var (
	// ErrBusy occurs when another program has the port open, or has locked it.
	ErrBusy = errors.New("in use by another program")

	// ErrPermission occurs when the user may not open the port.
	ErrPermission = errors.New("permission denied")

	// ErrNone occurs when there is no such port, or no board on any.
	ErrNone = errors.New("no port")

	// ErrKind occurs when a path names something else than a port.
	ErrKind = errors.New("not a serial port")

	// ErrMany occurs when several boards are there and one is wanted.
	ErrMany = errors.New("several boards")
)

// Open opens a port by its name, such as /dev/ttyACM0, or that of a pseudo-terminal, and locks it until it is closed, so that
// no two programs take bytes from each other. Errors wrap those of this package
// and say what to do.
func Open(name string) (io.ReadWriteCloser, error) {
	if runtime.GOOS != "windows" {
		switch info, err := os.Stat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w %s: is the board plugged in, with a cable that carries data? %s", ErrNone, name, seen())
		case err == nil && info.Mode()&fs.ModeCharDevice == 0:
			return nil, fmt.Errorf("%s is %w", name, ErrKind) // opening a pipe would wait for ever
		}
	}
	open := openSerial
	if isPseudo(name) {
		open = openPseudo
	}
	p, err := open(name)
	if err != nil {
		return nil, explain(name, err)
	}
	return p, nil
}

func openSerial(name string) (io.ReadWriteCloser, error) {
	return openLocked(name, func(name string) (io.ReadWriteCloser, error) {
		return serial.Open(name, &serial.Mode{BaudRate: Baud}) // asks the system, too, to open it for nobody else
	})
}

// explain says what was wrong with a port and what helps.
func explain(name string, err error) error {
	var code serial.PortErrorCode = -1
	if e := new(serial.PortError); errors.As(err, &e) {
		code = e.Code()
	}
	switch {
	case code == serial.PortBusy || errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("port %s is %w, such as another chiplm chat or a monitor: end that first", name, ErrBusy)
	case code == serial.PermissionDenied || errors.Is(err, fs.ErrPermission):
		help := "open it as a user who may use serial ports"
		if runtime.GOOS == "linux" {
			help = "join the group that owns it (sudo usermod -aG dialout $USER; on some systems uucp), then log in anew"
		}
		return fmt.Errorf("%s: %w: %s", name, ErrPermission, help)
	case code == serial.PortNotFound || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w %s: it went away; plug the board in again", ErrNone, name)
	case code == serial.InvalidSerialPort || errors.Is(err, syscall.ENOTTY):
		return fmt.Errorf("%s is %w: %w", name, ErrKind, err)
	}
	return fmt.Errorf("open port %s: %w", name, err)
}
