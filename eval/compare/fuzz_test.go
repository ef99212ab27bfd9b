package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/eval/results"
)

// all asks for every form of a comparison, and tells whether they agree on there being one.
func all(t *testing.T, args ...string) {
	t.Helper()
	page := filepath.Join(t.TempDir(), "page.html")
	failed := 0
	forms := [][]string{{}, {"--markdown"}, {"--json"}, {"--front", "90", "--html", page}}
	for i, form := range forms {
		out, err := call(t, append(args, form...)...)
		if (err == nil) == (out == "") {
			t.Fatalf("%v, %q", err, out)
		}
		if err != nil {
			failed++
		}
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if strings.Contains(out, bad) && i != 1 {
				t.Errorf("%s", out)
			}
		}
		if i == 0 {
			narrow(t, out)
		}
	}
	if failed != 0 && failed != len(forms) {
		t.Errorf("%d of %d forms failed", failed, len(forms))
	}
	if _, err := os.Stat(page); (err == nil) != (failed == 0) {
		t.Errorf("the page: %v, though %d forms failed", err, failed)
	}
}

// Whatever a file holds, there is an error or a report.
func FuzzLines(f *testing.F) {
	for _, r := range []results.Run{made("plain", 1, 1), made("", 1, 1), made("x\x1b", -1, 1e15), made("tiny", 1<<62, 1e-300)} {
		r.Curve = r.Curve[:2]
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
		f.Add(append(append(line, '\n'), line...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		all(t, path)
	})
}

// Whatever the figures, there is an error or a report.
func FuzzFigures(f *testing.F) {
	f.Add("x", "sweep", "esp32s3", int64(1), 0.9, 0.91, 3.97, 90.0, 1e6, 3.0, int64(50000), int64(100000))
	f.Add("<b>|*", "\x00", "", int64(-1), 1e15, 1e-15, 1e15, 1e15, 1e15, 1e15, int64(1e15), int64(0))
	f.Add("y", "", "p4", int64(2), 5e-324, 0.0, 5e-324, 5e-324, 0.0, -1e15, int64(-1), int64(1))
	f.Fuzz(func(t *testing.T, arm, sweep, target string, seed int64, bits, other, text, rate, read, loss float64, first, second int64) {
		a, b := made(arm, seed, bits), made(arm, seed+1, other)
		for _, r := range []*results.Run{&a, &b} {
			r.Sweep, r.Cost.Target, r.Cost.MeasuredPer = sweep, target, read
			r.Cost.TokensPerSecond, r.Quality.TextBytesPerToken, r.Quality.NatsPerToken, r.Cost.TextPerSecond = rate, text, other, read
			r.Curve = []results.Point{{Tokens: first, Loss: loss}, {Tokens: second, Loss: bits}}
			if _, err := json.Marshal(*r); err != nil {
				t.Skip("not a line of JSON")
			}
		}
		all(t, write(t, a, b, made("plain", 1, 0.9), made("plain", 2, 0.91)))
	})
}
