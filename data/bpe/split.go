package bpe

import "unicode/utf8"

// charClass is what GPT-2's splitting tells apart.
type charClass uint8

const (
	other charClass = iota
	letter
	number
	space
)

type runeRange struct{ first, last rune }

// asciiClass holds the classes of the first 128 characters, which are nearly all of them in English text.
var asciiClass = func() (table [utf8.RuneSelf]charClass) {
	for c := range table {
		table[c] = searchClass(rune(c))
	}
	return table
}()

func within(ranges []runeRange, r rune) bool {
	lo, hi := 0, len(ranges)
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case r < ranges[mid].first:
			hi = mid
		case r > ranges[mid].last:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

func searchClass(r rune) charClass {
	switch {
	case within(letterRanges, r):
		return letter
	case within(numberRanges, r):
		return number
	case within(spaceRanges, r):
		return space
	}
	return other
}

// ClassOf returns what splitting takes a character for: 0 neither of the others, 1 a letter, 2 a number, 3 white space. The
// tables of other encoders are made from it.
func ClassOf(r rune) int { return int(searchClass(r)) }

// classAt returns the class of the character at text[i] and its length in bytes. A byte that is not part of valid
// UTF-8 is one character of class other.
func classAt(text []byte, i int) (charClass, int) {
	if c := text[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRune(text[i:])
	return searchClass(r), n
}

// contraction returns the length of the English contraction that starts with the apostrophe at text[0], or 0.
func contraction(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && text[2] == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && text[2] == 'l' {
			return 3
		}
	}
	return 0
}

// wordEnd returns the end of the word that starts at text[i]; i must be inside text. Words are what the pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// matches one after another: every byte belongs to exactly one word.
func wordEnd(text []byte, i int) int {
	if text[i] == '\'' {
		if n := contraction(text[i:]); n > 0 {
			return i + n
		}
	}
	start := i
	class, n := classAt(text, i)
	if text[i] == ' ' && i+1 < len(text) {
		if c, m := classAt(text, i+1); c != space { // one space leads the word that follows it
			class, n, start = c, m, i+1
		}
	}
	if class != space {
		return runEnd(text, start+n, class)
	}
	// White space before a word leaves its last character to that word: to lead it if it is a space, and else to be
	// a word of its own.
	last, end := i, i+n
	for end < len(text) {
		c, n := classAt(text, end)
		if c != space {
			if last == i {
				return end
			}
			return last
		}
		last, end = end, end+n
	}
	return end
}

// runEnd returns the end of the run of characters of one class from text[i] on.
func runEnd(text []byte, i int, class charClass) int {
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			if asciiClass[c] != class {
				return i
			}
			i++
			continue
		}
		c, n := classAt(text, i)
		if c != class {
			return i
		}
		i += n
	}
	return i
}
