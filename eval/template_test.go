package eval

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
)

func TestParseTemplate(t *testing.T) {
	for text, want := range map[string]string{ // literals and names, or a part of the error
		"":                      "[] []",
		"no hole":               "[no hole] []",
		"{{}}":                  "[ ] [1]",
		"{{a}}":                 "[ ] [a]",
		"a{{x}}b{{}}c":          "[a b c] [x 2]",
		`{"n": {{n-1}}}`:        `[{"n":  }] [n-1]`,
		`{"a": {"b": "{{b}}"}}`: `[{"a": {"b": " "}}] [b]`,
		"{{größe}} {{日_2}}":     "[   ] [größe 日_2]",
		"a }} {{x}}":            "[a }}  ] [x]",
		"{{a}}{{b}}":            `"a" and "b" touch`,
		"x{{}}{{}}":             `"1" and "" touch`,
		"{{a}} {{a}}":           `two holes are called "a"`,
		"{{}} {{1}}":            `two holes are called "1"`,
		"abc {{my name}}":       "{{ at byte 4 starts no hole",
		"{{a}} é {{b":           "{{ at byte 9 starts no hole",
		"{{{a}}}":               "{{ at byte 0 starts no hole",
	} {
		tpl, err := ParseTemplate(text)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
			continue
		}
		if got := fmt.Sprintf("%s %v", tpl.literals, tpl.holes); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func parsed(t *testing.T, text string) *Template {
	t.Helper()
	tpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// scripted is an engine that draws what it is told to at temperature 0, and keeps what it is fed.
type scripted struct {
	script []int32
	calls  [][]int32
}

func (s *scripted) ForwardLast(ids []int32, logits []float32) error {
	s.calls = append(s.calls, slices.Clone(ids))
	clear(logits)
	if len(s.script) == 0 {
		return fmt.Errorf("a token more was drawn than the script has")
	}
	logits[s.script[0]] = 1
	s.script = s.script[1:]
	return nil
}

func (s *scripted) Position() int                    { return len(slices.Concat(s.calls...)) }
func (s *scripted) Forward([]int32, []float32) error { return fmt.Errorf("not asked for") }
func (s *scripted) ForwardBest([]int32, engine.Search, int) ([]engine.TokenLogit, error) {
	return nil, fmt.Errorf("not asked for")
}
func (s *scripted) Reset()                        {}
func (s *scripted) Reads() (*engine.Reads, error) { return &engine.Reads{}, nil }
func (s *scripted) Close() error                  { return nil }

// The model of these tests draws the tokens given, one a word; "|" is end-of-text. What it is fed then, call by call, is
// written with "|" for end-of-text and "/" between tokens.
func TestTemplateIsFed(t *testing.T) {
	tok := wordTokenizer(t)
	for _, c := range []struct {
		name, template, prompt string
		drawn                  []string
		most                   int
		text                   string
		holes, ended           string
		fed                    []string
	}{
		{"no hole", "a b", "", nil, 9, "a b", "map[]", "map[]", nil},
		{"empty", "", "", nil, 9, "", "map[]", "map[]", nil},
		{"only a hole", "{{x}}", "", []string{"cat", " b", "|"}, 9, "cat b", "map[x:cat b]", "map[x:end-of-text]", []string{"|", "cat", " b"}},
		{"only a hole, limited", "{{x}}", "", []string{"cat", " b"}, 2, "cat b", "map[x:cat b]", "map[x:tokens]", []string{"|", "cat"}},
		{"cut by a character", `"{{x}}", a "{{y}}"`, "", []string{"cat", `",`, "b", `"`}, 9, `"cat", a "b"`, "map[x:cat y:b]",
			"map[x:text y:text]", []string{`|/"`, "cat", `",/ a/ /"`, "b"}},
		{"the text before the character is kept", "{{x}}!{{y}}", "", []string{"b", "cat!", "a", "|"}, 9, "bcat!a", "map[x:bcat y:a]",
			"map[x:text y:end-of-text]", []string{"|", "b", "cat/!", "a"}},
		{"a token that is cut is tokenised anew", "{{x}}a{{y}}", "", []string{"cat", "b", "|"}, 9, "cab", "map[x:c y:b]",
			"map[x:text y:end-of-text]", []string{"|", "ca", "b"}},
		{"a space leads the word in the hole", "a {{x}} b", "", []string{" cat", " b"}, 9, "a cat b", "map[x:cat]", "map[x:text]",
			[]string{"|/a", " cat"}},
		{"the space of a cut token", "a {{x}}! b{{y}}", "", []string{" cat!", "|"}, 9, "a cat! b", "map[x:cat y:]",
			"map[x:text y:end-of-text]", []string{"|/a", " cat/!/ b"}},
		{"end-of-text fills nothing", "a{{x}}b{{y}}", "", []string{"|", "cat", "|"}, 9, "abcat", "map[x: y:cat]",
			"map[x:end-of-text y:end-of-text]", []string{"|/a", "b", "cat"}},
		{"nothing to feed between two holes", "{{x}} {{y}}!", "", []string{"cat", " b", " a", "!"}, 9, "cat b a!", "map[x:cat y:b a]",
			"map[x:text y:text]", []string{"|", "cat", " b", " a"}},
		{"limits", "{{x}} a {{y}} b", "", []string{"cat", " b", "!"}, 1, "cat a b b", "map[x:cat y:b]", "map[x:tokens y:tokens]",
			[]string{"|", "cat/ a"}},
		{"a prompt", "{{x}}!", "b a", []string{"cat", "!"}, 9, "cat!", "map[x:cat]", "map[x:text]", []string{"|/b/ a", "cat"}},
		{"a prompt joins the first word", "t{{x}}!", "b ca", []string{"cat", "!"}, 9, "tcat!", "map[x:cat]", "map[x:text]", []string{"|/b/ cat", "cat"}},
		{"a character of two tokens", "{{x}}é{{y}}", "", []string{"a", "\xc3", "\xa9", "b", "|"}, 9, "aéb", "map[x:a y:b]",
			"map[x:text y:end-of-text]", []string{"|", "a", "\xc3", "\xa9", "b"}},
		{"another character with the same first byte", "{{x}}é{{y}}", "", []string{"\xc3", "\xa8", "|", "|"}, 9, "èé", "map[x:è y:]",
			"map[x:end-of-text y:end-of-text]", []string{"|", "\xc3", "\xa8", "\xc3/\xa9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scripted{}
			for _, word := range c.drawn {
				s.script = append(s.script, wordID(t, tok, word))
			}
			f, err := parsed(t, c.template).fill(tok, c.prompt, c.most, 100)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			w := &writer{run: s, tokenizer: tok, context: 100, logits: make([]float32, tok.Size()), ids: []int32{tok.EOT()},
				tail: []byte(c.prompt), stream: bpe.NewStream(tok), out: &out, opt: SampleOptions{TopK: 3}}
			if err := w.write(context.Background(), f); err != nil {
				t.Fatal(err)
			}
			if string(w.text) != c.text || out.String() != c.text {
				t.Errorf("wrote %q, printed %q, want %q", w.text, out.String(), c.text)
			}
			if got := fmt.Sprint(f.filled); got != c.holes {
				t.Errorf("holes %s, want %s", got, c.holes)
			}
			if got := fmt.Sprint(f.ended); got != c.ended {
				t.Errorf("they ended with %s, want %s", got, c.ended)
			}
			var fed []string
			for _, call := range s.calls {
				var words []string
				for _, id := range call {
					if id == tok.EOT() {
						words = append(words, "|")
					} else {
						words = append(words, string(tok.Bytes(id)))
					}
				}
				fed = append(fed, strings.Join(words, "/"))
			}
			if !slices.Equal(fed, c.fed) {
				t.Errorf("fed %q, want %q", fed, c.fed)
			}
		})
	}
}

// wordTokenizer knows the bytes and a few words, some of which a text is never cut into.
func wordTokenizer(t *testing.T) *bpe.Tokenizer {
	t.Helper()
	entries := []string{""} // end-of-text
	for b := range 256 {
		entries = append(entries, string([]byte{byte(b)}))
	}
	entries = append(entries, "cat!", " cat!", "zzz!", " zzz!", " zz\xc3")
	var merges []uint32
	for _, parts := range [][2]string{{"c", "a"}, {"ca", "t"}, {" ", "cat"}, {" ", "a"}, {" ", "b"}, {"\"", ","}} {
		merges = append(merges, uint32(slices.Index(entries, parts[0])), uint32(slices.Index(entries, parts[1])), uint32(len(entries)))
		entries = append(entries, parts[0]+parts[1])
	}
	var tokn []byte
	word := func(v ...uint32) {
		for _, x := range v {
			tokn = binary.LittleEndian.AppendUint32(tokn, x)
		}
	}
	text := strings.Join(entries, "")
	word(1, uint32(len(entries)), uint32(len(merges)/3), 0, uint32(len(text)))
	offset := 0
	for _, e := range append(entries, "") {
		word(uint32(offset))
		offset += len(e)
	}
	word(merges...)
	tok, err := bpe.FromImage(append(tokn, text...))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func wordID(t *testing.T, tok *bpe.Tokenizer, word string) int32 {
	t.Helper()
	if word == "|" {
		return tok.EOT()
	}
	for id := range int32(tok.Size()) {
		if string(tok.Bytes(id)) == word {
			return id
		}
	}
	t.Fatalf("no token is %q", word)
	return 0
}

// drawCounting counts the tokens drawn for each hole.
type drawCounting struct {
	*filling
	draws []int
}

func (d *drawCounting) Keep(text, token []byte, room int) int {
	d.draws[d.at]++
	return d.filling.Keep(text, token, room)
}

// However the model fills the holes, the text that comes out has room in the context, but perhaps for the last token drawn,
// and a token is drawn for every hole.
func TestTemplateLeavesRoom(t *testing.T) {
	tok := wordTokenizer(t)
	rng := rand.New(rand.NewPCG(5, 6))
	words := []string{"cat", " b", "cat!", " cat!", "zzz!", " zzz!", " zz\xc3", "\xc3", "\xa9", "!", "|", " a", "\","}
	pieces := []string{"!", " a", "\xc3\xa9", " b a ", "cat! ", "é!", "\",", "xyz"}
	ends := map[string]int{}
	for range 20000 {
		text, holes := pieces[rng.IntN(len(pieces))], 1+rng.IntN(4)
		for i := range holes {
			text += "{{}}"
			if i+1 < holes || rng.IntN(2) == 0 {
				text += pieces[rng.IntN(len(pieces))]
			}
		}
		tpl, limit := parsed(t, text), 4+rng.IntN(24)
		f, err := tpl.fill(tok, "", 1+rng.IntN(6), limit)
		if err != nil {
			continue
		}
		s := &scripted{}
		for range 40 {
			s.script = append(s.script, wordID(t, tok, words[rng.IntN(len(words))]))
		}
		w := &writer{run: s, tokenizer: tok, context: limit, logits: make([]float32, tok.Size()), ids: []int32{tok.EOT()},
			stream: bpe.NewStream(tok), out: io.Discard, opt: SampleOptions{TopK: 3}}
		watched := &drawCounting{filling: f, draws: make([]int, len(tpl.holes))}
		if err := w.write(context.Background(), watched); err != nil {
			t.Fatalf("%q in %d: %v", text, limit, err)
		}
		if slices.Contains(watched.draws, 0) {
			t.Fatalf("%q in %d: wrote %q; draws for the holes: %v", text, limit, w.text, watched.draws)
		}
		want := string(tpl.literals[0])
		for i, name := range tpl.holes {
			want += f.filled[name] + string(tpl.literals[i+1])
			ends[f.ended[name]]++
		}
		last := len(tpl.holes)
		least := 0
		if len(tpl.literals[last]) == 0 {
			least = -1
		}
		if string(w.text) != want || w.room() < least {
			t.Fatalf("%q in %d: wrote %q, want %q; room for %d", text, limit, w.text, want, w.room())
		}
	}
	for _, why := range []string{holeText, holeEnd, holeTokens, holeContext} {
		if ends[why] < 100 {
			t.Errorf("holes ended with %v", ends)
		}
	}
}
