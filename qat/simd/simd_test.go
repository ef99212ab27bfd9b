package simd

import (
	"slices"
	"testing"
)

func TestChosen(t *testing.T) {
	for _, p := range Paths() {
		t.Setenv(Variable, p.String())
		if got, err := Chosen(); got != p || err != nil {
			t.Errorf("%s=%v gives %v, %v", Variable, p, got, err)
		}
	}
	t.Setenv(Variable, "")
	if got, err := Chosen(); got != Best() || err != nil {
		t.Errorf("unset: %v, %v", got, err)
	}
	t.Setenv(Variable, "mmx")
	if got, err := Chosen(); got != Best() || err == nil {
		t.Errorf("an unknown name gives %v, %v", got, err)
	}
}

func TestPaths(t *testing.T) {
	p := Paths()
	if p[0] != Plain || !slices.Contains(p, Best()) {
		t.Errorf("paths %v, best %v", p, Best())
	}
}
