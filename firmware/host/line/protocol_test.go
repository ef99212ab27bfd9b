package line

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The client takes for answers what the document says answers are, and nothing else.
func TestAnswersAreThoseOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("with one of `([A-Z! ]+)`").FindSubmatch(text)
	if found == nil {
		t.Fatal("the document does not list the answers")
	}
	answers := strings.ReplaceAll(string(found[1]), " ", "")
	for c := byte(0x20); c < 0x7f; c++ {
		want := byte(0)
		if strings.IndexByte(answers, c) >= 0 {
			want = c
		}
		whole := string(c)
		for line, want := range map[string]byte{whole: want, whole + " x": want, whole + "x": 0, whole + " (1) x": 0, "# " + whole: 0, " " + whole: 0} {
			if c == '{' {
				want = map[bool]byte{true: c}[line[0] == c]
			}
			if got := kind(line); got != want {
				t.Errorf("%q is %q, want %q", line, got, want)
			}
		}
	}
	// Every letter that an answer in the document's table starts with is among them.
	for _, row := range regexp.MustCompile("(?m)^\\| `[A-Z].*\\| `([A-Z])").FindAllSubmatch(text, -1) {
		if !strings.Contains(answers, string(row[1])) {
			t.Errorf("%s is an answer and not in the list %s", row[1], answers)
		}
	}
}
