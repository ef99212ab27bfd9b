package jsonout

import (
	"strings"
	"testing"
)

func TestForm(t *testing.T) {
	var out strings.Builder
	if err := Write(&out, map[string]any{"a": "<|endoftext|>", "b": []int{1}}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"a\": \"<|endoftext|>\",\n  \"b\": [\n    1\n  ]\n}\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if Write(&out, func() {}) == nil {
		t.Error("a function is printed")
	}
}
