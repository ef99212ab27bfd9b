package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

func TestTokenizeWithoutATokenizer(t *testing.T) {
	t.Chdir(t.TempDir())
	cmd := Command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs([]string{"builtin:1:10"})
	err := cmd.ExecuteContext(t.Context())
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 2 || !strings.Contains(err.Error(), "runs/NAME/tokenizer.json: name it with --tokenizer") {
		t.Errorf("error %v", err)
	}
}

func TestTokenizeInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(dir, "x.tokens")
	err := Write(ctx, path, data.Builtin(1, 10), small, nil)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was written: run the same command again") {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%s is left behind", entries[0].Name())
	}
}

func TestTokenizeCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(CacheVariable, filepath.Join(dir, "cache"))
	corpus := data.Builtin(1, 100)
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		return corpus.Stories(context.Background(), yield)
	}, 400)
	if err != nil {
		t.Fatal(err)
	}
	tokenizer := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(tokenizer, tok.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, extra := range [][]string{nil, {"-o", filepath.Join(dir, "x.tokens")}} {
		cmd := Command()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs(append([]string{"builtin:1:100", "-t", tokenizer, "--json"}, extra...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Path string
			Header
		}
		if !strings.HasPrefix(out.String(), "{\n  \"path\"") {
			t.Errorf("not indented by two spaces: %.40q", out.String())
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		s, err := Open(got.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Check(corpus.Info().SHA256, tok.Hash()); err != nil || s.Header() != got.Header || got.Stories != 100 {
			t.Errorf("%+v, %v", got, err)
		}
		var text []byte
		err = corpus.Stories(context.Background(), func(story []byte) error {
			text = append(text, story...)
			return data.ErrStop
		})
		if back := tok.Decode(nil, s.Story(nil, 0)); err != nil || !bytes.Equal(back, text) {
			t.Errorf("the first story reads %q", back)
		}
	}
}
