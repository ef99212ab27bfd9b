package compare

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/eval/results"
)

// diverged is a run that failed, as a sweep would write it.
func diverged(arm string, seed int64) results.Run {
	r := made(arm, seed, 0.9)
	r.Quality, r.Failure = results.Quality{}, "the loss of step 7 is not finite"
	return r
}

// Where there is no baseline, the note says why: none is named, several are, or one that has no score.
func TestWhyThereIsNoBaseline(t *testing.T) {
	named := func(baseline, sweep string, runs ...results.Run) []results.Run {
		for i := range runs {
			runs[i].Baseline, runs[i].Sweep = baseline, sweep
		}
		return runs
	}
	scored := func() []results.Run { return []results.Run{made("x", 1, 0.9), made("y", 1, 0.8)} }
	for _, c := range []struct {
		want string
		runs []results.Run
	}{
		{"the sweep names none; name it with --baseline ARM", named("", "one", scored()...)},
		{"the sweeps name several, x and z; choose one with", append(named("x", "one", scored()...), named("z", "two", made("z", 1, 0.7))...)},
		{"the sweep names plain, which has only runs that failed, plain (seed 1): the loss of step 7 is not finite, plain (seed 2): the loss of",
			named("plain", "one", append(scored(), diverged("plain", 2), diverged("plain", 1), diverged("other", 1))...)},
		{"the sweep names plain, of which it has no line here; name another with --baseline ARM", named("plain", "one", scored()...)},
		{"the sweep names a, of which it has no line here; another names b, which has only runs that failed, b (seed 3): the loss",
			append(named("a", "one", scored()...), named("b", "two", made("z", 1, 0.7), diverged("b", 3))...)},
	} {
		out, err := call(t, write(t, c.runs...), "--markdown")
		if err != nil || !strings.Contains(out, "no baseline, so no differences: "+c.want) {
			t.Errorf("%v, want %q in\n%s", err, c.want, out)
		}
	}
}

// An arm that has only runs that failed is not said to be unknown.
func TestArmsThatFailedAreKnown(t *testing.T) {
	path := write(t, made("x", 1, 0.9), made("y", 1, 0.8), diverged("plain", 2))
	for _, args := range [][]string{{"--baseline", "plain"}, {"--arms", "plain"}, {"--arms", "x,pl*"}} {
		_, err := call(t, append(args, path)...)
		if !isUsage(err) || !strings.Contains(err.Error(), "has only runs that failed, plain (seed 2): the loss of step 7 is not finite; there are x, y") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// Where every run failed, each is named with its reason.
func TestAllRunsFailed(t *testing.T) {
	path := write(t, diverged("b", 1), diverged("a", 2), diverged("a", 1))
	_, err := call(t, path, path)
	want := `: no run with a score; there is only
  a (seed 1) failed: the loss of step 7 is not finite
  a (seed 2) failed: the loss of step 7 is not finite
  b (seed 1) failed: the loss of step 7 is not finite
change what makes them fail, or try them again with chiplm sweep FILE --retry`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
}

// A last line counts when nothing but its end is missing; what a crash cut short is passed over with a note.
func TestLastLineWithoutAnEnd(t *testing.T) {
	path := write(t, made("plain", 1, 0.9), made("x", 1, 0.8))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for _, c := range []struct {
		keep  int
		arms  int
		noted bool
	}{{len(whole), 2, false}, {len(whole) - 1, 2, false}, {len(whole) - 2, 1, true}, {first + 1, 1, true}, {first, 1, false}} {
		if err := os.WriteFile(path, whole[:c.keep], 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Load([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		noted := strings.Contains(strings.Join(s.Notes, "\n"), path+":2: the last line is cut short, as by a crash, and is passed over")
		if len(s.Groups) != c.arms || noted != c.noted {
			t.Errorf("%d of %d bytes: %d arms, notes %q", c.keep, len(whole), len(s.Groups), s.Notes)
		}
	}
	if err := os.WriteFile(path, whole[:first-5], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load([]string{path}); err == nil || !strings.Contains(err.Error(), path+":1: the last line is cut short") {
		t.Error(err)
	}
}
