package sweep

import (
	"io"
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

	wild := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1) + `
  wild: {set: {train.lr: 100, train.clip: 0}}
  pupil: {teacher: wild, set: {train.distill: 0.5}}
  grandchild: {teacher: pupil, set: {train.distill: 0.25}}
`
	p.options.Out += "-wild"
	for range 2 {
		out, err := Run(t.Context(), p.study(wild), p.options, silent{})
		if err == nil || !strings.Contains(err.Error(), "pupil-s1: its teacher wild-s1") || !strings.Contains(err.Error(), "grandchild-s1: its teacher pupil-s1") ||
			out.Done != 2 || out.Failed != 1 || out.Broken != 2 {
			t.Errorf("%v, %+v", err, out)
		}
	}
}
