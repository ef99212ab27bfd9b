package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine"
)

// filledRun is how a run of a template came out.
type filledRun struct {
	text, holes string
	fed         []int32
	saw         map[int]bool // positions whose logits were there
	digest      engine.Digest
	passes      int64
	drawn       int
}

// fillWith fills a template with the engine.
func fillWith(t *testing.T, s *subject, template string, opt SampleOptions) filledRun {
	t.Helper()
	e, err := engine.New(s.image, engine.Options{Batch: opt.Batch})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := &listening{Engine: e}
	f, err := parsed(t, template).fill(s.tokenizer, opt.Prompt, opt.Hole, s.config.ContextLength)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(r, s, opt, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	out := filledRun{saw: map[int]bool{}, digest: engine.NewDigest()}
	w.saw = func(position int, last int32) {
		out.saw[position] = true
		out.digest = out.digest.Add(position, last, w.logits)
	}
	if err := w.write(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	reads, err := e.Reads()
	if err != nil {
		t.Fatal(err)
	}
	out.text, out.holes, out.fed, out.passes, out.drawn = string(w.text), fmt.Sprint(f.filled), r.fed, reads.Blocks, w.drawn

	// The text is the template with the holes filled, and what was fed is its beginning.
	text, at := "", 0
	for i, literal := range f.literals {
		text += string(literal)
		if i < len(f.holes) {
			hole := f.filled[f.holes[i]]
			if next := f.literals[i+1]; len(next) > 0 && strings.Contains(hole, string([]rune(string(next))[:1])) {
				t.Errorf("%q: the hole %q holds the start of %q", template, hole, next)
			}
			text += hole
		}
	}
	if text != out.text {
		t.Errorf("%q with %s is %q, written was %q", template, out.holes, text, out.text)
	}
	for _, id := range out.fed[min(1, len(out.fed)):] {
		token := string(s.tokenizer.Bytes(id))
		if !strings.HasPrefix((opt.Prompt + text)[at:], token) {
			t.Fatalf("%q: %q was fed at byte %d of %q", template, token, at, opt.Prompt+text)
		}
		at += len(token)
	}
	return out
}

// Whether what is known is fed in one block or token by token changes no bit of any logits, and so no choice.
func TestTemplateAsTokenByToken(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	templates := []string{"{{x}}", "Tom {{x}} red ball", "He {{}}a{{}}e{{}}t", `{"n": "{{n}}"}`, "zw\u00f6lf {{x}} \u00e9 {{y}}", "{{x}} {{y}} {{z}}", "Tom"}
	holes := map[string]bool{}
	for _, template := range templates {
		for seed := range uint64(12) {
			opt := SampleOptions{Hole: 4, Temperature: float64(seed) / 4, TopK: 300, Seed: seed, Batch: 32, Prompt: []string{"", "Anna"}[seed%2]}
			one := fillWith(t, s, template, opt)
			holes[one.holes] = true
			if int(one.passes) != len(one.saw) {
				t.Errorf("%q: %d passes for %d draws after something new", template, one.passes, len(one.saw))
			}
			opt.Batch = 1
			single := fillWith(t, s, template, opt)
			if single.passes != int64(len(single.fed)) || single.passes < one.passes {
				t.Errorf("%q: %d passes token by token, %d in blocks", template, single.passes, one.passes)
			}
			single.passes = one.passes
			if fmt.Sprint(single) != fmt.Sprint(one) {
				t.Errorf("%q: in blocks %v, token by token %v", template, one, single)
			}

			// and again by hand, every neuron read
			e, err := engine.New(s.image, engine.Options{Batch: 1, Dense: true})
			if err != nil {
				t.Fatal(err)
			}
			digest, logits := engine.NewDigest(), make([]float32, s.config.VocabSize)
			for i, id := range one.fed {
				if err := e.ForwardLast([]int32{id}, logits); err != nil {
					t.Fatal(err)
				}
				if one.saw[i] {
					digest = digest.Add(i, id, logits)
				}
			}
			if digest != one.digest {
				t.Errorf("%q: digest %#x, by hand %#x", template, one.digest, digest)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(holes) < 5*len(templates) {
		t.Errorf("the holes were filled in %d ways: the model says always the same", len(holes))
	}
}

// A template of one hole is a story that is so long.
func TestHoleAsStory(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for seed := range uint64(10) {
		opt := SampleOptions{Prompt: "Tom", Temperature: 1.5, TopK: 300, Seed: seed, Batch: 8, Tokens: 6, Hole: 6}
		story, err := sample(context.Background(), s, opt, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		opt.Template = parsed(t, "{{}}")
		form, err := sample(context.Background(), s, opt, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if form.Text != story.Text || form.Text != form.Holes["1"] || form.Tokens != story.Tokens || form.Bytes != story.Bytes || form.Ended["1"] != story.Stopped {
			t.Errorf("story %+v, hole %+v", story, form)
		}
	}
}

// Whatever the context, a template that fits comes out whole, and one that does not is refused before anything runs.
func TestTemplateInContext(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil) // a context of 24
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ends := map[string]int{}
	for n := range 30 {
		tpl := strings.Repeat("x", n) + "{{a}}!{{b}} e{{c}}"
		need := 1 + n + 1 + len(s.tokenizer.Encode(nil, []byte(" e"))) + 3
		for seed := range uint64(8) {
			opt := SampleOptions{Template: parsed(t, tpl), Hole: 9, Temperature: 3, TopK: 300, Seed: seed, Batch: 8}
			text, err := sample(context.Background(), s, opt, io.Discard)
			if (err != nil) != (need > s.config.ContextLength) {
				t.Fatalf("%q of %d tokens at least: %v", tpl, need, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), fmt.Sprintf("takes %d tokens", need)) {
					t.Error(err)
				}
				continue
			}
			if want := tpl[:n] + text.Holes["a"] + "!" + text.Holes["b"] + " e" + text.Holes["c"]; text.Text != want || text.Fed > 24 {
				t.Errorf("%+v, want %q", text, want)
			}
			for _, why := range text.Ended {
				ends[why]++
			}
		}
	}
	for _, why := range []string{holeText, holeTokens, holeContext} {
		if ends[why] == 0 {
			t.Errorf("no hole ended with %s: %v", why, ends)
		}
	}
}

// It makes no difference where the prompt ends and the template begins, be it inside of a word.
func TestPromptJoinsTemplate(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const text = "Tom had a "
	opt := SampleOptions{Hole: 4, Temperature: 1, TopK: 300, Seed: 3, Batch: 8}
	want := fillWith(t, s, text+"{{x}}.", opt)
	for i := range len(text) {
		opt.Prompt = text[:i]
		if got := fillWith(t, s, text[i:]+"{{x}}.", opt); !slices.Equal(got.fed, want.fed) || got.holes != want.holes {
			t.Errorf("prompt %q: fed %v, want %v", opt.Prompt, got.fed, want.fed)
		}
	}
}

// digitsThenDash is a grammar: a digit, a dash, and again; the dash is one token and never drawn.
type digitsThenDash struct {
	digits, dash []int32
	most         int
}

func (g *digitsThenDash) Next(text []byte, _ int) Move {
	switch {
	case len(text) == g.most:
		return Move{End: true}
	case len(text)%2 == 1:
		return Move{Allowed: g.dash}
	}
	return Move{Allowed: g.digits}
}

func (g *digitsThenDash) Keep(_, token []byte, _ int) int { return len(token) }

// A constraint may allow some tokens only; the one token that is left is fed with its neighbour.
func TestGrammar(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	g := &digitsThenDash{most: 12}
	for id := range int32(s.tokenizer.Size()) {
		if b := s.tokenizer.Bytes(id); len(b) == 1 && b[0] >= '0' && b[0] <= '9' {
			g.digits = append(g.digits, id)
		} else if string(b) == "-" {
			g.dash = []int32{id}
		}
	}
	texts := map[string]bool{}
	for seed := range uint64(5) {
		e, err := engine.New(s.image, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWriter(e, s, SampleOptions{Temperature: 1, TopK: 40, Seed: seed}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.write(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		for i, b := range w.text {
			if (b == '-') != (i%2 == 1) || i%2 == 0 && (b < '0' || b > '9') {
				t.Errorf("wrote %q", w.text)
			}
		}
		reads, err := e.Reads()
		if err != nil {
			t.Fatal(err)
		}
		if w.drawn != 6 || reads.Blocks != 6 || reads.Positions != 11 || w.given != 6 {
			t.Errorf("%d drawn, %d given, %d fed in %d passes", w.drawn, w.given, reads.Positions, reads.Blocks)
		}
		texts[string(w.text)] = true
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(texts) < 4 {
		t.Errorf("five seeds wrote %v", texts)
	}
}

func TestTemplateCommand(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	file := filepath.Join(t.TempDir(), "form.txt")
	if err := os.WriteFile(file, []byte("Tom {{x}}\n\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) Text {
		out, err := call(t, SampleCommand(), append([]string{dir, "--json", "--count"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var text Text
		if err := json.Unmarshal([]byte(out), &text); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return text
	}
	text := run("--template", `{"n": "{{n}}"}`, "--hole", "3", "--prompt", "He")
	if text.Text != `{"n": "`+text.Holes["n"]+`"}` || text.Stopped != "template" || text.Tokens > 3 || text.Prompt != "He" {
		t.Errorf("%+v", text)
	}
	if c := text.Count; c == nil || c.Total.Difference != 0 || c.Total.Counted != text.Bytes || c.Conditions.Positions != text.Fed || c.Conditions.Passes != text.Passes {
		t.Errorf("%+v counted as %+v", text, c)
	}
	single := run("--template", `{"n": "{{n}}"}`, "--hole", "3", "--prompt", "He", "--batch", "1")
	if single.Text != text.Text || single.Bytes <= text.Bytes || single.Passes != single.Fed {
		t.Errorf("token by token %+v, in blocks %+v", single, text)
	}
	if text := run("--template", "@"+file); !strings.HasPrefix(text.Text, "Tom ") || !strings.HasSuffix(text.Text, "\n") {
		t.Errorf("from a file: %+v", text)
	}
	out, err := call(t, SampleCommand(), dir, "--template", "Tom {{x}} e", "--count", "--prompt", "He. ")
	if err != nil || !strings.HasPrefix(out, "He. Tom ") || !strings.Contains(out, " fed\n") {
		t.Errorf("%v in\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for want, args := range map[string][]string{
		"touch":              {"--template", "{{a}}{{b}}"},
		"starts no hole":     {"--template", "{{a"},
		"limits a story":     {"--template", "{{a}}", "--tokens", "3"},
		"with --template":    {"--hole", "3"},
		"1 or more":          {"--template", "{{a}}", "--hole", "0"},
		"--batch 0":          {"--batch", "0"},
		"no such file":       {"--template", "@" + file + "x"},
		"context holds 24":   {"--template", strings.Repeat("Anna saw. ", 30) + "{{a}}"},
		"two braces":         {"--template", "Anna {saw}."},
		"shorten the prompt": {"--template", "{{a}}", "--prompt", strings.Repeat("Anna saw. ", 30)},
	} {
		if _, err := call(t, SampleCommand(), append([]string{dir}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// listening is an engine that keeps what it is fed.
type listening struct {
	*engine.Engine
	fed []int32
}

// ForwardLast is [engine.Engine.ForwardLast].
func (l *listening) ForwardLast(ids []int32, logits []float32) error {
	l.fed = append(l.fed, ids...)
	return l.Engine.ForwardLast(ids, logits)
}
