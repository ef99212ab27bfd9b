package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/train"
)

func runLine(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Chdir(t.TempDir()) // no runs here
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		line string
		want int
	}{
		{context.Background(), "", 0},
		{context.Background(), "--version", 0},
		{context.Background(), "completion bash", 0},
		{context.Background(), "frobnicate", 2},
		{context.Background(), "--frobnicate", 2},
		{context.Background(), "eval frobnicate", 2},
		{context.Background(), "eval bpb --n many", 2},
		{context.Background(), "sample one two", 2},
		{context.Background(), "compare", 2},
		{context.Background(), "compare nothing-here.jsonl", 1},
		{context.Background(), "verify one two", 2},
		{context.Background(), "verify one --model two", 2},
		{context.Background(), "verify --tokens 0", 2},
		{context.Background(), "sample --temperature -1", 2},
		{context.Background(), "board --sram 5", 2},
		{context.Background(), "board frobnicate", 2},
		{context.Background(), "board info --port nothing-here", 1},
		{context.Background(), "chat --ids Once", 2},
		{context.Background(), "flash", 2},
		{context.Background(), "flash nothing-here --port=", 2},
		{context.Background(), "flash nothing-here", 1},
		{context.Background(), "page --listen=", 2},
		{context.Background(), "page --out public --virtual", 2},
		{context.Background(), "eval bpb", 1},
		{context.Background(), "verify", 1},
		{context.Background(), "image info nothing-here.clm", 1},
		{context.Background(), "train --config nothing-here.yaml", 1},
		{cancelled, "data info builtin", 130},
	} {
		code, _, stderr := runLine(t, c.ctx, strings.Fields(c.line)...)
		if code != c.want {
			t.Errorf("chiplm %s: exit status %d, want %d; it said %q", c.line, code, c.want, stderr)
		}
		if code != 0 && !strings.Contains("\n"+stderr, "\nchiplm: ") { // notes may stand before it
			t.Errorf("chiplm %s: failed with %q on standard error", c.line, stderr)
		}
	}
}

// The status of a program that was run is not that of this one; only errors that are meant to end the program say theirs.
func TestStatusOfOtherPrograms(t *testing.T) {
	other := exec.Command("sh", "-c", "exit 42").Run()
	if exit := (*exec.ExitError)(nil); !errors.As(other, &exit) || exit.ExitCode() != 42 {
		t.Skipf("no shell: %v", other)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), other, 1},
		{t.Context(), fmt.Errorf("esptool failed: %w", other), 1},
		{t.Context(), errors.Join(other, usage.Errorf("bad flag")), 2},
		{t.Context(), usage.Errorf("bad flag: %w", other), 2},
		{t.Context(), fmt.Errorf("%w after %w", &train.Interrupted{}, other), 130},
		{cancelled, fmt.Errorf("%w: %w", context.Canceled, other), 130},
	} {
		if got := status(c.ctx, c.err, io.Discard); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// An interrupt is told in one way, and hides nothing that went wrong besides.
func TestInterruptIsToldOnce(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	full := errors.New("no space left on device")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{cancelled, context.Canceled, true},
		{cancelled, fmt.Errorf("packing combo: %w", context.Canceled), true},
		{cancelled, full, false},
		{cancelled, errors.Join(full, context.Canceled), false},
		{cancelled, fmt.Errorf("%w: %w", context.Canceled, full), false},
		{cancelled, fmt.Errorf("%w after %w", &train.Interrupted{}, context.Canceled), false},
		{t.Context(), context.Canceled, false},
	} {
		if got := interrupted(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// An argument that is empty, as an unset variable of a shell gives, is a command line that cannot be understood, for every
// command that takes one.
func TestEmptyArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	takes := regexp.MustCompile(`[A-Z]{3,}`)
	tried := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if args := strings.Fields(cmd.CommandPath())[1:]; takes.MatchString(cmd.Use) {
			tried++
			if cmd.Name() == "chat" {
				return // an empty prompt is one
			}
			if code, _, stderr := runLine(t, t.Context(), append(args, "")...); code != 2 {
				t.Errorf("%s \"\": exit status %d: %s", cmd.CommandPath(), code, stderr)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
	if tried < 5 {
		t.Errorf("%d commands were tried", tried)
	}
}

// A path that the environment names wrongly is refused, not passed over.
// What a flag wants is said in words, without the functions that read it.
func TestFlagErrors(t *testing.T) {
	for line, want := range map[string]string{
		"cost --head-rows 20%":                    `--head-rows "20%": wants a number;`,
		"pie trace exp --n many":                  `--n "many": wants a whole number;`,
		"pie mutate --seed -1":                    `--seed "-1": wants a whole number, 0 or more;`,
		"pie mutate --every 1e99":                 `--every "1e99": wants a whole number;`,
		"pie run --json=perhaps":                  `--json "perhaps": wants true or false;`,
		"pie trace exp --n 999999999999999999999": `wants a number that is not so large;`,
	} {
		code, _, stderr := runLine(t, context.Background(), strings.Fields(line)...)
		if code != 2 || !strings.Contains(stderr, want) || strings.Contains(stderr, "strconv") {
			t.Errorf("chiplm %s: %d, %s", line, code, stderr)
		}
	}
}

// No command writes what it was told to write over what it was told to read.
func TestInputsAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	m, err := released.Embedded().Open("combo")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"text.txt": "Once there was a cat.\n<|endoftext|>\nThe end.\n", "m.clm": string(m.Image), "t.json": string(m.Tokenizer)}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("text.txt", "link"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"tokenizer train text.txt --size 257 -o text.txt",
		"tokenizer train text.txt --size 257 -o link",
		"data tokenize text.txt -t t.json -o ./text.txt",
		"data tokenize text.txt -t t.json -o t.json",
		"image dump m.clm config --out m.clm",
	} {
		if code, _, stderr := runLine(t, t.Context(), strings.Fields(line)...); code != 2 || !strings.Contains(stderr, "would be lost") {
			t.Errorf("chiplm %s: status %d, %s", line, code, stderr)
		}
		for name, text := range files {
			if now, err := os.ReadFile(name); err != nil || string(now) != text {
				t.Errorf("chiplm %s: %s is another, %v", line, name, err)
			}
		}
	}
}

func TestUnknownPath(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("CHIPLM_SIMD", "mmx")
	code, _, stderr := runLine(t, context.Background(), "data", "info", "builtin")
	if code != 2 || !strings.Contains(stderr, "CHIPLM_SIMD") || !strings.Contains(stderr, "plain") {
		t.Errorf("exit status %d, it said %q", code, stderr)
	}
}

// brokenWriter cannot be written to, as a full disk or a pipe without a reader.
type brokenWriter struct{ err error }

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

// What cannot be written is not a success, whatever the command.
func TestLostOutputIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{"--help", "--version", "data info builtin --json", "completion bash", "train --help"} {
		for broken, want := range map[error]int{syscall.ENOSPC: 1, syscall.EPIPE: 141} {
			var stderr bytes.Buffer
			code := run(context.Background(), strings.Fields(line), brokenWriter{broken}, &stderr)
			if code != want {
				t.Errorf("chiplm %s to a writer that fails with %q: exit status %d, want %d; it said %q", line, broken, code, want, stderr.String())
			}
		}
	}
}

// Every command explains itself: what it does, and an example where it does something; no line is wider than 100.
func TestEveryCommandHasHelp(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && (cmd.Long == "" || cmd.Example == "") {
			t.Errorf("%s has no explanation or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.UsageString()) {
			if len(line) > 101 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
}

// Flag words of the road work on all its commands.
func TestJSONFlag(t *testing.T) {
	for _, line := range []string{"train", "eval bpb", "compare", "export", "verify", "sample", "image info", "image check", "image dump",
		"checkpoint info", "data info", "data fetch", "data generate", "tokenizer train", "tokenizer info", "bench train", "bench decode",
		"flash", "chat", "board info", "board digest", "board benchmark", "board profile", "page"} {
		cmd, _, err := rootCommand().Find(strings.Fields(line))
		if err != nil || !strings.HasSuffix(cmd.CommandPath(), line) {
			t.Errorf("chiplm %s does not exist: %v", line, err)
			continue
		}
		if cmd.Flags().Lookup("json") == nil {
			t.Errorf("chiplm %s has no --json", line)
		}
	}
}
