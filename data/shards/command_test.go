package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

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
		cmd.SetArgs(append([]string{"builtin:1:100", "--tokenizer", tokenizer, "--json"}, extra...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Path string
			Header
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
