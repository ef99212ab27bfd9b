package web

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// errNoBrowser occurs where there is no screen for a browser.
var errNoBrowser = errors.New("there is no desktop here")

// openBrowser opens an address in the browser of the user's desktop. It does not wait for it.
func openBrowser(address string) error {
	program := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return errNoBrowser
	}
	c := exec.Command(program, address)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C here is not meant for the browser
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }()
	return nil
}
