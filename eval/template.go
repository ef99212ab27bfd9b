package eval

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chiplm/chiplm/data/bpe"
)

// Template is a text with holes for a model to fill.
type Template struct {
	literals [][]byte // one more than holes: before, between and after them; only the first and the last may be empty
	holes    []string // names, all different
}

const (
	holeOpen  = "{{"
	holeClose = "}}"
)

// ParseTemplate reads a template. A hole is {{name}} or {{}}, which is named by its number, from 1 on. A name is letters,
// digits, _ and -. A single brace is plain text, and so is }} outside of a hole.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{}
	seen := map[string]bool{}
	for rest, at := text, 0; ; {
		literal, after, found := strings.Cut(rest, holeOpen)
		t.literals = append(t.literals, []byte(literal))
		if !found {
			return t, nil
		}
		at += len(literal)
		name, next, closed := strings.Cut(after, holeClose)
		if !closed || strings.ContainsFunc(name, notInName) {
			return nil, fmt.Errorf("template: %s at byte %d starts no hole: write {{name}} with letters, digits, _ and - alone, or {{}}", holeOpen, at)
		}
		if literal == "" && len(t.holes) > 0 {
			return nil, fmt.Errorf("template: the holes %q and %q touch: put text between them, which ends the first", t.holes[len(t.holes)-1], name)
		}
		if name == "" {
			name = strconv.Itoa(len(t.holes) + 1)
		}
		if seen[name] {
			return nil, fmt.Errorf("template: two holes are called %q: give each its own name ({{}} is named by its number)", name)
		}
		seen[name] = true
		t.holes = append(t.holes, name)
		at += len(rest) - len(literal) - len(next)
		rest = next
	}
}

func notInName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
}

// filling is a template being filled. A hole ends before the first character of the text behind it, with end-of-text,
// after so many tokens, or when the context would no longer hold the rest of the template.
//
// A space before a hole is not given but left to the hole's first token, which has to start with one: tokens of words
// start with their space, and the space alone is a token that seldom stands before a word.
type filling struct {
	*Template
	tokenizer *bpe.Tokenizer
	most      int     // tokens a hole
	costs     []int   // tokens of each literal by itself
	spaced    []int32 // tokens that start with a space

	at         int    // the literal that comes next, or the hole that is open
	open       bool   // the model is filling the hole
	done       bool   // the hole has ended, at end
	spaceOwed  bool   // the space before the hole is still to come
	drawn      int    // tokens for the hole
	start, end int    // of the hole in the text
	owed       []byte // what is left of the literal that comes next
	filled     map[string]string
	ended      map[string]string // why each hole did
}

// The ways in which a hole ends.
const (
	holeText    = "text" // the text behind it began
	holeEnd     = "end-of-text"
	holeTokens  = "tokens"
	holeContext = "context"
)

// fill starts to fill a template after a prompt. Refused is a template that the context cannot hold with a token for each
// hole.
func (t *Template) fill(tokenizer *bpe.Tokenizer, prompt string, most, context int) (*filling, error) {
	f := &filling{Template: t, tokenizer: tokenizer, most: most, owed: t.literals[0], filled: map[string]string{},
		ended: map[string]string{}}
	need := 1 + len(t.holes) // end-of-text leads
	for i, literal := range t.literals {
		if i == 0 {
			literal = append([]byte(prompt), literal...)
		}
		cost := len(tokenizer.Encode(nil, literal))
		f.costs = append(f.costs, cost)
		need += cost
	}
	if need > context {
		return nil, fmt.Errorf("the template takes %d tokens or more with its leading end-of-text, and the context holds %d; shorten it", need, context)
	}
	for id := range int32(tokenizer.Size()) {
		if bytes.HasPrefix(tokenizer.Bytes(id), []byte(" ")) {
			f.spaced = append(f.spaced, id)
		}
	}
	return f, nil
}

// Next gives the literals, and lets the model fill the holes.
func (f *filling) Next(text []byte, room int) Move {
	if f.open && !f.done && f.full(room) {
		f.finish(len(text), holeContext)
	}
	if f.open && f.done {
		f.leave(text)
	}
	if !f.open {
		owed := f.owed
		f.owed = nil
		if f.at == len(f.holes) {
			return Move{Text: owed, End: len(owed) == 0}
		}
		owed, f.spaceOwed = bytes.CutSuffix(owed, []byte(" "))
		f.open, f.done, f.drawn, f.start = true, false, 0, len(text)+len(owed)
		if len(owed) > 0 {
			return Move{Text: owed}
		}
		return f.Next(text, room)
	}
	if f.spaceOwed {
		return Move{Allowed: f.spaced}
	}
	return Move{}
}

// full says whether the context holds no further token for the hole beside the rest of the template.
func (f *filling) full(room int) bool {
	if f.last() {
		return room < 0
	}
	return room < 1+f.rest()
}

// last says whether nothing follows the open hole.
func (f *filling) last() bool { return f.at+1 == len(f.holes) && len(f.literals[f.at+1]) == 0 }

// rest is the number of tokens of the template behind the open hole, with one for each later hole.
func (f *filling) rest() int {
	n := len(f.holes) - f.at - 1
	for _, cost := range f.costs[f.at+1:] {
		n += cost
	}
	return n
}

// finish ends the hole before a place in the text.
func (f *filling) finish(end int, why string) {
	f.done, f.end = true, end
	f.ended[f.holes[f.at]] = why
}

// leave closes the hole. What of the next literal stands in the text already is not owed any more.
func (f *filling) leave(text []byte) {
	next := f.literals[f.at+1]
	f.filled[f.holes[f.at]] = string(text[f.start:f.end])
	f.owed = next[len(text)-f.end:]
	if f.spaceOwed {
		f.owed = append([]byte(" "), f.owed...)
	}
	f.at++
	f.open = false
}

// Keep takes a token into the hole, or as much of it as stands before the text behind the hole.
func (f *filling) Keep(text, token []byte, room int) int {
	if len(token) == 0 {
		f.finish(len(text), holeEnd)
		return 0
	}
	f.drawn++
	spaced := f.spaceOwed
	if spaced {
		f.spaceOwed = false
		f.start++
	}
	if f.drawn == f.most {
		f.finish(len(text)+len(token), holeTokens)
	}
	next := f.literals[f.at+1]
	if len(next) == 0 {
		return len(token)
	}
	_, size := utf8.DecodeRune(next)
	whole := append(text[:len(text):len(text)], token...)
	from := max(f.start, len(text)-size+1)
	found := bytes.Index(whole[from:], next[:size])
	if found < 0 {
		return len(token)
	}
	end := from + found
	f.finish(end, holeText)
	if end <= len(text) {
		return 0 // the token before holds the first bytes of the character
	}
	again := append(whole[len(text):end:end], next...)
	if len(f.tokenizer.Encode(nil, again))+f.rest()-f.costs[f.at+1] > room { // the parts of a token may be many tokens
		f.finish(len(text), holeContext)
		if f.spaceOwed = spaced; spaced {
			f.start--
		}
		return 0
	}
	return end - len(text)
}
