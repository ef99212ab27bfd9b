package bpe

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// handMade is the image section of a vocabulary of 258 entries, written by hand from the format page.
func handMade() []byte {
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint32{1, 258, 1, 0, 258} { // kind, entries, merges, end of text, bytes
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint32(b, 0)
	for i := range uint32(257) { // the end-of-text entry is empty, then come the 256 bytes
		b = le.AppendUint32(b, i)
	}
	b = le.AppendUint32(b, 258)
	for _, v := range []uint32{'a' + 1, 'b' + 1, 257} {
		b = le.AppendUint32(b, v)
	}
	for i := range 256 {
		b = append(b, byte(i))
	}
	return append(b, "ab"...)
}

func TestImageRoundTrips(t *testing.T) {
	for _, tok := range []*Tokenizer{loadReferenceTokenizer(t), trained(t, 257)} {
		section := tok.AppendImage([]byte("before"))
		again, err := FromImage(section[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != tok.Hash() {
			t.Error("the image holds another tokenizer")
		}
	}
	tok, err := FromImage(handMade())
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode(nil, []byte("cab")); len(ids) != 2 || ids[0] != 'c'+1 || ids[1] != 257 {
		t.Errorf("cab has the ids %v", ids)
	}
	if string(tok.AppendImage(nil)) != string(handMade()) {
		t.Error("AppendImage differs from the section that was read")
	}
}

func TestFromImageRefusesHostileBytes(t *testing.T) {
	put := func(word int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[4*word:], v)
			return b
		}
	}
	const offsets, triple = 5, 5 + 259
	tests := []struct {
		name    string
		change  func([]byte) []byte
		message string
	}{
		{"empty", func(b []byte) []byte { return nil }, "too few for its header"},
		{"cut short", func(b []byte) []byte { return b[:len(b)-1] }, "makes"},
		{"too long", func(b []byte) []byte { return append(b, 0) }, "makes"},
		{"kind", put(0, 2), "kind 2"},
		{"many entries", put(1, 0xffffffff), "makes"},
		{"many merges", put(2, 0xffffffff), "makes"},
		{"no entries", put(1, 0), "makes"},
		{"end of text outside", put(3, 258), "end-of-text id 258"},
		{"end of text negative", put(3, 0xffffffff), "end-of-text id"},
		{"end of text with bytes", put(3, 1), "end-of-text id 1"},
		{"first offset", put(offsets, 1), "offsets run"},
		{"last offset", put(offsets+258, 257), "offsets run"},
		{"offset outside", put(offsets+4, 0xffffffff), "do not ascend"},
		{"offset back", put(offsets+4, 1), "do not ascend"},
		{"empty entry", put(offsets+4, 4), "no bytes"},
		{"merge of nothing", put(triple, 0), "merge 0 names entry 0"},
		{"merge outside", put(triple, 258), "merge 0 names entry 258"},
		{"merge far outside", put(triple+1, 0xfffffff0), "does not exist"},
		{"merge result", put(triple+2, 5), "merge 0 joins"},
		{"missing byte", func(b []byte) []byte { b[len(b)-3] = 'a'; return b }, "same bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := FromImage(test.change(handMade()))
			if !errors.Is(err, ErrImage) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("want an image error with %q, got: %v", test.message, err)
			}
		})
	}
}

func FuzzFromImage(f *testing.F) {
	f.Add(handMade())
	f.Add(trained(f, 270, ascii).AppendImage(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := FromImage(b)
		if err != nil {
			return
		}
		if string(tok.AppendImage(nil)) != string(b) {
			t.Fatal("written again the section differs")
		}
		if again, err := Parse(tok.JSON()); err != nil || again.Hash() != tok.Hash() {
			t.Fatalf("as JSON it is another tokenizer: %v", err)
		}
	})
}

// A section may say that there is no tokenizer; then nothing else may stand in it.
func TestNoTokenizer(t *testing.T) {
	section := AppendNone([]byte("before"), 7)[len("before"):]
	if tok, err := FromImage(section); tok != nil || !errors.Is(err, ErrNone) || errors.Is(err, ErrImage) {
		t.Errorf("%v, %v", tok, err)
	}
	for _, word := range []int{1, 2, 4, 5} {
		b := append([]byte(nil), section...)
		b[4*word] = 1
		if _, err := FromImage(b); !errors.Is(err, ErrImage) || errors.Is(err, ErrNone) {
			t.Errorf("word %d: %v", word, err)
		}
	}
	for _, b := range [][]byte{section[:23], append(section, 0)} {
		if _, err := FromImage(b); !errors.Is(err, ErrImage) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}
