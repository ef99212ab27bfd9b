package results

import (
	"bytes"
	"encoding/json"
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
	for _, bounded := range []*int64{&r.Cost.ImageBytes, &r.Cost.BytesPerToken, &r.Training.Tokens, &r.Curve[0].Tokens, &r.Curve[1].Tokens, &r.Curve[2].Tokens} {
		*bounded %= Largest
	}
	r.Cost.Parameters %= Largest
	return r
}

// scored is a run with little more than a score.
func scored(arm string, seed int64) Run {
	return Run{Arm: arm, Seed: seed, Quality: Quality{BitsPerByte: 0.9, TextBytesPerToken: 4}}
}

const quality = `"quality":{"bits_per_byte":0.9,"text_bytes_per_token":4}`

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
	want := []Run{fullRun("a", 1), fullRun("b", 2), scored("bare", 0)}
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
// A line that lacks nothing but its end is whole.
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
		want, short := []Run{first}, 2
		switch cut {
		case len(before):
			short = 0
		case len(whole) - 1:
			want, short = []Run{first, last}, 0
		}
		if got := mustRead(t, path); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut after %d bytes: %d runs", cut, len(got))
		}
		if line, err := Cut(path); err != nil || line != short {
			t.Fatalf("cut after %d bytes: line %d is called cut short, %v", cut, line, err)
		}
		if cut%97 != 0 && cut != len(whole)-1 { // an append syncs: some are enough
			continue
		}
		mustAppend(t, path, next)
		if got := mustRead(t, path); !reflect.DeepEqual(got, append(want, next)) {
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
	mustAppend(t, path, scored("a", 1), scored("b", 1))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "[]", "null", "{}", `{"arm":"",` + quality + `}`, `{"arm":1,` + quality + `}`, `{"arm":" ","failure":"why"}`,
		`{"arm":"c","unknown":1,` + quality + `}`, `{"arm":"c",` + quality + `} {}`, `{"arm":"c",` + quality + `}]`, "\x00",
		`{"arm":"c","seed":1.5,` + quality + `}`, `{"arm":"c"}`, `{"arm":"c","failure":""}`, `{"arm":"c","quality":{"bits_per_byte":0.9}}`,
		`{"arm":"c","quality":{"bits_per_byte":-0.9,"text_bytes_per_token":4}}`, `{"arm":"c",` + quality + `,"cost":{"parameters":-1}}`} {
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
		// Without its end, whole JSON is no rest of a crash: it is not written over.
		if !json.Valid([]byte(bad)) {
			continue
		}
		text := append(good[:len(good):len(good)], bad...)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path+":3:") || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%q without an end: %v", bad, err)
		}
		if err := Append(path, scored("c", 1)); err == nil || !strings.Contains(err.Error(), "the last line is not a line of results") {
			t.Errorf("%q without an end is appended to: %v", bad, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, text) {
			t.Errorf("%q without an end: %v, the file changed", bad, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
}

// TestNothingIsWrittenThatCannotBeRead: a line that Read refuses would stop every later sweep.
func TestNothingIsWrittenThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for want, change := range map[string]func(*Run){
		"neither a score (quality.bits_per_byte) nor a failure": func(r *Run) { r.Quality = Quality{} },
		"bits_per_byte is NaN":               func(r *Run) { r.Quality.BitsPerByte = math.NaN() },
		"unsupported value":                  func(r *Run) { r.Quality.BitsPerByteWithEnd = math.Inf(1) },
		"tokens_per_second is 1e+300":        func(r *Run) { r.Cost.TokensPerSecond = 1e300 },
		"the curve has the point 1, -1e+300": func(r *Run) { r.Curve = []Point{{Tokens: 1, Loss: -1e300}} },
		"it names no arm":                    func(r *Run) { r.Arm = "" },
		"text_bytes_per_token is 0 beside a": func(r *Run) { r.Quality.TextBytesPerToken = 0 },
	} {
		r := scored("a", 1)
		change(&r)
		if err := Append(path, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		t.Errorf("written: %q", text)
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
	go func() { done <- Append(path, scored("b", 1)) }()
	select {
	case <-done:
		t.Error("an append did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	if _, err := f.WriteString("\"," + quality + "}\n"); err != nil {
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
	mustAppend(t, path, failed("a", 1, "first"), scored("b", 1), failed("a", 2, "only"), failed("a", 1, "second"),
		failed("c", 1, "mended"), scored("c", 1))
	good := mustRead(t, path)
	if len(good) != 2 || good[0].Arm != "b" || good[1].Arm != "c" {
		t.Errorf("scored: %+v", good)
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

// TestWhatIsNoRunHasNoSeed: a sweep that is planned is told apart by its name alone.
func TestWhatIsNoRunHasNoSeed(t *testing.T) {
	runs := []Run{{Arm: "a", HeldOut: HeldOut{Name: "x", SHA256: "aa", Stories: 5, Bytes: 100}}}
	if err := ComparableWith(runs, "this sweep", runs[0].HeldOut); err != nil {
		t.Error(err)
	}
	err := ComparableWith(runs, "this sweep", HeldOut{Name: "y"})
	if err == nil || !strings.Contains(err.Error(), "a (seed 0) was scored on x") || !strings.Contains(err.Error(), "and this sweep on y (0 stories") {
		t.Error(err)
	}
	if err := ComparableWith(nil, "this sweep", HeldOut{}); err != nil {
		t.Error(err)
	}
}
