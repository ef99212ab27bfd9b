package bpe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// each returns stories in the form that Train takes them.
func each(stories ...string) func(func([]byte) error) error {
	return func(yield func([]byte) error) error {
		for _, s := range stories {
			if err := yield([]byte(s)); err != nil {
				return err
			}
		}
		return nil
	}
}

func trained(t testing.TB, size int, stories ...string) *Tokenizer {
	t.Helper()
	tok, err := Train(context.Background(), each(stories...), size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const ascii = "Once upon a time there was a small fox. The fox had a red hat, and the hat had 3 holes. " +
	"\"Who made the holes?\" said the fox. It wasn't the moth; it was the mouse, who'd been hungry."

func TestEveryByteStringRoundTrips(t *testing.T) {
	tok := trained(t, 300, ascii)
	all := make([]byte, 256)
	for b := range all {
		all[b] = byte(b)
	}
	texts := []string{"", " ", ascii, string(all), "naïve café 日本語 🙂", "\xff\xfe\x80 a\xc3", "\xed\xa0\x80", EndOfText,
		"a\r\n\r\n  b \t", strings.Repeat("\xe2\x82", 100), strings.Repeat(ascii, 3)}
	for _, text := range texts {
		ids := tok.Encode(nil, []byte(text))
		if got := tok.Decode(nil, ids); !bytes.Equal(got, []byte(text)) {
			t.Errorf("%q came back as %q", text, got)
		}
		for _, id := range ids {
			if id == tok.EOT() {
				t.Errorf("%q: Encode made an end-of-text token", text)
			}
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	toks := []*Tokenizer{trained(f, 257), trained(f, 310, ascii), loadReferenceTokenizer(f)}
	f.Add([]byte(ascii))
	f.Add([]byte("\x00\xff é 日本\r\n\t  "))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, tok := range toks {
			ids := tok.Encode(nil, text)
			if got := tok.Decode(nil, ids); !bytes.Equal(got, text) {
				t.Fatalf("%q came back as %q", text, got)
			}
			if len(text) > 300 {
				continue
			}
			if want := slowEncode(tok, text); !slices.Equal(ids, want) {
				t.Fatalf("%q: ids %v, want %v", text, ids, want)
			}
		}
	})
}

// slowEncode merges as the definition says: the pair of lowest rank, leftmost first, until none is left.
func slowEncode(tok *Tokenizer, text []byte) (ids []int32) {
	for _, w := range words(text) {
		var word []int32
		for _, b := range w {
			word = append(word, tok.byteID[b])
		}
		for {
			best, bestAt := int32(len(tok.merges)), -1
			for i := range len(word) - 1 {
				if rank, ok := tok.ranks[pairKey(word[i], word[i+1])]; ok && rank < best {
					best, bestAt = rank, i
				}
			}
			if bestAt < 0 {
				break
			}
			word[bestAt] = tok.merges[best].result
			word = slices.Delete(word, bestAt+1, bestAt+2)
		}
		ids = append(ids, word...)
	}
	return ids
}

func TestDecodeIgnoresIDsOutsideTheVocabulary(t *testing.T) {
	tok := trained(t, 257)
	if got := tok.Decode(nil, []int32{-1, tok.EOT(), 257, 1 << 30}); len(got) != 0 {
		t.Errorf("ids without bytes decode to %q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := loadReferenceTokenizer(t)
	stories := loadReference(t).Trainings[0].Stories
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, s := range stories {
				if got := tok.Decode(nil, tok.Encode(nil, []byte(s))); string(got) != s {
					t.Errorf("%q came back as %q", s, got)
				}
			}
		}()
	}
	wg.Wait()
}

func TestManyWordsOverflowTheCache(t *testing.T) {
	tok := loadReferenceTokenizer(t)
	var text []byte
	for i := range 3 * maxSlots {
		text = fmt.Appendf(text, " w%dx", i) // two words each, the number always new
	}
	first := tok.Encode(nil, text)
	if got := tok.Decode(nil, first); !bytes.Equal(got, text) {
		t.Fatal("the text does not come back")
	}
	if again := tok.Encode(nil, text); !slices.Equal(first, again) {
		t.Fatal("the second time the ids are others")
	}
	e := newEncoder(tok)
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		e.word(nil, text[i:end])
		i = end
	}
	if len(e.cache.slots) != maxSlots || len(e.cache.words) > maxSlots*maxCachedWord {
		t.Errorf("the cache has %d slots and %d bytes of words", len(e.cache.slots), len(e.cache.words))
	}
}

func TestEncodingKnownWordsAllocatesNothing(t *testing.T) {
	tok := loadReferenceTokenizer(t)
	text := []byte(strings.Join(loadReference(t).Trainings[0].Stories, "\n"))
	e := newEncoder(tok)
	ids := make([]int32, 0, len(text))
	encode := func() {
		ids = ids[:0]
		for i := 0; i < len(text); {
			end := wordEnd(text, i)
			ids = e.word(ids, text[i:end])
			i = end
		}
	}
	encode()
	if n := testing.AllocsPerRun(5, encode); n != 0 {
		t.Errorf("%v allocations per text", n)
	}
}

// A quadratic trainer or encoder would take minutes here.
func TestOneLongWord(t *testing.T) {
	for _, unit := range []string{"a", "ab", "abcdefghijklmnopqrstuvwxyz", "é"} {
		word := strings.Repeat(unit, 1<<18/len(unit)) // 256 KB
		tok := trained(t, 262, word)
		ids := tok.Encode(nil, []byte(word))
		if got := tok.Decode(nil, ids); string(got) != word {
			t.Errorf("the repeated %q does not come back", unit)
		}
	}
}

func TestTrainErrors(t *testing.T) {
	ctx := context.Background()
	if _, err := Train(ctx, each(ascii), 256); err == nil || !strings.Contains(err.Error(), "257") {
		t.Errorf("256 entries: %v", err)
	}
	var short *SizeError
	if _, err := Train(ctx, each(), 258); !errors.As(err, &short) || short.Reachable != 257 {
		t.Errorf("no text: %v", err)
	}
	broken := errors.New("disk on fire")
	if _, err := Train(ctx, func(func([]byte) error) error { return broken }, 300); !errors.Is(err, broken) {
		t.Errorf("a corpus that fails: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Train(cancelled, each(ascii), 300); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func TestSaveLeavesNothingBehindWhenItFails(t *testing.T) {
	dir := t.TempDir()
	tok := trained(t, 258, "aa")
	if err := tok.Save(filepath.Join(dir, "t.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(filepath.Join(dir, "taken")); err == nil {
		t.Error("saved over a folder")
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if again, err := Load(filepath.Join(dir, "t.json")); err != nil || again.Hash() != tok.Hash() {
		t.Errorf("what was saved is not what was loaded: %v", err)
	}
}
