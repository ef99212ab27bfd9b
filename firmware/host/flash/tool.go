package flash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrTool occurs when esptool is not there, or fails.
var ErrTool = errors.New("esptool")

// Install says how to get esptool.
const Install = "install it with pipx install esptool (or python3 -m pip install esptool), or in a shell of ESP-IDF run export.sh, which has it"

// Tool is an esptool.
type Tool struct {
	Command []string // how to call it
	Version string
	dashes  bool // commands and values are spelled write-flash, and not write_flash as before version 5
}

// newest is how the tool is called and spelled where none is at hand.
func newest() *Tool { return &Tool{Command: []string{"esptool"}, dashes: true} }

// callings are the ways to call esptool, the newest first.
var callings = [][]string{{"esptool"}, {"esptool.py"}, {"python3", "-m", "esptool"}, {"python", "-m", "esptool"}}

// answering is how long a version may take: Python starts slowly.
const answering = 30 * time.Second

var versionLine = regexp.MustCompile(`(?m)^(?:esptool(?:\.py)? )?v?(\d+)\.(\d+)[\w.+-]*\s*$`)

// FindTool finds an esptool that runs, and asks its version. The error wraps [ErrTool] and says how to get one.
func FindTool(ctx context.Context) (*Tool, error) {
	why := ""
	for _, words := range callings {
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		version, err := versionOf(ctx, words)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if words[len(words)-1] != "esptool" || len(words) == 1 { // Python without the module is no news
				why += fmt.Sprintf("; %s is there and does not work: %v", words[0], err)
			}
			continue
		}
		major, err := strconv.Atoi(version[:strings.IndexByte(version, '.')])
		if err != nil {
			why += fmt.Sprintf("; %s is there and gives no version of esptool: %.40q", words[0], version)
			continue
		}
		return &Tool{Command: words, Version: version, dashes: major >= 5}, nil
	}
	return nil, fmt.Errorf("%w is not there%s: %s", ErrTool, why, Install)
}

func versionOf(ctx context.Context, words []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var out bytes.Buffer
	if err := runGroup(ctx, append(words[:len(words):len(words)], "version"), &out, time.Second); err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLine(out.Bytes()))
	}
	m := versionLine.FindSubmatch(out.Bytes())
	if m == nil {
		return "", fmt.Errorf("it says no version: %.200q", lastLine(out.Bytes()))
	}
	return string(m[1]) + "." + string(m[2]), nil
}

func lastLine(b []byte) string {
	b = bytes.TrimSpace(b)
	return string(bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:]))
}

// spell writes a word as this version does.
func (t *Tool) spell(word string) string {
	if t.dashes {
		return word
	}
	return strings.ReplaceAll(word, "-", "_")
}

// Line is a command line of the tool: connected to a chip at a port ("": the tool looks for one), leaving it as after says,
// "hard-reset" or "no-reset".
func (t *Tool) line(chip, port string, baud int, after, operation string, rest ...string) []string {
	line := append(t.Command[:len(t.Command):len(t.Command)], "--chip", chip)
	if port != "" {
		line = append(line, "--port", port)
	}
	line = append(line, "--baud", strconv.Itoa(baud), "--before", t.spell("default-reset"), "--after", t.spell(after), t.spell(operation))
	return append(line, rest...)
}

// keep has a boot loader written as it was built, not changed for the flash chip that the tool sees.
func (t *Tool) keep() []string {
	var out []string
	for _, option := range []string{"flash-mode", "flash-freq", "flash-size"} {
		out = append(out, "--"+t.spell(option), "keep")
	}
	return out
}

// runTool runs a command line of the tool; what it prints goes to w as it comes.
func runTool(ctx context.Context, line []string, w io.Writer) error {
	err := runGroup(ctx, line, w, 5*time.Second)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w failed, its own words are above (%w): %s", ErrTool, err, quote(line))
	}
	return nil
}

// runGroup runs a program in a process group of its own. When ctx ends, all of the group are interrupted, so that the
// tool lets go of the port, and after the grace, or at the user's next signal, whoever is left is killed.
func runGroup(ctx context.Context, line []string, w io.Writer, grace time.Duration) error {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = grace
	again := make(chan os.Signal, 1)
	defer signal.Stop(again)
	ended := make(chan struct{})
	defer close(ended)
	cmd.Cancel = func() error {
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		go func() {
			select {
			case <-again:
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			case <-ended:
			}
		}()
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // those that the program started
	}
	return err
}

var plain = regexp.MustCompile(`^[\w./:=@%+-]+$`)

// quote writes a command line for a shell.
func quote(line []string) string {
	words := make([]string, len(line))
	for i, w := range line {
		if !plain.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}
