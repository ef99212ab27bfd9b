package checkpoints

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// Any bytes may name a corpus; the state gives them back as they were, in JSON that is valid text.
func FuzzStateKeepsPaths(f *testing.F) {
	for _, path := range []string{"", "/data/stories.txt", "builtin:1", "/data/caf\xe9.txt", "/d\xff\x00\x1b[31m", `"`, `"a"`, `"a`, `"\xff"`, "\"\xff\"", "/d\ufffd", "<&>\u2028", "\\"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		in := State{Version: 1, Corpus: path, Valid: "x" + path, BestValid: math.Inf(1), LastLoss: 1}
		text, err := encodeState(in)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("%q: %q, %v", path, text, err)
		}
		out, err := decodeState(text)
		if err != nil || out != in {
			t.Fatalf("%q: have %+v, %v\n%s", path, out, err, text)
		}
		if shown := shownPath(path); !utf8.ValidString(shown) || strings.ContainsAny(shown, "\x00\x1b\n") {
			t.Fatalf("%q is shown as %q", path, shown)
		}
	})
}

func TestStateOfAnOddPathSurvivesASave(t *testing.T) {
	c := sample(t, 1)
	c.State.Corpus = "/data/caf\xe9.txt"
	got := mustBe(t, mustSave(t, t.TempDir(), c, 1), 1)
	if got.State.Corpus != c.State.Corpus {
		t.Errorf("have %q", got.State.Corpus)
	}
	var info strings.Builder
	if err := printInfo(&info, summarise(got)); err != nil || !strings.Contains(info.String(), `"/data/caf\xe9.txt"`) {
		t.Errorf("%v\n%s", err, info.String())
	}
	s := summarise(got)
	s.Dir = "run\xff"
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `"dir":"\"run\\xff\""`) {
		t.Errorf("%v\n%s", err, text)
	}
}
