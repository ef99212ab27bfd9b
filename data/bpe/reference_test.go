package bpe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
)

// reference is what Hugging Face's tokenizers made; see testdata/reference.py.
type reference struct {
	Trainings []struct {
		Name    string
		Stories []string
		Asked   int
		Size    int
		Vocab   []string
		Merges  []string
	}
	Encodings []struct {
		Text  string
		Words []string
		IDs   []int32
	}
}

func loadReference(t testing.TB) *reference {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Trainings) == 0 || len(r.Encodings) == 0 {
		t.Fatal("testdata/reference.json is empty")
	}
	return &r
}

func loadReferenceTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load("testdata/reference-tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// names returns the vocabulary and the merges as a tokenizer.json spells them.
func names(t *Tokenizer) (vocab, merges []string) {
	for id, e := range t.entries {
		name := string(appendChars(nil, e))
		if int32(id) == t.eot {
			name = EndOfText
		}
		vocab = append(vocab, name)
	}
	for _, m := range t.merges {
		merges = append(merges, vocab[m.left]+" "+vocab[m.right])
	}
	return vocab, merges
}

func TestTrainingEqualsHuggingFace(t *testing.T) {
	for _, want := range loadReference(t).Trainings {
		t.Run(want.Name, func(t *testing.T) {
			if want.Size < want.Asked {
				_, err := Train(context.Background(), each(want.Stories...), want.Asked)
				var short *SizeError
				if !errors.As(err, &short) || short.Reachable != want.Size || short.Want != want.Asked {
					t.Fatalf("asked for %d entries of at most %d: %v", want.Asked, want.Size, err)
				}
			}
			vocab, merges := names(trained(t, want.Size, want.Stories...))
			if !slices.Equal(vocab, want.Vocab) {
				t.Errorf("vocabulary differs:\n%q\nwant\n%q", vocab, want.Vocab)
			}
			if !slices.Equal(merges, want.Merges) {
				t.Errorf("merges differ:\n%q\nwant\n%q", merges, want.Merges)
			}
		})
	}
}

func TestSplittingEqualsHuggingFace(t *testing.T) {
	for _, want := range loadReference(t).Encodings {
		var got []string
		for _, w := range words([]byte(want.Text)) {
			got = append(got, string(appendChars(nil, w)))
		}
		if !slices.Equal(got, want.Words) {
			t.Errorf("%q is split %q, want %q", want.Text, got, want.Words)
		}
	}
}

func TestEncodingEqualsHuggingFace(t *testing.T) {
	tok := loadReferenceTokenizer(t)
	again, err := Parse(tok.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range loadReference(t).Encodings {
		for _, tok := range []*Tokenizer{tok, again} {
			got := tok.Encode(nil, []byte(want.Text))
			if !slices.Equal(got, want.IDs) {
				t.Errorf("%q: ids %v, want %v", want.Text, got, want.IDs)
			}
			if back := tok.Decode(nil, got); string(back) != want.Text {
				t.Errorf("%q came back as %q", want.Text, back)
			}
		}
	}
}

func TestJSONIsCanonical(t *testing.T) {
	saved := loadReferenceTokenizer(t) // Hugging Face writes merges as pairs, JSON as strings
	again, err := Parse(saved.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved.JSON(), again.JSON()) || saved.Hash() != again.Hash() {
		t.Error("JSON changes when it is read and written again")
	}
}
