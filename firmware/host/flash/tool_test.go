package flash

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// misbehaving puts shell scripts on an otherwise empty PATH, by their names, each with what it does when it is not asked
// for its version, 5.6.0.
func misbehaving(t *testing.T, does string) {
	t.Helper()
	script(t, t.TempDir(), "esptool", "if [ \"$*\" = version ]; then echo esptool v5.6.0; exit; fi\n"+does)
}

func script(t *testing.T, dir, name, does string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// program is the path of a program of this system.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// An interrupt ends the tool and all that it started, even what ignores interrupts, and gives no advice about the board.
func TestInterrupt(t *testing.T) {
	dir, fw := tinymodel.Export(t, "esp32s3", nil), firmware(t, 9, modelLine)
	sleep := program(t, "sleep")
	for name, c := range map[string]struct {
		when string
		args []string
		want string
	}{
		"while writing":   {"write-flash", []string{"--firmware", fw}, "may hold a part"},
		"while comparing": {"verify-flash", []string{"--firmware", fw}, "the comparison was stopped"},
		"while reading":   {"read-flash", nil, "nothing was written"},
		"while asking":    {"version", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			held := filepath.Join(t.TempDir(), "held")
			if err := syscall.Mkfifo(held, 0o600); err != nil {
				t.Fatal(err)
			}
			// A shell's background processes ignore interrupts. This one holds the pipe open for as long as it lives.
			does := "case \"$*\" in *" + c.when + "*) " + sleep + " 1000 9>'" + held + "' >/dev/null 2>&1 & wait;; *version*) echo esptool v5.6.0;; esac"
			script(t, t.TempDir(), "esptool", does)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				cmd := Command()
				cmd.SetOut(io.Discard)
				cmd.SetErr(io.Discard)
				cmd.SetArgs(append([]string{dir, "--port", "/dev/ttyX"}, c.args...))
				cmd.SilenceUsage, cmd.SilenceErrors = true, true
				ended <- cmd.ExecuteContext(ctx)
			}()
			f, err := os.Open(held) // waits until it is held
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "BOOT") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			gone := make(chan error, 1)
			go func() {
				_, err := f.Read(make([]byte, 1))
				gone <- err
			}()
			select {
			case err := <-gone:
				if err != io.EOF {
					t.Error(err)
				}
			case <-time.After(30 * time.Second):
				t.Error("what the tool started is left")
			}
		})
	}
}

// What the tool read is a small regular file, or is refused.
func TestWhatWasReadIsNoTable(t *testing.T) {
	dir := tinymodel.Export(t, "esp32s3", nil)
	for name, does := range map[string]string{
		"a pipe":   program(t, "mkfifo") + ` "$file"`,
		"a device": program(t, "ln") + ` -s /dev/zero "$file"`,
		"large":    program(t, "head") + ` -c 1000000 /dev/zero > "$file"`,
		"a folder": program(t, "mkdir") + ` "$file"`,
		"nothing":  "",
	} {
		t.Run(name, func(t *testing.T) {
			misbehaving(t, "for file in \"$@\"; do :; done\n"+does)
			if _, _, err := run(t, dir, "--port", "/dev/ttyX"); !errors.Is(err, ErrTool) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A version that no esptool has is told, and the next way to call it tried.
func TestVersions(t *testing.T) {
	const large = "99999999999999999999"
	bin := t.TempDir()
	script(t, bin, "esptool", "echo esptool v"+large+".1")
	if _, err := FindTool(t.Context()); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "esptool is there") || !strings.Contains(err.Error(), large) {
		t.Errorf("%v", err)
	}
	script(t, bin, "esptool.py", "echo esptool.py v4.12.0")
	if tool, err := FindTool(t.Context()); err != nil || tool.Version != "4.12" || tool.dashes || tool.Command[0] != "esptool.py" {
		t.Errorf("%+v, %v", tool, err)
	}
}

// A failure of the tool is a failure of this program, with the tool's name.
func TestToolFails(t *testing.T) {
	dir, fw := tinymodel.Export(t, "esp32s3", nil), firmware(t, 9, modelLine)
	misbehaving(t, "exit 42")
	if _, _, err := run(t, dir, "--firmware", fw, "--port", "/dev/ttyX"); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "BOOT") {
		t.Errorf("%v", err)
	}
}

// Folders that killed runs left are removed by the next, those in use are not.
func TestFoldersThatWereLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	const folders = "chiplm-flash-"
	old, used, other := filepath.Join(tmp, folders+"1"), filepath.Join(tmp, folders+"2"), filepath.Join(tmp, "other")
	for _, dir := range []string{old, used, other} {
		if err := os.MkdirAll(filepath.Join(dir, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{old, other} {
		if at := time.Now().Add(-2 * time.Hour); os.Chtimes(dir, at, at) != nil {
			t.Fatal("no times")
		}
	}
	misbehaving(t, "exit 1")
	if _, _, err := run(t, tinymodel.Export(t, "esp32s3", nil), "--port", "/dev/ttyX"); !errors.Is(err, ErrTool) {
		t.Errorf("%v", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, folders+"*"))
	if err != nil || len(left) != 1 || left[0] != used {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
