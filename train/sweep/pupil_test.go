package sweep

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/train"
)

// TestAPupil: an arm learns from the run of its own seed, as chiplm train --teacher has it; two teachers make two arms; and
// without a teacher's run there is none of its pupil's.
func TestAPupil(t *testing.T) {
	p := newPlace(t)
	text := strings.Replace(tinyStudy, "[1, 2]", "[7]", 1) + `
  taught: {teacher: wide, set: {train.distill: 0.5}}
  other: {teacher: tiny, set: {train.distill: 0.5}}
`
	models := map[string]string{}
	for _, r := range p.run(text) {
		models[r.Arm] = r.ModelSHA256
	}
	o := train.Options{Config: filepath.Join(p.folder, "tiny.yaml"), Sets: []string{"train.distill=0.5", "train.seed=7"}, Corpus: "builtin:1:60",
		Out: filepath.Join(p.folder, "runs"), Name: "by-hand", Teacher: filepath.Join(p.options.Out, "study", "runs", "wide-s7"), Workers: 2}
	sum, err := train.Run(t.Context(), o, io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	if models["taught"] != sum.ModelSHA256 || models["taught"] == models["other"] || models["taught"] == models["tiny"] {
		t.Errorf("the weights are %v, by hand %s", models, sum.ModelSHA256)
	}
	if _, err := Parse(filepath.Join(p.folder, "same.yaml"), []byte(strings.Replace(text, "teacher: tiny", "teacher: wide", 1))); err == nil {
		t.Error("two arms that are the same are let through")
	}
	changed := strings.Replace(text, "taught: {teacher: wide", "taught: {teacher: tiny", 1)
	changed = strings.Replace(changed, "other: {teacher: tiny", "other: {teacher: wide", 1)
	if _, err := Run(t.Context(), p.study(changed), p.options, silent{}); err == nil || !strings.Contains(err.Error(), "taught-s7: its teacher was wide and is now tiny") {
		t.Errorf("another teacher: %v", err)
	}

	// A teacher that is not the one of its line teaches nobody, and a pupil whose teacher was scored anew is told.
	runs := filepath.Join(p.options.Out, "study", "runs")
	lines := filepath.Join(p.options.Out, "study", ResultsFile)
	whole, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(change func(string) string) {
		t.Helper()
		if err := os.WriteFile(lines, []byte(change(string(whole))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	without := func(text string) string {
		var kept []string
		for _, line := range strings.SplitAfter(text, "\n") {
			if !strings.Contains(line, `"arm":"taught"`) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	refuse := func(want ...string) {
		t.Helper()
		_, err := Run(t.Context(), p.study(text), p.options, silent{})
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(runs, from), filepath.Join(runs, to)); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(without)
	move("taught-s7", "kept")
	move("wide-s7", "away")
	refuse("taught-s7 learns from wide-s7", "wide-s7: there is no such", "remove its line")
	move("other-s7", "wide-s7")
	refuse("taught-s7 learns from wide-s7", "other weights", "remove its line")
	move("wide-s7", "other-s7")
	move("away", "wide-s7")
	move("kept", "taught-s7")
	if again := p.run(text); len(again) != len(models) || again[len(again)-1].ModelSHA256 != models["taught"] || again[len(again)-1].TeacherSHA256 != models["wide"] {
		t.Errorf("put back, the sweep has %d runs, the last %+v", len(again), again[len(again)-1])
	}
	out, err := Run(t.Context(), p.study("baseline: other\n"+text), p.options, silent{})
	if err != nil || out.Done != 4 {
		t.Fatalf("%v, %+v", err, out)
	}
	var told strings.Builder
	if out.print(&told); !strings.Contains(told.String(), "results.jsonl --baseline other\n") {
		t.Errorf("the lines name another baseline than the file, and it says:\n%s", &told)
	}
	rewrite(func(text string) string { return strings.Replace(text, models["wide"], strings.Repeat("0f", 32), 1) })
	refuse("taught-s7 learned from a run of wide with other weights")

	wild := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1) + `
  wild: {set: {train.lr: 100, train.clip: 0}}
  pupil: {teacher: wild, set: {train.distill: 0.5}}
  grandchild: {teacher: pupil, set: {train.distill: 0.25}}
`
	p.options.Out += "-wild"
	for range 2 {
		out, err := Run(t.Context(), p.study(wild), p.options, silent{})
		if err == nil || !strings.Contains(err.Error(), "pupil-s1: its teacher wild-s1 diverged: ") || !strings.Contains(err.Error(), "grandchild-s1: its teacher pupil-s1") ||
			out.Done != 2 || out.Failed != 1 || out.Broken != 2 {
			t.Errorf("%v, %+v", err, out)
		}
	}
}
