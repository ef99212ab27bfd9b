package usage

import "testing"

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"combo-2": "combo-2", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'",
		"/r/a.b_c": "/r/a.b_c", "é": "'é'"} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
