package bpe

import (
	"bytes"
	"context"
	"strings"
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
