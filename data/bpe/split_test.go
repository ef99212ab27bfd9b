package bpe

import (
	"regexp"
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

// words splits a whole text.
func words(text []byte) (list [][]byte) {
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		list = append(list, text[i:end])
		i = end
	}
	return list
}

// The pattern without its two alternatives for white space, of which one needs a look-ahead that Go's regexp lacks.
// Go's \s is ASCII, hence the spelt-out class.
const whiteSpace = `\s\x0b\x{85}\p{Z}`

var (
	notSpaceRE = regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^` + whiteSpace + `\p{L}\p{N}]+)`)
	spaceRE    = regexp.MustCompile(`^[` + whiteSpace + `]+`)
)

// slowWords splits with regular expressions.
func slowWords(text []byte) (list [][]byte) {
	for len(text) > 0 {
		n := len(notSpaceRE.Find(text))
		if n == 0 {
			n = len(spaceRE.Find(text))
			_, last := utf8.DecodeLastRune(text[:n])
			if n < len(text) && n > last { // \s+(?!\S) gives the last one back
				n -= last
			}
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

// goClass is the class of r in the tables of the Go release that runs the test.
func goClass(r rune) charClass {
	switch {
	case unicode.Is(unicode.L, r):
		return letter
	case unicode.Is(unicode.N, r):
		return number
	case unicode.Is(unicode.White_Space, r):
		return space
	}
	return other
}

// sameInGo says whether the two tables agree on all characters of a text. They differ on characters that one of the
// two versions of Unicode does not have yet.
func sameInGo(text []byte) bool {
	for _, r := range string(text) {
		if searchClass(r) != goClass(r) {
			return false
		}
	}
	return true
}

func TestClassesDifferFromGoOnlyInNewCharacters(t *testing.T) {
	assigned := []*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z,
		unicode.Cc, unicode.Cf, unicode.Co} // unicode.C holds the unassigned ones too
	for r := rune(0); r <= unicode.MaxRune; r++ {
		ours, theirs := searchClass(r), goClass(r)
		if ours == theirs || !unicode.In(r, assigned...) {
			continue
		}
		if ours == other && unicode.Version > "16" {
			continue // a newer Unicode has given it a class
		}
		t.Errorf("%U has class %d, in Go's tables (Unicode %s) %d", r, ours, unicode.Version, theirs)
	}
}

func equalWords(a, b [][]byte) bool {
	return slices.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}

func TestInvalidBytesAreCharactersOfTheirOwn(t *testing.T) {
	for text, want := range map[string][]string{
		"a\xffb":             {"a", "\xff", "b"},
		" \xff\xfe!":         {" \xff\xfe!"},
		"  \x80x":            {" ", " \x80", "x"},
		"\xed\xa0\x80 a":     {"\xed\xa0\x80", " a"},
		"é\xc3":              {"é", "\xc3"},
		"\xe3\x80":           {"\xe3\x80"},
		" \xe3\x80\x80 \xe3": {" \u3000", " \xe3"},
	} {
		var expect [][]byte
		for _, w := range want {
			expect = append(expect, []byte(w))
		}
		if got := words([]byte(text)); !equalWords(got, expect) {
			t.Errorf("%q is split %q, want %q", text, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, e := range loadReference(f).Encodings {
		if len(e.Text) < 80 {
			f.Add([]byte(e.Text))
		}
	}
	f.Add([]byte("a\xff 'll \xe3\x80\x80\xe3 \xc2\x85\xc2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := words(text)
		var joined []byte
		for _, w := range got {
			joined = append(joined, w...)
		}
		if string(joined) != string(text) {
			t.Fatalf("the words of %q do not add up: %q", text, got)
		}
		if !sameInGo(text) {
			t.Skip("a character that Go's tables class differently")
		}
		if want := slowWords(text); !equalWords(got, want) {
			t.Fatalf("%q is split %q, want %q", text, got, want)
		}
	})
}
