package eval

import (
	"io"
	"testing"
)

// A script holds the text that was asked for: different stories of the model's own, or those of a file, in windows that
// fit the context and are whole multiples.
func TestScript(t *testing.T) {
	dir, storiesPath := tinyRunOf(t, wholeModel, nil) // a context of 24
	for _, stories := range []string{"", storiesPath} {
		s, err := OpenScript(t.Context(), dir, "", stories, 50, 8, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tokens, different := 0, map[string]bool{}
		for _, w := range s.Windows {
			if len(w) > 24 || len(w) == 0 || len(w) > 8 && len(w)%8 != 0 || w[0] != s.subject.tokenizer.EOT() {
				t.Errorf("%q: a window of %d tokens: %v", stories, len(w), w)
			}
			if tokens >= 50 {
				t.Errorf("%q: a window after %d tokens", stories, tokens)
			}
			tokens += len(w)
			different[string(s.subject.tokenizer.Decode(nil, w))] = true
		}
		if tokens < 50 || len(different) < 2 || s.Model != "tiny" {
			t.Errorf("%q: %d tokens in %d different windows of %s", stories, tokens, len(different), s.Model)
		}
	}
	if _, err := OpenScript(t.Context(), dir, "", storiesPath+"x", 50, 8, io.Discard); err == nil {
		t.Error("stories that are not there were opened")
	}
}
