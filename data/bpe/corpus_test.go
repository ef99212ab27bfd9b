package bpe

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// readCorpus returns the stories of a real corpus file, or nil when the corpus is not on this machine.
func readCorpus(t testing.TB, name string) [][]byte {
	t.Helper()
	dir := os.Getenv("CHIPLM_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	var stories [][]byte
	for _, s := range bytes.Split(b, []byte(EndOfText)) {
		if s = bytes.TrimSpace(s); len(s) > 0 {
			stories = append(stories, s)
		}
	}
	return stories
}

func trainOn(t testing.TB, stories [][]byte, size int) *Tokenizer {
	t.Helper()
	tok, err := Train(context.Background(), func(yield func([]byte) error) error {
		for _, s := range stories {
			if err := yield(s); err != nil {
				return err
			}
		}
		return nil
	}, size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestTinyStories(t *testing.T) {
	train, valid := readCorpus(t, "tinystories-train.txt"), readCorpus(t, "tinystories-valid.txt")
	if train == nil || valid == nil {
		t.Skip("needs tinystories-train.txt and tinystories-valid.txt; CHIPLM_CORPUS names their folder")
	}
	tok := trainOn(t, train, 4096)
	var ids []int32
	var back []byte
	bytesRead, tokens := 0, 0
	for _, s := range valid {
		ids = tok.Encode(ids[:0], s)
		if back = tok.Decode(back[:0], ids); !bytes.Equal(back, s) {
			t.Fatalf("a story does not come back: %q", s)
		}
		bytesRead += len(s)
		tokens += len(ids)
	}
	ratio := float64(bytesRead) / float64(tokens)
	t.Logf("%d bytes in %d tokens: %.4f bytes per token", bytesRead, tokens, ratio)
	if ratio < 3.95 {
		t.Errorf("%.4f bytes per token on held-out stories, want at least 3.95", ratio)
	}
}

func BenchmarkEncode(b *testing.B) {
	stories := readCorpus(b, "tinystories-valid.txt")
	size := 4096
	if stories == nil {
		for _, s := range loadReference(b).Trainings[0].Stories {
			stories = append(stories, []byte(s))
		}
		size = 430
	}
	tok := trainOn(b, stories, size)
	text := bytes.Join(stories, []byte("\n"))
	ids := make([]int32, 0, len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		ids = ids[:0]
		for _, s := range stories {
			ids = tok.Encode(ids, s)
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	stories := readCorpus(b, "tinystories-train.txt")
	if stories == nil {
		b.Skip("needs tinystories-train.txt; CHIPLM_CORPUS names its folder")
	}
	b.SetBytes(int64(len(bytes.Join(stories, nil))))
	for b.Loop() {
		trainOn(b, stories, 4096)
	}
}
