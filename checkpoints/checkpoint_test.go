package checkpoints

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chiplm/chiplm/configs"
)

const tinyModel = `vocab_size: 260
d_model: 4
n_layers: 1
n_heads: 2
d_ff: 6
context_length: 8
ple_dim: 2
train: {batch_tokens: 16, micro_batch: 2}
`

func parse(t testing.TB, text string, sets ...string) *configs.Config {
	t.Helper()
	c, err := configs.Parse("tiny.yaml", []byte(text), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sample is a checkpoint whose every value follows from the step.
func sample(t testing.TB, step int) *Checkpoint {
	t.Helper()
	return sampleOf(parse(t, tinyModel), step)
}

func sampleOf(config *configs.Config, step int) *Checkpoint {
	c := &Checkpoint{
		Config:    config,
		Tokenizer: []byte(`{"version": "1.0"}`),
		Tensors:   map[string][]float32{},
		Moments:   map[string][]float32{},
		State: State{Step: step, Tokens: int64(step) * 16, Sequences: int64(step) * 2, CorpusHash: "c0", Corpus: "builtin:1",
			Valid: "/tmp/valid.txt", ValidHash: "v0", BestValid: 1.5, LastLoss: 2.25, Workers: 2, CreatedBy: "test"},
	}
	for i, tensor := range config.Tensors() {
		c.Tensors[tensor.Name] = ramp(tensor.Len(), float32(step)+float32(i)/8)
		c.Moments["m."+tensor.Name] = ramp(tensor.Len(), float32(step)-1)
		c.Moments["v."+tensor.Name] = ramp(tensor.Len(), float32(step)*2)
	}
	return c
}

func ramp(n int, start float32) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = start + float32(i)/1024
	}
	return data
}

func mustSave(t *testing.T, run string, c *Checkpoint, keep int) string {
	t.Helper()
	dir, err := Save(run, c, keep)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// mustBe loads path and compares it with what sample gives for the step.
func mustBe(t *testing.T, path string, step int) *Checkpoint {
	t.Helper()
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := sample(t, step)
	if got.State.Step != step || !reflect.DeepEqual(got.Tensors, want.Tensors) || !reflect.DeepEqual(got.Moments, want.Moments) ||
		!reflect.DeepEqual(got.Config, want.Config) || !bytes.Equal(got.Tokenizer, want.Tokenizer) {
		t.Fatalf("%s is not the checkpoint of step %d: it says step %d", path, step, got.State.Step)
	}
	return got
}

// folders lists what is in a run, lock files left out.
func folders(t *testing.T, run string) []string {
	t.Helper()
	entries, err := os.ReadDir(run)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != runLock && e.Name() != saveLock {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestSaveAndLoad(t *testing.T) {
	run := filepath.Join(t.TempDir(), "runs", "tiny")
	c := sample(t, 200)
	before := time.Now()
	dir := mustSave(t, run, c, 2)
	if dir != filepath.Join(run, "step-00000200") || c.Dir != dir {
		t.Errorf("saved to %s", dir)
	}
	got := mustBe(t, dir, 200)
	if !reflect.DeepEqual(got, c) {
		t.Errorf("have %+v\nwant %+v", got, c)
	}
	s := got.State
	if s.Serial != 1 || s.Version != stateVersion || s.SavedAt.Before(before.Add(-time.Second)) || s.ConfigHash != c.Config.Hash() || len(got.ModelSHA256) != 64 {
		t.Errorf("state %+v", s)
	}
	if from := mustBe(t, run, 200); from.Dir != dir || len(from.Notes) != 0 {
		t.Errorf("from the run: %s, %v", from.Dir, from.Notes)
	}
	model, err := LoadModel(run)
	if err != nil || model.Moments != nil || !reflect.DeepEqual(model.Tensors, c.Tensors) {
		t.Errorf("LoadModel: %v", err)
	}
}

// The weights file depends on the weights alone.
func TestSameWeightsGiveTheSameBytes(t *testing.T) {
	a, b := sample(t, 3), sample(t, 3)
	mustSave(t, t.TempDir(), a, 1)
	b.State.Workers, b.State.Corpus = 16, "elsewhere"
	mustSave(t, t.TempDir(), b, 1)
	if a.ModelSHA256 != b.ModelSHA256 {
		t.Error("hashes differ")
	}
}

func TestDoneIsASha256sumList(t *testing.T) {
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("no sha256sum here")
	}
	dir := mustSave(t, t.TempDir(), sample(t, 1), 1)
	check := exec.Command(tool, "--strict", "-c", DoneFile)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestStateKeepsLossesThatAreNotFinite(t *testing.T) {
	c := sample(t, 1)
	c.State.BestValid, c.State.LastLoss = math.Inf(1), math.NaN()
	got, err := Load(mustSave(t, t.TempDir(), c, 1))
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(got.State.BestValid, 1) || !math.IsNaN(got.State.LastLoss) {
		t.Errorf("have %v, %v", got.State.BestValid, got.State.LastLoss)
	}
}

func TestAReleasedModelHasNoMoments(t *testing.T) {
	c := sample(t, 1)
	c.Moments = nil
	dir := mustSave(t, t.TempDir(), c, 1)
	released := filepath.Join(t.TempDir(), "combo-4M")
	if err := os.CopyFS(released, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	got, err := Load(released)
	if err != nil || got.Moments != nil {
		t.Errorf("have %v, %v", got, err)
	}
}

func TestRetention(t *testing.T) {
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, "metrics.jsonl"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 5; step++ {
		mustSave(t, run, sample(t, step), 2)
	}
	if got := folders(t, run); !slices.Equal(got, []string{"metrics.jsonl", "step-00000004", "step-00000005"}) {
		t.Errorf("kept %v", got)
	}
	// A run that went back to an earlier step: the newest is the one saved last, not the one with the highest number.
	mustSave(t, run, sample(t, 2), 2)
	if got := folders(t, run); !slices.Equal(got, []string{"metrics.jsonl", "step-00000002", "step-00000005"}) {
		t.Errorf("kept %v", got)
	}
	mustBe(t, run, 2)
	// The same step again gets a folder of its own and is the newest.
	if dir := mustSave(t, run, sample(t, 2), 1); filepath.Base(dir) != "step-00000002-2" {
		t.Errorf("saved to %s", dir)
	}
	if got := folders(t, run); !slices.Equal(got, []string{"metrics.jsonl", "step-00000002-2"}) {
		t.Errorf("kept %v", got)
	}
	mustSave(t, run, sample(t, 9), 0)
	if got := folders(t, run); len(got) != 3 {
		t.Errorf("keep 0 left %v", got)
	}
}

func TestCutOffSavesArePassedOverAndCleared(t *testing.T) {
	run := t.TempDir()
	mustSave(t, run, sample(t, 1), 3)
	second := mustSave(t, run, sample(t, 2), 3)
	if err := os.Remove(filepath.Join(second, DoneFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(run, ".tmp-step-00000003-77"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := mustBe(t, run, 1)
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "step-00000002 is incomplete") || !strings.Contains(got.Notes[0], "using "+got.Dir) {
		t.Errorf("notes %q", got.Notes)
	}
	if _, err := Load(second); !errors.Is(err, ErrIncomplete) {
		t.Errorf("have %v", err)
	}
	mustSave(t, run, sample(t, 4), 3)
	if got := folders(t, run); !slices.Equal(got, []string{"step-00000001", "step-00000004"}) {
		t.Errorf("left %v", got)
	}
}

func TestNothingToLoad(t *testing.T) {
	run := t.TempDir()
	for path, want := range map[string]error{run: ErrNone, filepath.Join(run, "nowhere"): fs.ErrNotExist} {
		if _, err := Load(path); !errors.Is(err, want) {
			t.Errorf("%s: have %v", path, err)
		}
		if _, err := Newest(path); !errors.Is(err, ErrNone) {
			t.Errorf("%s: have %v", path, err)
		}
	}
	dir := mustSave(t, run, sample(t, 1), 1)
	if _, err := Load(filepath.Join(dir, ModelFile)); err == nil || !strings.Contains(err.Error(), "name the checkpoint's folder") {
		t.Errorf("have %v", err)
	}
	if err := os.Remove(filepath.Join(dir, DoneFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(run); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("have %v", err)
	}
}

func TestNewestIsByRecordedTime(t *testing.T) {
	root := t.TempDir()
	a := mustSave(t, filepath.Join(root, "a"), sample(t, 900), 2)
	b := mustSave(t, filepath.Join(root, "b"), sample(t, 3), 2)
	c := mustSave(t, filepath.Join(root, "c"), sample(t, 4), 2)
	if err := os.WriteFile(filepath.Join(root, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c, DoneFile)); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(a, later, later); err != nil {
		t.Fatal(err)
	}
	if got, err := Newest(root); got != b || err != nil {
		t.Errorf("have %s, %v; want %s", got, err, b)
	}
	if got, err := Newest(filepath.Join(root, "a")); got != a || err != nil {
		t.Errorf("have %s, %v; want %s", got, err, a)
	}
}

// Each case harms a stored checkpoint in one way.
func TestLoadRefuses(t *testing.T) {
	resign := func(t *testing.T, dir, name string) { // as if the changed file had been saved
		t.Helper()
		done, err := readDone(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		done[name] = hashOf(text)
		put(t, dir, DoneFile, done.encode())
	}
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, name, change(text))
		}
	}
	replaced := func(name, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			edit(name, func(b []byte) []byte {
				if !bytes.Contains(b, []byte(from)) {
					t.Fatalf("no %q in %s", from, b)
				}
				return bytes.Replace(b, []byte(from), []byte(to), 1)
			})(t, dir)
			resign(t, dir, name)
		}
	}
	flip := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	for _, test := range []struct {
		name string
		harm func(*testing.T, string)
		want error
		says string
	}{
		{"a flipped weight", edit(ModelFile, flip), ErrDamaged, "model.safetensors is not the file that was saved"},
		{"a flipped header", edit(ModelFile, func(b []byte) []byte { b[0] ^= 0xff; return b }), ErrDamaged, "SHA-256"},
		{"a flipped moment", edit(MomentsFile, flip), ErrDamaged, "state.safetensors"},
		{"a changed config", edit(ConfigFile, flip), ErrDamaged, "config.yaml"},
		{"a changed tokenizer", edit(TokenizerFile, flip), ErrDamaged, "tokenizer.json"},
		{"a changed state", edit(StateFile, flip), ErrDamaged, "state.json"},
		{"a truncated model", edit(ModelFile, func(b []byte) []byte { return b[:len(b)-4] }), ErrDamaged, "model.safetensors"},
		{"an empty model", edit(ModelFile, func([]byte) []byte { return nil }), ErrDamaged, "model.safetensors"},
		{"a model with a tail", edit(ModelFile, func(b []byte) []byte { return append(b, 0) }), ErrDamaged, "model.safetensors"},
		{"no model", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, ModelFile)) }, ErrDamaged, "model.safetensors is missing"},
		{"no moments", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, MomentsFile)) }, ErrDamaged, "state.safetensors is missing"},
		{"a folder for a model", func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, ModelFile))
			_ = os.Mkdir(filepath.Join(dir, ModelFile), 0o755)
		}, ErrDamaged, "not a regular file but a folder"},
		{"an empty DONE", edit(DoneFile, func([]byte) []byte { return nil }), ErrDamaged, "does not list model.safetensors"},
		{"a DONE of noise", edit(DoneFile, func([]byte) []byte { return []byte("done\n") }), ErrDamaged, "not a list of hashes"},
		{"a DONE that points outside", edit(DoneFile, func(b []byte) []byte { return bytes.Replace(b, []byte(ConfigFile), []byte("../../secret"), 1) }), ErrDamaged, "a file that no checkpoint has"},
		{"a DONE with a repeated line", edit(DoneFile, func(b []byte) []byte { return append(b, b...) }), ErrDamaged, "twice"},
		{"a model of garbage", func(t *testing.T, dir string) {
			put(t, dir, ModelFile, []byte("garbage!garbage!"))
			resign(t, dir, ModelFile)
		}, ErrFormat, "safetensors header"},
		{"a state of garbage", func(t *testing.T, dir string) { put(t, dir, StateFile, []byte("[]")); resign(t, dir, StateFile) }, ErrFormat, "state.json"},
		{"a negative step", replaced(StateFile, `"step": 7`, `"step": -7`), ErrFormat, "step -7"},
		{"a newer version", replaced(StateFile, `"version": 1`, `"version": 2`), ErrVersion, "use a newer chiplm"},
		{"another config's state", replaced(StateFile, `"config_hash": "`, `"config_hash": "0`), ErrDamaged, "another configuration"},
		{"another model's weights", func(t *testing.T, dir string) {
			other := mustSave(t, t.TempDir(), sampleOf(parse(t, tinyModel, "d_ff=8"), 7), 1)
			copyFile(t, other, dir, ModelFile)
			resign(t, dir, ModelFile)
		}, ErrTensors, "layers.0.gate is [8 4], the configuration says [6 4]"},
		{"more layers", func(t *testing.T, dir string) {
			other := mustSave(t, t.TempDir(), sampleOf(parse(t, tinyModel, "tie_embeddings=false"), 7), 1)
			copyFile(t, other, dir, ModelFile)
			resign(t, dir, ModelFile)
		}, ErrTensors, `it has "head", which this configuration does not`},
		{"a tensor missing", func(t *testing.T, dir string) {
			other := mustSave(t, t.TempDir(), sampleOf(parse(t, tinyModel, "ple_dim=0"), 7), 1)
			copyFile(t, other, dir, ModelFile)
			resign(t, dir, ModelFile)
		}, ErrTensors, "is missing"},
		{"another optimiser's moments", func(t *testing.T, dir string) {
			other := mustSave(t, t.TempDir(), sampleOf(parse(t, tinyModel, "d_ff=8"), 7), 1)
			copyFile(t, other, dir, MomentsFile)
			resign(t, dir, MomentsFile)
		}, ErrTensors, "the optimiser's m.layers.0.gate is [8 4]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := t.TempDir()
			dir := mustSave(t, run, sample(t, 7), 1)
			test.harm(t, dir)
			for _, path := range []string{dir, run} {
				_, err := Load(path)
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), dir) {
					t.Errorf("have %v\nwant %v, %q", err, test.want, test.says)
				}
			}
		})
	}
}

func put(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		t.Fatal(err)
	}
	put(t, to, name, text)
}

func TestSaveRefusesWhatLoadWould(t *testing.T) {
	for name, harm := range map[string]func(*Checkpoint){
		"a tensor missing":    func(c *Checkpoint) { delete(c.Tensors, "output_norm") },
		"a tensor too short":  func(c *Checkpoint) { c.Tensors["output_norm"] = c.Tensors["output_norm"][1:] },
		"a tensor too many":   func(c *Checkpoint) { c.Tensors["head"] = []float32{1} },
		"moments missing":     func(c *Checkpoint) { delete(c.Moments, "m.output_norm"); delete(c.Moments, "v.output_norm") },
		"a moment too short":  func(c *Checkpoint) { c.Moments["m.output_norm"] = c.Moments["m.output_norm"][1:] },
		"a moment of nothing": func(c *Checkpoint) { c.Moments["m.head"] = []float32{1} },
		"a wrong config":      func(c *Checkpoint) { c.Config.NHeads = 3 },
	} {
		run := t.TempDir()
		c := sample(t, 1)
		harm(c)
		if dir, err := Save(run, c, 1); err == nil || dir != "" {
			t.Errorf("%s: saved to %q", name, dir)
		}
		if got := folders(t, run); len(got) != 0 {
			t.Errorf("%s: left %v", name, got)
		}
	}
}

func TestLock(t *testing.T) {
	run := filepath.Join(t.TempDir(), "a", "run")
	lock, err := Lock(run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(run); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("by process ", os.Getpid())) {
		t.Errorf("have %v", err)
	}
	mustSave(t, run, sample(t, 1), 1) // the holder saves
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	lock, err = Lock(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
