package progress

import (
	"strings"
	"testing"
	"time"
)

func TestPlainLinesNowAndThen(t *testing.T) {
	var out strings.Builder
	b := NewBytes(&out, "file")
	clock := time.Unix(0, 0)
	b.now = func() time.Time { return clock }
	b.next = clock.Add(every)
	for i := range int64(101) {
		b.Update(i*1e6, 100e6)
		clock = clock.Add(every / 4)
	}
	b.Note("a retry")
	b.Done()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 26 {
		t.Fatalf("%d lines, want 25 and the note:\n%s", len(lines), out.String())
	}
	if lines[0] != "file: 4.0 of 100.0 MB (4 %)" || lines[24] != "file: 100.0 of 100.0 MB (100 %)" || lines[25] != "file: a retry" {
		t.Errorf("lines are\n%s", out.String())
	}
	out.Reset()
	clock = clock.Add(every)
	b.Update(5e6, -1)
	if out.String() != "file: 5.0 MB\n" {
		t.Errorf("of an unknown total: %q", out.String())
	}
}

func TestStepsAreCounted(t *testing.T) {
	var out strings.Builder
	b := NewSteps(&out, "work")
	b.next = b.now()
	b.Update(3, 12)
	b.next = b.now()
	b.Update(4, 0)
	b.Done()
	if out.String() != "work: 3 of 12 steps (25 %)\nwork: 4 steps\n" {
		t.Errorf("lines are\n%s", out.String())
	}
}

func TestTokensAreCounted(t *testing.T) {
	var out strings.Builder
	b := NewTokens(&out, "work")
	b.next = b.now()
	b.Update(1500, 20000)
	b.Done()
	if out.String() != "work: 1500 of 20000 tokens (7 %)\n" {
		t.Errorf("lines are\n%s", out.String())
	}
}
