package results

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// fill gives every field under v a value of its own.
func fill(v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), next)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d\n\"ä\u2028", *next))
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MaxInt64 - int64(*next))
	case reflect.Float64:
		v.SetFloat(1 / float64(*next))
	default:
		panic("no value for a field of kind " + v.Kind().String())
	}
}

func fullRun(arm string, seed int64) Run {
	var r Run
	n := int(seed)
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.Arm, r.Seed, r.Failure = arm, seed, ""
	return r
}

func mustAppend(t *testing.T, path string, runs ...Run) {
	t.Helper()
	for _, r := range runs {
		if err := Append(path, r); err != nil {
			t.Fatal(err)
		}
	}
}

func mustRead(t *testing.T, path string) []Run {
	t.Helper()
	runs, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	want := []Run{fullRun("a", 1), fullRun("b", 2), {Arm: "bare"}}
	mustAppend(t, path, want...)
	if got := mustRead(t, path); !reflect.DeepEqual(got, want) {
		t.Errorf("have %+v\nwant %+v", got, want)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%v, the file has %d lines", err, strings.Count(string(text), "\n"))
	}
}

// TestAnyCutOfTheLastLine cuts a file at every byte of its last line: the whole lines stay, and an append begins after them.
func TestAnyCutOfTheLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	first, last, next := fullRun("a", 1), fullRun("a", 2), fullRun("b", 1)
	mustAppend(t, path, first)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, last)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(before); cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, path); !reflect.DeepEqual(got, []Run{first}) {
			t.Fatalf("cut after %d bytes: %d runs", cut, len(got))
		}
		if cut%97 != 0 && cut != len(whole)-1 { // an append syncs: some are enough
			continue
		}
		mustAppend(t, path, next)
		if got := mustRead(t, path); !reflect.DeepEqual(got, []Run{first, next}) {
			t.Fatalf("cut after %d bytes, then appended: %d runs", cut, len(got))
		}
	}
}

// TestALongTornLine: what is cut off may be longer than what is looked at in one go.
func TestALongTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	want := fullRun("a", 1)
	for _, before := range []string{"", "first"} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var all []Run
		if before != "" {
			all = append(all, fullRun(before, 3))
			mustAppend(t, path, all...)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"arm":"` + strings.Repeat("x", 200_000)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, path, want)
		if got := mustRead(t, path); !reflect.DeepEqual(got, append(all, want)) {
			t.Errorf("%d runs", len(got))
		}
	}
}

func TestDamagedLinesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	mustAppend(t, path, Run{Arm: "a"}, Run{Arm: "b"})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "[]", "null", "{}", `{"arm":""}`, `{"arm":1}`, `{"arm":"c","unknown":1}`, `{"arm":"c"} {}`,
		`{"arm":"c"}]`, "\x00", `{"arm":"c","seed":1.5}`} {
		if err := os.WriteFile(path, append([]byte(bad+"\n"), good...), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path+":1: not a line of results") {
			t.Errorf("%q: %v", bad, err)
		}
		if err := os.WriteFile(path, append(good[:len(good):len(good)], bad+"\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Failures(path); err == nil || !strings.Contains(err.Error(), path+":3:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
	nan := Run{Arm: "a", Quality: Quality{BitsPerByte: math.NaN()}}
	if err := Append(path, nan); err == nil {
		t.Error("a score that is no number is written")
	}
}

func TestConcurrentAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 4 {
				if err := Append(path, fullRun(fmt.Sprint(i), int64(j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, r := range mustRead(t, path) {
		if !reflect.DeepEqual(r, fullRun(r.Arm, r.Seed)) {
			t.Errorf("%s, %d is not what was written", r.Arm, r.Seed)
		}
		seen[fmt.Sprint(r.Arm, r.Seed)] = true
	}
	if len(seen) != 32 {
		t.Errorf("%d of 32 runs", len(seen))
	}
}

// TestAppendsWait: an append does not begin while another process holds the file.
func TestAppendsWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"arm":"half`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Append(path, Run{Arm: "b"}) }()
	select {
	case <-done:
		t.Error("an append did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := f.WriteString("\"}\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, path); len(got) != 2 || got[0].Arm != "half" || got[1].Arm != "b" {
		t.Errorf("%+v", got)
	}
}

func TestFailuresAreApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	failed := func(arm string, seed int64, why string) Run { return Run{Arm: arm, Seed: seed, Failure: why} }
	mustAppend(t, path, failed("a", 1, "first"), Run{Arm: "b", Seed: 1}, failed("a", 2, "only"), failed("a", 1, "second"),
		failed("c", 1, "mended"), Run{Arm: "c", Seed: 1})
	scored := mustRead(t, path)
	if len(scored) != 2 || scored[0].Arm != "b" || scored[1].Arm != "c" {
		t.Errorf("scored: %+v", scored)
	}
	bad, err := Failures(path)
	if err != nil || len(bad) != 2 || bad[0].Failure != "only" || bad[1].Failure != "second" {
		t.Errorf("%v, failed: %+v", err, bad)
	}
}

func TestComparable(t *testing.T) {
	same := HeldOut{Name: "x", SHA256: "aa", Stories: 5, Bytes: 100}
	runs := []Run{{Arm: "a", HeldOut: same}, {Arm: "b", HeldOut: same}}
	if err := Comparable(runs); err != nil {
		t.Error(err)
	}
	if err := Comparable(nil); err != nil {
		t.Error(err)
	}
	renamed := same
	renamed.Name = "y" // the same bytes under another name
	if err := Comparable(append(runs, Run{Arm: "c", HeldOut: renamed})); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*HeldOut){func(h *HeldOut) { h.SHA256 = "bb" }, func(h *HeldOut) { h.Stories++ }, func(h *HeldOut) { h.Bytes-- }} {
		other := same
		change(&other)
		if err := Comparable(append(runs, Run{Arm: "odd", Seed: 7, HeldOut: other})); err == nil || !strings.Contains(err.Error(), "odd (seed 7)") {
			t.Errorf("change %d: %v", i, err)
		}
	}
}
