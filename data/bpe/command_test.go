package bpe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textFile is a corpus of one story per line.
type textFile string

func openTextFile(path string) (Corpus, error) {
	b, err := os.ReadFile(path)
	return textFile(b), err
}

func (f textFile) Stories(ctx context.Context, yield func([]byte) error) error {
	return each(strings.Split(string(f), "\n")...)(yield)
}

func runCommand(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	c := Command(openTextFile)
	c.SilenceUsage, c.SilenceErrors = true, true
	var out, notes bytes.Buffer
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&out)
	c.SetErr(&notes)
	c.SetArgs(args)
	err = c.ExecuteContext(context.Background())
	return out.String(), err
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	corpus, path := filepath.Join(dir, "corpus.txt"), filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(corpus, []byte(ascii+"\n"+ascii), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := runCommand(t, "", "train", corpus, "--size", "280", "-o", path, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Path, SHA256 string
		Size         int
		Stories      int
		Bytes        int
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	tok := trained(t, 280, ascii, ascii)
	if made.SHA256 != tok.Hash() || made.Size != 280 || made.Stories != 2 || made.Bytes != 2*len(ascii) || made.Path != path {
		t.Errorf("train says %+v", made)
	}

	text := "The fox, \xff and é"
	ids, err := runCommand(t, text, "encode", "-t", path)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := runCommand(t, ids, "decode", "-t", path); err != nil || back != text {
		t.Errorf("%q came back as %q, %v", text, back, err)
	}
	var decoded struct {
		Tokens int
		Text   string
		Base64 []byte
	}
	out, err = runCommand(t, "", append([]string{"decode", "-t", path, "--json"}, strings.Fields(ids)...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &decoded); err != nil || string(decoded.Base64) != text ||
		decoded.Text != "The fox, \ufffd and é" || decoded.Tokens != len(strings.Fields(ids)) {
		t.Errorf("decode --json says %q, %v", out, err)
	}
	out, err = runCommand(t, "", "encode", "-t", path, "--text", "", "--json")
	if err != nil || out != "{\n  \"bytes\": 0,\n  \"tokens\": 0,\n  \"ids\": []\n}\n" {
		t.Errorf("encoding nothing says %q, %v", out, err)
	}

	out, err = runCommand(t, "", "info", path, corpus)
	if err != nil || !strings.Contains(out, tok.Hash()) || !strings.Contains(out, "bytes per token") {
		t.Errorf("info says %q, %v", out, err)
	}
	out, err = runCommand(t, "", "info", path, corpus, "--json")
	var shown struct {
		Merges int
		Fit    struct{ Tokens, Bytes int }
	}
	if err != nil || json.Unmarshal([]byte(out), &shown) != nil || shown.Merges != 23 || shown.Fit.Bytes != 2*len(ascii) ||
		shown.Fit.Tokens != 2*len(tok.Encode(nil, []byte(ascii))) {
		t.Errorf("info --json says %q, %v", out, err)
	}
}

// A tokenizer is named alike everywhere, and who has none is told where to find one.
func TestTokenizerFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("corpus.txt", []byte("aaaa"), 0o644); err != nil {
		t.Fatal(err)
	}
	hint := "checkpoints/runs/NAME/tokenizer.json: name it with --tokenizer"
	for _, args := range [][]string{{"encode", "--text", "a"}, {"decode", "1"}, {"info"}} {
		_, err := runCommand(t, "", args...)
		var coded interface{ ExitCode() int }
		if !errors.As(err, &coded) || coded.ExitCode() != 2 || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v without a tokenizer: %v", args, err)
		}
		_, err = runCommand(t, "", append(args, "--tokenizer", "none.json")...)
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), hint) ||
			!strings.Contains(err.Error(), "none.json") {
			t.Errorf("%v with a wrong path: %v", args, err)
		}
	}
	if err := trained(t, 258, "aa").Save("other.json"); err != nil {
		t.Fatal(err)
	}
	want, err := runCommand(t, "", "info", "other.json", "corpus.txt")
	if err != nil || !strings.Contains(want, "other.json") || !strings.Contains(want, "bytes per token") {
		t.Fatalf("%s, %v", want, err)
	}
	for _, args := range [][]string{{"info", "-t", "other.json", "corpus.txt"}, {"info", "corpus.txt", "--tokenizer", "other.json"}} {
		if got, err := runCommand(t, "", args...); err != nil || got != want {
			t.Errorf("%v: %s, %v", args, got, err)
		}
	}
	if err := os.Rename("other.json", "tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"encode", "--text", "a"}, {"decode", "1"}, {"info"}} {
		if _, err := runCommand(t, "", args...); err != nil {
			t.Errorf("%v with tokenizer.json here: %v", args, err)
		}
	}
}

func TestTrainInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("corpus.txt", []byte("aaaa"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Command(openTextFile)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetErr(&bytes.Buffer{})
	c.SetArgs([]string{"train", "corpus.txt", "--size", "258"})
	err := c.ExecuteContext(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was written: run the same command again") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat("tokenizer.json"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a tokenizer is written")
	}
}

func TestCommandErrors(t *testing.T) {
	dir := t.TempDir()
	corpus, path := filepath.Join(dir, "corpus.txt"), filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(corpus, []byte("aaaa"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := trained(t, 258, "aa").Save(path); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		message string
		args    []string
	}{
		{"at most 259", []string{"train", corpus, "--size", "300", "-o", filepath.Join(dir, "new.json")}},
		{"at least 257", []string{"train", corpus, "--size", "10", "-o", filepath.Join(dir, "new.json")}},
		{"none.txt", []string{"train", filepath.Join(dir, "none.txt"), "-o", filepath.Join(dir, "new.json")}},
		{"none.json", []string{"encode", "-t", "none.json"}},
		{`id 2 of the input, "258"`, []string{"decode", "-t", path, "257,258"}},
		{`id 1 of the input, "x"`, []string{"decode", "-t", path, "x"}},
		{"--text", []string{"encode", "-t", path, "--text", "a", corpus}},
		{"corpus.txt", []string{"info", corpus}},
	} {
		if _, err := runCommand(t, "", test.args...); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%v: want an error with %q, got: %v", test.args, test.message, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.json")); !os.IsNotExist(err) {
		t.Error("a failed training has left a file")
	}
}
