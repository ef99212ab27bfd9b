package cost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

func subject(t *testing.T, chip *targets.Target, profile string, sets ...string) *Subject {
	t.Helper()
	s, err := Find(context.Background(), "none", "combo.yaml", sets, chip, chip.Profile(profile))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mean(t *testing.T, s *Subject) float64 {
	t.Helper()
	l, err := s.plan(0, s.Config.ContextLength-1)
	if err != nil {
		t.Fatal(err)
	}
	return l.Cost.MeanMs
}

func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := Command()
	var out, errs bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(context.Background())
	return out.String(), errs.String(), err
}

// Each change gains what the model says when the change is made by hand, and they are in order.
func TestWhatIfs(t *testing.T) {
	chip := esp32s3(t)
	for _, profile := range chip.ProfileNames() {
		s := subject(t, chip, profile, "activation=swiglu")
		s.FullHead = true
		r, err := s.Report(0, 255)
		if err != nil {
			t.Fatal(err)
		}
		gained := map[string]float64{}
		for i, w := range r.WhatIfs {
			gained[w.Change] = w.GainedMs
			if math.Abs(w.Ms+w.GainedMs-r.Cost.MeanMs) > 1e-9 || i > 0 && w.GainedMs > r.WhatIfs[i-1].GainedMs {
				t.Errorf("%+v", w)
			}
		}
		base := mean(t, s)
		for change, sets := range map[string][]string{
			"a ReLU gate, silent neurons skipped": {"activation=relu"},
			"per-layer embeddings half as wide":   {"activation=swiglu", "ple_dim=32"},
			"half the vocabulary":                 {"activation=swiglu", "vocab_size=2048"},
			"half the neurons":                    {"activation=swiglu", "d_ff=160"},
			"2 bits in the output layer":          {"activation=swiglu", "quant.classes.embedding.bits=2"},
			"2 bits in every product":             {"activation=swiglu", "quant.classes.embedding.bits=2", "quant.classes.trunk.bits=2"},
			"groups of 128":                       {"activation=swiglu", "quant.weights.group=128"},
			"a scale a row":                       {"activation=swiglu", "quant.weights.group=0"},
			"16-bit scales":                       {"activation=swiglu", "quant.weights.scale=f16"},
		} {
			other := subject(t, chip, profile, sets...)
			other.FullHead = true
			if want := base - mean(t, other); math.Abs(gained[change]-want) > 1e-9 || want <= 0 {
				t.Errorf("%s, %s: gains %v, by hand %v", profile, change, gained[change], want)
			}
		}
		searched := subject(t, chip, profile, "activation=swiglu")
		searched.Searched = true
		if want := base - mean(t, searched); math.Abs(gained["the output layer searched instead of read in full"]-want) > 1e-9 {
			t.Errorf("%s: a search gains %v, by hand %v", profile, gained["the output layer searched instead of read in full"], want)
		}
		r, err = searched.Report(0, 255)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.WhatIfs, func(w WhatIf) bool { return w.Change == "the output layer read in full instead of searched" })
		if i < 0 || math.Abs(r.WhatIfs[i].Ms-base) > 1e-9 {
			t.Errorf("%s: read in full, by hand %v: %+v", profile, base, r.WhatIfs)
		}
		for _, change := range []string{"120 MHz PSRAM, where the board bears it", "64 KB more SRAM for weights"} {
			if gained[change] <= 0 {
				t.Errorf("%s: %s gains %v", profile, change, gained[change])
			}
		}
		if !slices.ContainsFunc(r.WhatIfs, func(w WhatIf) bool { return strings.Contains(w.Change, " in SRAM, for ") && w.GainedMs > 0 }) {
			t.Errorf("no tensor gains in SRAM: %+v", r.WhatIfs)
		}
	}
	// What is there already is no change.
	s := subject(t, chip, "", "quant.weights.scale=f16", "quant.weights.group=0")
	s.Searched = true
	r, err := s.Report(0, 255)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.WhatIfs {
		if slices.Contains([]string{"16-bit scales", "groups of 128", "a scale a row", "a ReLU gate, silent neurons skipped",
			"the output layer searched instead of read in full"}, w.Change) {
			t.Errorf("%+v", w)
		}
	}
}

// given is a share; -1: none.
func given(share float64) *float64 {
	if share == -1 {
		return nil
	}
	return &share
}

// Shares that are assumed count: fewer neurons, fewer rows, a head or a feed-forward read in full.
func TestAssumptions(t *testing.T) {
	chip := esp32s3(t)
	on := func(profile string, neurons, rows float64, full, dense bool) float64 {
		s := subject(t, chip, profile)
		if err := s.Assume(given(neurons), given(rows)); err != nil {
			t.Fatal(err)
		}
		s.FullHead, s.Dense = full, dense
		return mean(t, s)
	}
	with := func(neurons, rows float64, full, dense bool) float64 { return on("", neurons, rows, full, dense) }
	base := with(-1, -1, false, false)
	if a := with(0.1, -1, false, false); a >= base {
		t.Errorf("%v ms with fewer neurons, %v as assumed", a, base)
	}
	if a, b := with(-1, 0.05, false, false), with(-1, 0.2, false, false); a >= b || b <= base {
		t.Errorf("%v ms with fewer rows, %v with more, %v with all of them as the engine on the chip reads them", a, b, base)
	}
	if a := with(-1, -1, true, false); math.Abs(a-base) > 1e-9 {
		t.Errorf("%v ms with the full head, %v where a search is not made", a, base)
	}
	if a := with(-1, -1, false, true); a <= base {
		t.Errorf("%v ms with every neuron, %v with less", a, base)
	}
	if a, b := on(PublishedProfile, -1, -1, true, false), on(PublishedProfile, -1, -1, false, false); a <= b {
		t.Errorf("%v ms with the full head, %v with less", a, b)
	}
	if chip.Profiles[0].Reads.Neurons.Value == 0.1 {
		t.Error("the target was changed")
	}
	for _, bad := range [][2]float64{{1.5, -1}, {-1, 2}, {math.NaN(), -1}, {-0.5, -1}, {-1, -0.01}} {
		if err := subject(t, chip, "").Assume(given(bad[0]), given(bad[1])); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// trained saves a run of a small model, and gives the folder of the runs and the model file.
func trained(t *testing.T) (runs, model string) {
	t.Helper()
	model = filepath.Join(t.TempDir(), "small.yaml")
	text := `name: small
vocab_size: 1024
d_model: 40
n_layers: 2
n_heads: 2
d_ff: 72
context_length: 24
ple_dim: 6
tie_embeddings: true
activation: relu
qk_norm: true
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {batch_tokens: 48, micro_batch: 2}
`
	if err := os.WriteFile(model, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(model)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		return yield([]byte("Once upon a time there was a little girl. The little girl was once in the park."))
	}, 262)
	if err != nil {
		t.Fatal(err)
	}
	w := arch.InitWeights(c, 1)
	rng := rand.New(rand.NewPCG(2, 3))
	ck := &checkpoints.Checkpoint{Config: c, Tokenizer: tok.JSON(), Tensors: map[string][]float32{}}
	for i, x := range w.Tensors {
		for j := range w.Data[i] {
			w.Data[i][j] += 0.2 * (rng.Float32() - 0.5)
		}
		ck.Tensors[x.Name] = w.Data[i]
	}
	ck.State.Step, ck.State.Tokens = 7, 12345
	runs = filepath.Join(t.TempDir(), "runs")
	if _, err := checkpoints.Save(filepath.Join(runs, "small"), ck, 2); err != nil {
		t.Fatal(err)
	}
	return runs, model
}

// A checkpoint, its export and the image alone are one model: the first two with what was measured, to the same figure that
// the export itself plans with; image and model file with what is assumed.
func TestSources(t *testing.T) {
	runs, model := trained(t)
	out := filepath.Join(t.TempDir(), "out")
	c := export.Command()
	c.SetArgs([]string{"--runs", runs, "--out", out})
	c.SetOut(&bytes.Buffer{})
	c.SetErr(&bytes.Buffer{})
	if err := c.ExecuteContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	var plan placement.Layout
	text, err := os.ReadFile(filepath.Join(out, export.PlacementJSON))
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.clm")
	image, err := os.ReadFile(filepath.Join(out, export.ImageFile))
	if err == nil {
		err = os.WriteFile(alone, image, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*Report{}
	for name, args := range map[string][]string{
		"newest": nil, "folder": {out}, "image": {filepath.Join(out, export.ImageFile)},
		"alone": {alone}, "model": {model}, "set": {"small", "--set", "d_ff=72"},
	} {
		text, notes, err := execute(t, append(args, "--json", "--runs", runs)...)
		if err != nil {
			t.Fatalf("%s: %v %s", name, err, notes)
		}
		var r Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		got[name] = &r
	}
	for _, name := range []string{"newest", "folder", "image"} {
		r := got[name]
		if math.Abs(r.Cost.MeanMs/plan.Cost.MeanMs-1) > 1e-9 || r.Measured.Assumed || !strings.Contains(r.Reads, "measured on text") {
			t.Errorf("%s: %v ms, the export planned %v; %s", name, r.Cost.MeanMs, plan.Cost.MeanMs, r.Reads)
		}
	}
	for name, from := range map[string]string{"newest": "the checkpoint just now", "folder": "placement.json beside the image"} {
		if !strings.Contains(got[name].Reads, from) {
			t.Errorf("%s: no %q in %s", name, from, got[name].Reads)
		}
	}
	for _, name := range []string{"alone", "model", "set"} {
		if r := got[name]; !r.Measured.Assumed || strings.Contains(r.Reads, "placement.json") || !strings.Contains(r.Reads, "assumed, not measured") {
			t.Errorf("%s: %s", name, r.Reads)
		}
	}
	if _, _, err := execute(t, "small", "--runs", runs, "--neurons", "0.5"); err == nil || !strings.Contains(err.Error(), "was measured") {
		t.Errorf("an assumption beside a measurement: %v", err)
	}
	if err := os.WriteFile(filepath.Join(out, export.PlacementJSON), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t, out); err == nil || !strings.Contains(err.Error(), "export again") {
		t.Errorf("a broken plan: %v", err)
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "board.json")
	if err := os.WriteFile(file, []byte(board), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "mine.yaml")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"combo.yaml"}, []string{"combo on ESP32-S3", `profile "ours"`, "assumed, not measured", "What would help", "mean of the positions 0 to 255", "120 MHz PSRAM"}},
		{[]string{"combo", "--positions", "4-103", "--profile", "study", "--runs", dir}, []string{"positions 4 to 103", `profile "study"`, "head search"}},
		{[]string{"demo.yaml", "--target", "host"}, []string{"plain host"}},
		{[]string{"combo.yaml", "--set", "vocab_size=8192", "--neurons", "0.1", "--full-head"}, []string{"the full head and 32 open neurons"}},
		{[]string{"--published"}, []string{"3 of 14 figures gave 3 parameters", "calibrates", "-5.0 %  missed"}},
		{[]string{"--calibrate", file}, []string{"kind: measured", "firmware 1f3a", "two_cores"}[:2]},
		{[]string{"--calibrate", file, "--out", mine}, nil},
		{[]string{"combo.yaml", "--target", mine}, []string{"combo on ESP32-S3"}},
		{[]string{"combo.yaml", "--calibrate", file}, []string{"position  measured ms  model ms", "255       13.500"}},
	} {
		text, notes, err := execute(t, c.args...)
		if err != nil {
			t.Fatalf("%v: %v %s", c.args, err, notes)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in\n%s", c.args, w, text)
			}
		}
		if c.args[0] == "--calibrate" {
			continue // a file, not a table
		}
		for _, line := range strings.Split(text, "\n") {
			if len(line) > 100 || strings.HasSuffix(line, " ") {
				t.Errorf("%v: a line of %d: %q", c.args, len(line), line)
			}
		}
	}
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"combo.yaml", "--profile", "theirs"}, "esp32s3 has ours, study", true},
		{[]string{"combo.yaml", "--positions", "4"}, `--positions "4": give the first and the last`, true},
		{[]string{"combo.yaml", "--positions", "4-300"}, "the context has the positions 0-255", true},
		{[]string{"combo.yaml", "--neurons", "2"}, "--neurons 2: a share between 0 and 1", true},
		{[]string{"combo.yaml", "--published"}, "takes neither a model", true},
		{[]string{"combo.yaml", "--out", "x"}, "--out is for --calibrate", true},
		{[]string{""}, "CHECKPOINT is empty", true},
		{[]string{"--calibrate", ""}, "--calibrate is empty", true},
		{[]string{"combo.yaml", "--calibrate", ""}, "--calibrate is empty", true},
		{[]string{"--calibrate", "x.json", "--out", ""}, "--out is empty", true},
		{[]string{"combo.yaml", "--target", ""}, "--target is empty", true},
		{[]string{"combo.yaml", "--target", "esp8266"}, `no target "esp8266"`, false},
		{[]string{"combo.yaml", "--set", "d_modle=4"}, "did you mean d_model?", false},
		{[]string{"combo.yaml", "--set", "vocab_size=65536", "--set", "ple_dim=256"}, "does not fit", false},
		{[]string{filepath.Join(dir, "none.yaml")}, "no model file", false},
		{[]string{file}, "board.json", false},
		{[]string{filepath.Join(dir, "none.clm")}, "none.clm", false},
		{[]string{"--calibrate", filepath.Join(dir, "none")}, "benchmark: ", false},
		{[]string{"--calibrate", mine}, "not a usable benchmark", false},
		{[]string{"--calibrate", file, "--out", mine}, "remove that file, or choose another name", false},
		{[]string{"--calibrate", file, "--target", "host"}, `target is "esp32s3"`, false},
		{[]string{"combo.yaml", "--dense", "--neurons", "0.2"}, "--dense and --neurons contradict", true},
		{[]string{"combo.yaml", "--full-head", "--head-rows", "0.2"}, "--full-head and --head-rows contradict", true},
		{[]string{"combo.yaml", "--neurons", "-1"}, "--neurons -1: a share between 0 and 1", true},
		{[]string{"combo.yaml", "--set", "activation=swiglu", "--neurons", "0.2"}, "no ReLU gate", true},
		{[]string{"combo.yaml", "--set", "vocab_size=512", "--head-rows", "0.2"}, "is not searched", true},
		{[]string{"--published", "--positions", "4-203"}, "--positions is for the estimate of a model", true},
		{[]string{"--calibrate", file, "--dense"}, "--dense is for the estimate of a model", true},
	} {
		_, _, err := execute(t, c.args...)
		var coded interface{ ExitCode() int }
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &coded) != c.usage {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The table has what gains, each once; what gains little, or comes to the same, is named below it.
func TestWhatHelpsIsShownOnce(t *testing.T) {
	r := &Report{WhatIfs: []WhatIf{{"groups of 128", 9, 1, true}, {"a scale a row", 9, 1, true}, {"a faster clock", 9, 1, false},
		{"little", 9.96, 0.04, false}, {"worse", 11, -1, true}}}
	r.Cost.MeanMs = 10
	var b strings.Builder
	r.printWhatIfs(&b)
	shown, others, _ := strings.Cut(b.String(), "Tried too")
	for change, want := range map[string]bool{"groups of 128": true, "a scale a row": false, "a faster clock": true, "little": false, "worse": false} {
		if strings.Contains(shown, change) != want || strings.Contains(others, change) == want {
			t.Errorf("%s shown: %v\n%s", change, !want, b.String())
		}
	}
	b.Reset()
	r.WhatIfs = r.WhatIfs[4:]
	if r.printWhatIfs(&b); strings.Contains(b.String(), "What would help") || !strings.Contains(b.String(), "worse") {
		t.Error(b.String())
	}
}

// What is said of head and neurons is said of each alone.
func TestDescribe(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "the full head and 64 open neurons a layer (assumed, not measured)"},
		{"--dense", "the full head and every neuron (nothing is assumed)"},
		{"--dense --head-rows 0.5", "2,048 of the head's rows (assumed, not measured) and every neuron"},
		{"--head-rows 0.5", "2,048 of the head's rows and 64 open neurons a layer (assumed, not measured)"},
		{"--neurons 0", "the full head and 0 open neurons a layer (assumed, not measured)"},
	} {
		out, _, err := execute(t, append([]string{"combo.yaml"}, strings.Fields(c.args)...)...)
		if err != nil || !strings.Contains(out, "\n"+c.want+"\n") {
			t.Errorf("%s: %v, no %q in\n%s", c.args, err, c.want, out)
		}
	}
}

// Where the flash partition has no room for what a search needs, a configuration is planned as exports and imports plan it:
// with the head read whole, and a note.
func TestNoRoomForTheSearch(t *testing.T) {
	var sets []string
	for _, x := range append(slices.Clone(shapes["esp32-ai"]), "quant.weights.scale=f16") {
		sets = append(sets, "--set", x)
	}
	for args, want := range map[string]bool{"": true, "--head-rows 0.1": true, "--full-head": false} {
		out, _, err := execute(t, slices.Concat([]string{"combo.yaml"}, sets, strings.Fields(args))...)
		if err != nil || !strings.Contains(out, "the full head and every neuron") ||
			strings.Contains(out, "note: the head is read whole: what a search of it needs takes 1,1") != want {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	// With wider scales not even that fits, and the error says what does; a model that is far too large gets no such hint.
	const hint = "with which it fits (--set quant.weights.scale=f16)"
	_, _, err := execute(t, append([]string{"combo.yaml", "--set", "quant.weights.scale=f32"}, sets[:len(sets)-2]...)...)
	if err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("esp32-ai's shape with wide scales: %v", err)
	}
	_, _, err = execute(t, "combo.yaml", "--set", "vocab_size=65536", "--set", "ple_dim=256")
	if err == nil || strings.Contains(err.Error(), hint) {
		t.Errorf("a model far too large: %v", err)
	}
	if out, _, err := execute(t, "combo.yaml", "--head-rows", "0.1"); err != nil || strings.Contains(out, "note:") {
		t.Errorf("combo: %v\n%s", err, out)
	}
}
