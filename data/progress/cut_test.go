package progress

import (
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"}, {"longer", 5, "long…"}, {"größer", 5, "größ…"}, {"", 5, ""}, {"two\nlines", 20, "two lines"},
		{"x", 0, "x"}, {"xy", 1, "…"},
	} {
		if got := cut(c.text, c.width); got != c.want || utf8.RuneCountInString(got) > max(c.width, 1) {
			t.Errorf("cut(%q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
