package bpe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStreamHoldsBackHalfCharacters(t *testing.T) {
	tok := trained(t, 257) // every byte is a token
	push := func(text string) (out []string) {
		s := NewStream(tok)
		for _, id := range tok.Encode(nil, []byte(text)) {
			out = append(out, s.Push(id))
		}
		return append(out, s.Flush())
	}
	for text, want := range map[string]string{ // what each push returns, and then the flush
		"aé":         "a||é|",
		"日":          "||日|",
		"🙂!":         "|||🙂|!|",
		"é\xc3":      "|é||\xc3",      // the end is missing
		"\xe3\x80":   "||\xe3\x80",    // two of three
		"\xc3a":      "|\xc3a|",       // no continuation comes
		"\xff\x80":   "\xff|\x80|",    // never the start of a character
		"\xe3\x80é":  "||\xe3\x80|é|", // another character follows
		"\xf0\x9f日":  "||\xf0\x9f||日|",
		"\xed\xa0.":  "|\xed\xa0|.|",   // a surrogate is no character
		"\xf4\x90zz": "|\xf4\x90|z|z|", // nor is anything above U+10FFFF
	} {
		if got := strings.Join(push(text), "|"); got != want {
			t.Errorf("%q comes out as %q, want %q", text, got, want)
		}
	}
}

func FuzzStream(f *testing.F) {
	tok := trained(f, 300, ascii+"日本語日本語 ééé 🙂🙂🙂")
	f.Add([]byte("日本 é🙂"))
	f.Add([]byte("\xe3\x81 \xf0\x9f\x99"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := NewStream(tok)
		var all strings.Builder
		for _, id := range tok.Encode(nil, text) {
			part := s.Push(id)
			if utf8.Valid(text) && !utf8.ValidString(part) {
				t.Fatalf("%q: %q comes out torn", text, part)
			}
			all.WriteString(part)
		}
		all.WriteString(s.Flush())
		if all.String() != string(text) {
			t.Fatalf("%q came out as %q", text, all.String())
		}
	})
}
