package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

// collect reads all stories of a corpus.
func collect(t *testing.T, c Corpus) []string {
	t.Helper()
	var out []string
	if err := c.Stories(context.Background(), func(s []byte) error {
		out = append(out, string(s))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBuiltinIsVariedAndClean(t *testing.T) {
	stories := collect(t, Builtin(3, 3000))
	if len(stories) != 3000 {
		t.Fatalf("%d stories, want 3000", len(stories))
	}
	odd := regexp.MustCompile(`[^A-Za-z ,.!?"'\n]|  | [,.!?]|[\[\]{}|]|\n\n|^\s|\s$|\ba [aeiou]|\ban [^aeiou]`)
	seen := map[string]bool{}
	words := map[string]bool{}
	length := 0
	for _, s := range stories {
		if m := odd.FindString(s); m != "" {
			t.Fatalf("%q in a story:\n%s", m, s)
		}
		if strings.Count(s, `"`)%2 != 0 {
			t.Fatalf("a quotation is not closed:\n%s", s)
		}
		if seen[s] {
			t.Fatalf("told twice:\n%s", s)
		}
		seen[s] = true
		length += len(s)
		for _, w := range strings.Fields(s) {
			words[strings.Trim(w, `,.!?"`)] = true
		}
	}
	if mean := length / len(stories); mean < 400 || mean > 1200 {
		t.Errorf("stories have %d bytes on average", mean)
	}
	if len(words) < 700 {
		t.Errorf("only %d different words", len(words))
	}
}

// Every alternative of every plot is expanded here at least once with near certainty: a template with a fault panics.
func TestEveryTemplateExpands(t *testing.T) {
	used := map[string]bool{}
	for _, s := range collect(t, Builtin(9, 6000)) {
		used[s[strings.LastIndexByte(s, '\n')+1:]] = true
	}
	if len(used) < 1000 {
		t.Errorf("only %d different endings", len(used))
	}
}

// The stories of a seed never change: runs and checkpoints name them by seed.
func TestBuiltinIsPinned(t *testing.T) {
	const want = "d9162bea8ca345e47b8ab95cea64f420bb0b7509996b514b29e6e51e228fd0d6"
	if got := Builtin(1, 500).Info().SHA256; got != want {
		t.Errorf("the first 500 stories of seed 1 have hash %s, want %s", got, want)
	}
}

func TestBuiltinPrefix(t *testing.T) {
	short, long := collect(t, Builtin(5, 100)), collect(t, Builtin(5, 300))
	if strings.Join(short, "\x00") != strings.Join(long[:100], "\x00") {
		t.Error("a longer corpus does not start with the shorter one")
	}
	if other := collect(t, Builtin(6, 100)); other[0] == short[0] && other[1] == short[1] {
		t.Error("two seeds tell the same stories")
	}
}

func TestBuiltinHashIsThatOfItsFile(t *testing.T) {
	c := Builtin(2, 40)
	h := sha256.New()
	n, err := WriteDelimited(context.Background(), h, c)
	if err != nil {
		t.Fatal(err)
	}
	if info := c.Info(); info.SHA256 != hex.EncodeToString(h.Sum(nil)) || info.Bytes != n {
		t.Errorf("info %+v does not describe the %d bytes written", info, n)
	}
}

func TestOpenBuiltin(t *testing.T) {
	for path, want := range map[string]string{
		"builtin":                "builtin:1:4000",
		"builtin:7":              "builtin:7:4000",
		"builtin:7:20":           "builtin:7:20",
		"builtin:7:20#train":     "builtin:7:20#train",
		"builtin:7:200#held-out": "builtin:7:200#held-out",
	} {
		c, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := c.Info().Path; got != want {
			t.Errorf("%s opens as %s, want %s", path, got, want)
		}
		again, err := Open(c.Info().Path)
		if err != nil || again.Info() != c.Info() {
			t.Errorf("%s does not open again as itself: %v", path, err)
		}
	}
	for _, path := range []string{"builtin:", "builtin:x", "builtin:-1", "builtin:1:0", "builtin:1:x", "builtin:1:2:3",
		"builtin:1:99999999999", "builtin:x#train"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "builtin:1:2000") {
			t.Errorf("%s: error %v, want one that shows the right form", path, err)
		}
	}
}
