package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestLoopCallsHooksInTheirTurn(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.Tokens = 7*60 - 5 // seven steps: the last is not whole, and taken whole
	tr, _ := newFakeTrainer(t, cfg, 1)
	l := NewLoop(tr)
	calls := map[string][]int{}
	note := func(name string) Hook {
		return func(_ context.Context, e Event) error {
			calls[name] = append(calls[name], e.Step)
			return nil
		}
	}
	l.Every(1, "one", note("one"))
	l.Every(3, "three", note("three"))
	l.Every(0, "never", note("never"))
	l.AtEnd(note("end"))
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{
		"one": {1, 2, 3, 4, 5, 6, 7}, "three": {3, 6, 7}, "never": nil, "end": {7}} {
		if !slices.Equal(calls[name], want) {
			t.Errorf("%s was called after %v, want %v", name, calls[name], want)
		}
	}
	clear(calls)
	if err := l.Run(t.Context()); err != nil { // nothing is left but the end
		t.Fatal(err)
	}
	if len(calls) != 1 || len(calls["end"]) != 1 {
		t.Errorf("a run without steps called %v", calls)
	}
}

func TestLoopStopsAtAnError(t *testing.T) {
	tr, m := newFakeTrainer(t, tinyConfig(), 1)
	l := NewLoop(tr)
	broken := errors.New("disk full")
	l.Every(4, "save", func(context.Context, Event) error { return broken })
	l.AtEnd(func(context.Context, Event) error { t.Error("the end was reached"); return nil })
	err := l.Run(t.Context())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "save after step 4") {
		t.Errorf("got %v", err)
	}
	m.fault = func(_ []int32, g *fakeGraph) { g.gradients[0][0] = float32(math.NaN()) }
	if err := l.Run(t.Context()); !errors.Is(err, errNotFinite) || !strings.Contains(err.Error(), "step 5: ") {
		t.Errorf("got %v", err)
	}
}

func TestLoopEndsWithItsContext(t *testing.T) {
	tr, _ := newFakeTrainer(t, tinyConfig(), 2)
	ctx, cancel := context.WithCancel(t.Context())
	l := NewLoop(tr)
	l.Every(1, "stop", func(_ context.Context, e Event) error {
		if e.Step == 2 {
			cancel()
		}
		return nil
	})
	if err := l.Run(ctx); !errors.Is(err, context.Canceled) || tr.StepsTaken() != 2 {
		t.Errorf("got %v after %d steps", err, tr.StepsTaken())
	}
}
