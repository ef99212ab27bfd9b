package flash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The test's own program is the esptool of the tests: a script on PATH calls it. It knows the words of one version, keeps
// the flash in a file and its command lines in another.
const (
	fakeVersion = "CHIPLM_FAKE_ESPTOOL" // "5.6.0", "4.12.0", or "broken"
	fakeFlash   = "CHIPLM_FAKE_FLASH"   // file of the flash
	fakeLog     = "CHIPLM_FAKE_LOG"
	fakeSpoil   = "CHIPLM_FAKE_SPOIL" // an offset whose byte is not written
)

func TestMain(m *testing.M) {
	if v := os.Getenv(fakeVersion); v != "" {
		if err := fakeTool(v, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "A fatal error occurred:", err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fakeTool(version string, args []string) error {
	old := strings.HasPrefix(version, "4")
	spell := func(s string) string {
		if old {
			return strings.ReplaceAll(s, "-", "_")
		}
		return s
	}
	if len(args) == 1 && args[0] == "version" {
		if version == "broken" {
			return errors.New("no module named serial")
		}
		name := map[bool]string{true: "esptool.py", false: "esptool"}[old]
		fmt.Printf("%s v%s\n%s\n", name, version, version)
		return nil
	}
	log, err := os.OpenFile(os.Getenv(fakeLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	if err := log.Close(); err != nil {
		return err
	}
	for len(args) > 1 && strings.HasPrefix(args[0], "--") {
		known := map[string][]string{"--chip": {"esp32s3"}, "--port": nil, "--baud": nil, "--before": {spell("default-reset")},
			"--after": {spell("no-reset"), spell("hard-reset")}}
		values, ok := known[args[0]]
		if !ok || values != nil && !strings.Contains(" "+strings.Join(values, " ")+" ", " "+args[1]+" ") {
			return fmt.Errorf("no such option: %s %s", args[0], args[1])
		}
		args = args[2:]
	}
	flash, err := os.OpenFile(os.Getenv(fakeFlash), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer flash.Close()
	operation := args[0]
	args = args[1:]
	if operation == spell("read-flash") {
		at, _ := strconv.ParseInt(args[0], 0, 64)
		n, _ := strconv.ParseInt(args[1], 0, 64)
		b := make([]byte, n)
		if _, err := flash.ReadAt(b, at); err != nil {
			return err
		}
		return os.WriteFile(args[2], b, 0o600)
	}
	for _, o := range []string{"flash-mode", "flash-freq", "flash-size"} {
		if len(args) < 2 || args[0] != "--"+spell(o) || args[1] != "keep" {
			return fmt.Errorf("want %s keep: %v", spell(o), args)
		}
		args = args[2:]
	}
	for ; len(args) > 1; args = args[2:] {
		at, err := strconv.ParseInt(args[0], 0, 64)
		if err != nil {
			return err
		}
		file, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		switch operation {
		case spell("write-flash"):
			if spoil, err := strconv.ParseInt(os.Getenv(fakeSpoil), 0, 64); err == nil && spoil >= at && spoil < at+int64(len(file)) {
				file[spoil-at] ^= 1
			}
			if _, err := flash.WriteAt(file, at); err != nil {
				return err
			}
		case spell("verify-flash"):
			got := make([]byte, len(file))
			if _, err := flash.ReadAt(got, at); err != nil || !bytes.Equal(got, file) {
				return fmt.Errorf("verify failed at %#x: %v", at, err)
			}
		default:
			return fmt.Errorf("no such command: %s", operation)
		}
	}
	return nil
}

// fake puts an esptool of a version on an otherwise empty PATH, named as that version is, and gives the files of its
// flash, erased but for what is on it, and of its log.
func fake(t *testing.T, version string, on map[int64][]byte) (flash, log string) {
	t.Helper()
	dir := t.TempDir()
	flash, log = filepath.Join(dir, "flash"), filepath.Join(dir, "log")
	f, err := os.Create(flash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 0x10000), 0); err != nil {
		t.Fatal(err)
	}
	for at, b := range on {
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	name := "esptool"
	if strings.HasPrefix(version, "4") {
		name += ".py"
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", fakeVersion, version, self)
	if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv(fakeFlash, flash)
	t.Setenv(fakeLog, log)
	return flash, log
}
