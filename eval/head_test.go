package eval

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func headReport(t *testing.T, args ...string) HeadReport {
	t.Helper()
	text, err := call(t, Command(), append([]string{"head", "--json", "--clusters", "24"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var r HeadReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHeadReport(t *testing.T) {
	dir, storiesPath := tinyRun(t, nil)
	r := headReport(t, dir, "--stories", storiesPath, "--best", "5", "--workers", "3")
	if r.Clusters != 24 || r.RowBytes != 16+4 || r.HeadBytes != 300*20 || len(r.Ways) != 1+2*5 || len(r.Costs) != 2 || r.Positions < 60 {
		t.Fatalf("%+v", r)
	}
	for _, w := range r.Ways {
		switch w.Name {
		case "full":
			if w.Agreement != 1 || w.Rows != 300 || w.Bytes != float64(r.HeadBytes) {
				t.Errorf("%+v", w)
			}
		case "certified":
			if w.Agreement != 1 || w.Rows < float64(w.Best) {
				t.Errorf("%+v", w)
			}
		case "fixed":
			if w.Agreement < FixedAgreement || w.Clusters < 1 || w.Clusters > 24 {
				t.Errorf("%+v", w)
			}
		case "margin":
			if w.Agreement > 1 || w.Margin >= 1 {
				t.Errorf("%+v", w)
			}
		default:
			t.Errorf("way %q", w.Name)
		}
	}
	// Certain and fixed differ in the limit alone.
	if c := r.Costs[0]; c.Bytes != r.Ways[1].Bytes-r.Ways[2].Bytes || c.Bytes < 0 || c.ShareOfToken <= -1 {
		t.Errorf("%+v", r.Costs)
	}
	if want, positions := positionsOf(t, dir, storiesPath); r.Stories.Count != want || r.Positions != positions {
		t.Errorf("%d stories with %d positions, the file has %d with %d", r.Stories.Count, r.Positions, want, positions)
	}
	if few := headReport(t, dir, "--stories", storiesPath, "--best", "2", "--tokens", "3"); few.Stories.Count != 1 || few.Positions >= r.Positions {
		t.Errorf("for three positions %d stories with %d", few.Stories.Count, few.Positions)
	}
	alone := headReport(t, dir, "--stories", storiesPath, "--best", "5", "--workers", "1")
	r.Seconds, alone.Seconds = 0, 0
	if !reflect.DeepEqual(r, alone) {
		t.Error("another number of workers measures something else")
	}
	text, err := call(t, Command(), "head", dir, "--stories", storiesPath, "--clusters", "24")
	if err != nil || !strings.Contains(text, "certified") || !strings.Contains(text, "24 clusters") {
		t.Errorf("%v\n%s", err, text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 && !strings.HasPrefix(line, "model") && !strings.HasPrefix(line, "stories") {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	for _, args := range [][]string{{"--best", "0"}, {"--tokens", "0"}, {"--clusters", "1000"}, {"--stories", emptyFile(t)}} {
		if text, err := call(t, Command(), append([]string{"head", dir, "--stories", storiesPath, "--clusters", "24"}, args...)...); err == nil {
			t.Errorf("%v: %s", args, text)
		}
	}
}
