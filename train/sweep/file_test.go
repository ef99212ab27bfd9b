package sweep

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

const whole = `name: study
corpus: text/train.txt
valid: /data/valid.txt
stories: 0
seeds: [3, 1]
config: builtin:combo.yaml
set: {train.tokens: 1_000_000, quant: {weights: {group: 32}}}
baseline: plain
arms:
  zebra-0.003: {}
  plain: {config: builtin:demo.yaml, set: {d_ff: 384, train: {lr: 0.003}, train.clip: 2}}
  ant:
    set:
      train.tokens: 2000000
`

func TestFile(t *testing.T) {
	s, err := Parse("dir/other.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "study" || s.Corpus != filepath.Join("dir", "text", "train.txt") || s.Valid != "/data/valid.txt" || s.Stories != 0 ||
		!slices.Equal(s.Seeds, []int64{3, 1}) || s.Baseline != "plain" || len(s.Arms) != 3 {
		t.Errorf("%+v", s)
	}
	for i, name := range []string{"zebra-0.003", "plain", "ant"} { // the order of the file
		if s.Arms[i].Name != name {
			t.Errorf("arm %d is %s", i, s.Arms[i].Name)
		}
	}
	// An arm is the model file with the overrides, as --set gives them.
	for i, by := range [][]string{
		{"combo.yaml", "train.tokens=1000000", "quant.weights.group=32"},
		{"demo.yaml", "train.tokens=1000000", "quant.weights.group=32", "d_ff=384", "train.lr=0.003", "train.clip=2"},
		{"combo.yaml", "train.tokens=2000000", "quant.weights.group=32"},
	} {
		want, err := configs.Load("builtin:"+by[0], by[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Arms[i].Config; got.Hash() != want.Hash() {
			differences, _ := configs.Differences(got, want)
			t.Errorf("%s: %v", s.Arms[i].Name, differences)
		}
	}
	least, err := Parse("dir/my study.v2.yaml", []byte("name: x\nseeds: [1]\narms: {a: {}}"))
	if err != nil || least.Stories != DefaultStories || least.Baseline != "a" || least.Corpus != "" || least.Arms[0].Config.Name != "combo" {
		t.Errorf("%v, %+v", err, least)
	}
}

// TestShippedFiles: the files of sweeps in the repository can be read.
func TestShippedFiles(t *testing.T) {
	files, err := filepath.Glob("../../configs/sweeps/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := Load(file); err != nil {
			t.Error(err)
		}
	}
}

func TestFileErrorsTellTheirPlace(t *testing.T) {
	const rest = "seeds: [1]\narms: {a: {}}\n"
	for text, want := range map[string]string{
		"":                                "f.yaml: is empty; want keys (name, corpus",
		"- a":                             "f.yaml:1:1: want keys (name, corpus, valid, stories, seeds, config, set, baseline, arms), have a list",
		"arms: {a: {}}":                   "f.yaml:1:5: missing: seeds",
		"seeds: [1]":                      "f.yaml:1:6: missing: arms",
		"seeds: [1]\narms: {}":            "missing: arms",
		rest + "corpsu: x":                "f.yaml:3:1: corpsu: unknown key; did you mean corpus?",
		rest + "zzzzzzzzzzzz: x":          "f.yaml:3:1: zzzzzzzzzzzz: unknown key; known here: name, ",
		rest + "seeds: [2]":               "f.yaml:3:1: seeds: given twice, first on line 1",
		"seeds: 1\narms: {a: {}}":         `f.yaml:1:8: seeds: want a list, such as [1, 2], have "1"`,
		"seeds: []\narms: {a: {}}":        "missing: seeds",
		"seeds: [1, x]\narms: {a: {}}":    `f.yaml:1:12: seeds: want a whole number, have "x"`,
		"seeds: [1, -2]\narms: {a: {}}":   "f.yaml:1:12: seeds: want 0 to 9223372036854775807, have -2",
		"seeds:\n- 4\n- 4\narms: {a: {}}": "f.yaml:3:3: seeds: 4 is given twice",
		rest + "stories: -1":              "f.yaml:3:10: stories: want 0 to",
		rest + "name: a/b":                "f.yaml:3:7: name: it names the run's folder",
		rest + "name: 12":                 "f.yaml:3:7: name: want text, have 12",
		rest + "name: [a]":                "name: want text, have a list",
		rest + "corpus: ''":               "f.yaml:3:9: corpus: want text",
		rest + "baseline: b":              `f.yaml:3:11: baseline: no arm is called "b"; did you mean a?`,
		rest + "config: none.yaml":        "f.yaml:3:9: config: no model file",
		rest + "set: {d_fff: 1}":          "f.yaml:3:7: d_fff: unknown key; did you mean d_ff?",
		rest + "set:\n  d_ff: x":          `f.yaml:4:9: d_ff: want a whole number, have "x"`,
		rest + "set: {d_ff: [1]}":         "set.d_ff: no key of a model file takes a list",
		rest + "set: {train.seed: 1}":     "set: train.seed cannot be set; the seeds",
		rest + "set: {train: {seed: 1}}":  "set: train.seed cannot be set; the seeds",
		rest + "set: {name: x}":           "set: name cannot be set",
		rest + "set: {extends: demo}":     "set.extends: cannot be set here",
		rest + "set: {a..b: 1}":           "set.a..b: no key of a model file",
		rest + "set: 3":                   `f.yaml:3:6: set: want keys of the model file`,
		rest + "set: {n_heads: 3}":        "f.yaml:3:16: n_heads: d_model 128 does not divide into 3 heads",
		rest + "x: &a 1":                  "f.yaml:3:4: anchors and aliases are not part of a file of a sweep",
		rest + "set: {d_ff: 4}\nx: *a":    "f.yaml:4:4: anchors and aliases are not part of a file of a sweep; write the value out",
		rest + "set: {train: {tokens: 2048}, train.tokens: 4096}":                                       "f.yaml:3:30: set.train.tokens: given twice, first on line 3; keep one",
		rest + "set:\n  train.tokens: 4096\n  train: {lr: 1, tokens: 2048}":                             "set.train.tokens: given twice, first on line 4; keep one",
		rest + "set:\n  quant.weights: {bits: 8}\n  quant: {weights.bits: 4}":                           "set.quant.weights.bits: given twice, first on line 4",
		rest + "set:\n  train:\n    a.b: 1\n    a: {b: 1}":                                              "f.yaml:6:9: set.train.a.b: given twice, first on line 5",
		rest + "set:\n  train.lr: 0.1\n  train: 5":                                                      "f.yaml:5:3: set.train: given twice, first on line 4",
		"seeds: [1]\narms: {a: {set: {quant.weights.bits: 4, quant: {weights: {bits: 4}}}}}":            "arms.a.set.quant.weights.bits: given twice, first on line 2",
		rest + strings.Repeat("[", 60):                                                                  "nested braces; a file of a sweep nests fewer",
		rest + "stories: [[[[[[[[1]]]]]]]]":                                                             "nested deeper than a file of a sweep goes",
		"seeds: [1]\narms: {a: 3}":                                                                      `f.yaml:2:11: arms.a: want keys (config, set, teacher), have "3"`,
		"seeds: [1]\narms: {a: {sett: {}}}":                                                             "f.yaml:2:12: arms.a.sett: unknown key; did you mean arms.a.set?",
		"seeds: [1]\narms: {a: {}, b: {}}":                                                              "f.yaml:2:15: arms.b: it is the same as a",
		"seeds: [1]\narms: {a: {set: {train.distill: 0.5}}}":                                            "f.yaml:2:8: arms.a: train.distill is 0.5",
		"seeds: [1]\narms: {a: {teacher: b}}":                                                           "f.yaml:2:21: arms.a.teacher: no arm before it is called \"b\"; it is the first arm",
		"seeds: [1]\narms: {a: {teacher: released/b}}":                                                  "arms.a.teacher: released/b is a released model, which teaches a run of chiplm train",
		"seeds: [1]\narms: {a: {teacher: b}, b: {}}":                                                    "arms.a.teacher: b does not stand before a",
		"seeds: [1]\narms: {a: {teacher: a}}":                                                           "arms.a.teacher: a does not stand before a",
		"seeds: [1]\narms: {abc: {}, b: {teacher: abd}}":                                                "arms.b.teacher: no arm before it is called \"abd\"; did you mean abc?",
		"seeds: [1]\narms: {a: {}, b: {teacher: a}}":                                                    "arms.b.teacher: train.distill is 0",
		"seeds: [1]\nset: {train.distill: 1}\narms: {a: {}}":                                            "arms.a: train.distill is 1, but it names no teacher",
		"seeds: [1]\narms: {a: {}, b: {teacher: [a]}}":                                                  "arms.b.teacher: want text",
		"seeds: [1]\narms: {a: {set: {vocab_size: 300}}, b: {teacher: a, set: {train.distill: 1}}}":     "arms.b.teacher: a has a vocab_size of 300",
		"seeds: [1]\narms: {a: {set: {context_length: 128}}, b: {teacher: a, set: {train.distill: 1}}}": "arms.b.teacher: a has a context_length of 128",
		"seeds: [1]\narms: {a: {}, -b: {}}":                                                             "arms.-b: it names the run's folder",
		"seeds: [1]\narms: [a]":                                                                         "arms: want keys with values, have a list",
		"seeds: [1]\narms:\n  a:\n    config: 1":                                                        "f.yaml:4:13: arms.a.config: want text, have 1",
		"seeds: [1]\narms: {" + strings.Repeat("a", 62) + ": {}}":                                       "the name is too long to name its runs by",
	} {
		_, err := Parse("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "extends: other") { // the file of a sweep has no such key
			t.Errorf("%q:\n%v\nwant %s", text, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "f.yaml") {
			t.Errorf("%q: %v does not name the file", text, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
}

// FuzzParse: nothing crashes, and what is accepted can be run.
func FuzzParse(f *testing.F) {
	for _, text := range []string{whole, "seeds: [1]\narms: {a: {}}", "seeds:\n- 1\n-\n", "arms: {a: {set: {a: {b.c: {d: 1}}}}}", "[", "- - -", "seeds: [,]",
		"seeds: [1]\narms: {a: {set: {quant.classes.trunk.bits: 2, quant: {classes: {trunk: {group: 32}}}}}}", "seeds: [{a: 1}]", "? [a]: 1", "set: {'': 1}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("fuzz.yaml", text)
		if err != nil {
			_ = err.Error()
			return
		}
		names := map[string]bool{}
		for _, a := range s.Arms {
			for _, seed := range s.Seeds {
				c := *a.Config
				c.Name, c.Train.Seed = runName(a.Name, seed), seed
				if err := c.Validate(); err != nil || names[c.Name] {
					t.Fatalf("%s: %v, given before: %v", c.Name, err, names[c.Name])
				}
				names[c.Name] = true
			}
		}
		if len(names) == 0 || !slices.ContainsFunc(s.Arms, func(a Arm) bool { return a.Name == s.Baseline }) {
			t.Fatalf("%d runs, baseline %s", len(names), s.Baseline)
		}
	})
}

// A file that wants more stories scored than are held out is told so, before and while it runs; the default, and all of
// them, are no such wish.
func TestFewerStoriesThanWanted(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		stories string
		noted   bool
	}{{"stories: 100", true}, {"stories: 1", false}, {"stories: 0", false}, {"", false}} {
		study := p.study(strings.Replace(tinyStudy, "stories: 2", c.stories, 1))
		var out bytes.Buffer
		if err := dryRun(t.Context(), study, p.options, &out, false); err != nil {
			t.Fatal(err)
		}
		want := "note: the file says stories: 100, but "
		if strings.Contains(out.String(), want) != c.noted || strings.Contains(out.String(), "note: the file") != c.noted {
			t.Errorf("%q:\n%s", c.stories, out.String())
		}
		s, err := open(t.Context(), study, p.options)
		if err != nil || (s.fewStories() != "") != c.noted {
			t.Errorf("%q: %v, %q", c.stories, err, s.fewStories())
		}
	}
}

// One is no plural, and what every neuron read comes to is not called what is read.
func TestDryRunSaysWhatItsFiguresAre(t *testing.T) {
	p := newPlace(t)
	var out bytes.Buffer
	if err := dryRun(t.Context(), p.study(strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)), p.options, &out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 arms, 1 seed;", "  weights  ", "Weights: bytes of weights and scales for a token, with every neuron read."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "read/token") {
		t.Errorf("read/token is another figure:\n%s", out.String())
	}
}
