package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs `chiplm data` with arguments.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := Command()
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// isUsage wants an error of the command line, for which the program ends with status 2.
func isUsage(t *testing.T, args ...string) {
	t.Helper()
	out, _, err := run(t, args...)
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 2 || out != "" {
		t.Errorf("%q: error %v is not one of usage, printed %q", args, err, out)
	}
}

// What an interrupt ends says so, and leaves nothing half done.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	corpus := write(t, "corpus.txt", "One.\n\nTwo.")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"info", corpus}, {"info", "builtin:1:10"},
		{"generate", "--stories", "10", "-o", filepath.Join(dir, "x.txt")}} {
		cmd := Command()
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.ExecuteContext(ctx)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was stopped") ||
			!strings.Contains(err.Error(), "run the same command again") || strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%q: error %v does not say what was stopped", args, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%s is left behind", entries[0].Name())
	}
}

func TestGenerateAndInfo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "my-train.txt")
	if _, _, err := run(t, "generate", "--stories", "30", "--seed", "4", "-o", path); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left", len(entries))
	}
	piped, _, err := run(t, "generate", "--stories", "30", "--seed", "4")
	written, _ := os.ReadFile(path)
	if err != nil || piped != string(written) {
		t.Errorf("standard output and file differ: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "my-valid.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "info", path, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s Summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	indented := out
	builtin := Builtin(4, 30).Info()
	if s.Stories != 30 || s.SHA256 != builtin.SHA256 || s.Bytes != builtin.Bytes || s.Kind != KindDelimited || s.NotUTF8 != 0 ||
		s.StoryBytes != s.Bytes-30*int64(len(Delimiter)+2) || s.HeldOut != filepath.Join(dir, "my-valid.txt") {
		t.Errorf("%+v", s)
	}
	out, _, err = run(t, "info", path)
	if err != nil || !strings.Contains(out, builtin.SHA256) || !strings.Contains(out, "stories        30\n") {
		t.Errorf("%s, %v", out, err)
	}
	if !strings.HasPrefix(indented, "{\n  \"path\"") {
		t.Errorf("info --json is not indented by two spaces: %.40q", indented)
	}
	var made struct {
		Path, SHA256 string
		Stories      int
		Bytes        int64
	}
	out, notes, err := run(t, "generate", "--stories", "30", "--seed", "4", "-o", path, "--json")
	sum := sha256.Sum256(written)
	if err != nil || json.Unmarshal([]byte(out), &made) != nil || made.Path != path || made.Stories != 30 ||
		made.Bytes != int64(len(written)) || made.SHA256 != hex.EncodeToString(sum[:]) || notes != "" {
		t.Errorf("generate --json says %s and %q, %v", out, notes, err)
	}
	isUsage(t, "generate", "--stories", "1", "--json")
	isUsage(t, "generate", "--stories", "0")
	for _, args := range [][]string{{"generate", "--stories", "0"}, {"info", filepath.Join(dir, "none")}, {"info"},
		{"generate", "-o", filepath.Join(dir, "no", "folder", "x")}} {
		if _, _, err := run(t, args...); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestInfoOfAnOddFile(t *testing.T) {
	out, _, err := run(t, "info", "--json", write(t, "x.txt", "One.\n\nT\xffw\xfeo, longer.\n\n\n\nThree."))
	var s Summary
	if err != nil || json.Unmarshal([]byte(out), &s) != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if s.Stories != 3 || s.NotUTF8 != 1 || s.Longest != 1 || s.LongestBytes != 14 || s.HeldOut != "" {
		t.Errorf("%+v", s)
	}
}

func TestFetchCommand(t *testing.T) {
	content := []byte("One.\n<|endoftext|>\nTwo.\n<|endoftext|>\n")
	sum := sha256.Sum256(content)
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Write(content)
	}))
	defer server.Close()
	dir := t.TempDir()
	out, _, err := run(t, "fetch", "tinystories", "--split", "valid", "--dir", dir, "--base-url", server.URL, "--sha256",
		hex.EncodeToString(sum[:]), "--json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(asked, "/datasets/roneneldan/TinyStories/resolve/") || !strings.HasSuffix(asked, "/TinyStoriesV2-GPT4-valid.txt") {
		t.Errorf("asked for %s", asked)
	}
	var result struct {
		Files []struct{ Path, Verified string }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Files) != 1 || result.Files[0].Verified != "expected" {
		t.Fatalf("%s, %v", out, err)
	}
	c, err := Open(result.Files[0].Path)
	if err != nil || len(collect(t, c)) != 2 {
		t.Errorf("what was fetched is no corpus: %v", err)
	}
	// The known size and hash of the default revision do not fit this content.
	_, _, err = run(t, "fetch", "tinystories", "--variant", "v1", "--split", "train", "--dir", dir, "--base-url", server.URL)
	if err == nil || !strings.Contains(err.Error(), "1924281556 are expected") {
		t.Errorf("a wrong file: error %v", err)
	}
	// Of another revision nothing is known, and this server announces nothing.
	out, _, err = run(t, "fetch", "tinystories", "--variant", "v1", "--dir", dir, "--base-url", server.URL, "--revision", "main")
	if err != nil || !strings.Contains(out, "nothing to check it against") {
		t.Errorf("%s, %v", out, err)
	}
	// By default both parts come, and the one to train on finds the other.
	dir = t.TempDir()
	both := []string{"fetch", "tinystories", "--dir", dir, "--base-url", server.URL, "--revision", "main", "--json"}
	if out, _, err = run(t, both...); err != nil || json.Unmarshal([]byte(out), &result) != nil || len(result.Files) != 2 {
		t.Fatalf("%s, %v", out, err)
	}
	if got := HeldOutPath(filepath.Join(dir, "TinyStoriesV2-GPT4-train.txt")); got != filepath.Join(dir, "TinyStoriesV2-GPT4-valid.txt") {
		t.Errorf("the held-out file is %q", got)
	}
	isUsage(t, "fetch", "tinystories", "--sha256", hex.EncodeToString(sum[:]))
	isUsage(t, "fetch", "tinystories", "--split", "test")
	isUsage(t, "fetch", "tinystories", "--variant", "v3")
	isUsage(t, "fetch", "tinystories", "--base-url", "nowhere")
	for _, args := range [][]string{{"fetch"}, {"fetch", "bible"}, {"fetch", "tinystories", "--split", "test"},
		{"fetch", "tinystories", "--base-url", "nowhere"}} {
		if _, _, err := run(t, args...); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// Every command explains itself.
func TestHelp(t *testing.T) {
	cmd := Command()
	for _, c := range append(cmd.Commands(), cmd) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s has no full help", c.Name())
		}
	}
}
