package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/targets"
)

// releasableRun is a run with a training text, as release wants it.
func releasableRun(t *testing.T, model string) (run, stories string) {
	t.Helper()
	t.Setenv(shards.CacheVariable, t.TempDir())
	dir, stories := tinyRunOf(t, "name: small\n"+model, nil)
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	info := data.Builtin(1, 50).Info()
	ck.State.Corpus, ck.State.CorpusHash, ck.State.Tokens = info.Path, info.SHA256, 24000
	if ck.Config.Experts > 0 { // one of the models has learned from another
		ck.Config.Train.Distill, ck.Config.Train.DistillStart = 0.25, 0.5
		ck.State.Teacher, ck.State.TeacherHash = filepath.Join(dir, "big-one", "step-00000007"), strings.Repeat("5a", 32)
	}
	run = filepath.Join(t.TempDir(), "runs", "small")
	if _, err := checkpoints.Save(run, ck, 1); err != nil {
		t.Fatal(err)
	}
	return run, stories
}

// callWith is call with other released models, and gives standard error too.
func callWith(t *testing.T, s *released.Store, cmd *cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(released.With(context.Background(), s))
	return out.String(), errs.String(), err
}

// A release of every kind of model works without its run: it writes the recorded text, scores the recorded score, agrees
// with the training graph to the bit, and gives an image for every chip that passes all checks.
func TestRelease(t *testing.T) {
	for name, model := range map[string]string{
		"f32 groups": tinyModel,
		"clipped":    strings.Replace(tinyModel, "bits: 4, group: 32", "bits: 4, group: 32, scale: f16, clip: 0.92", 1),
		"f16 rows":   strings.Replace(tinyModel, "bits: 4, group: 32", "bits: 4, group: 0, scale: f16", 1),
		"mixed": strings.Replace(tinyModel, "quant: {weights: {bits: 4, group: 32}}",
			"experts: 2\ntie_embeddings: false\nquant: {weights: {bits: 4, group: 32}, classes: {ple_table: {bits: 2}, head: {bits: 8}}}", 1),
	} {
		t.Run(name, func(t *testing.T) {
			run, stories := releasableRun(t, model)
			root := t.TempDir()
			var before released.Facts
			for i, dir := range []string{"one", "two"} {
				out, err := call(t, ReleaseCommand(), run, "--name", "small", "--text-licence", "MIT", "--out", filepath.Join(root, dir, "small"), "--json")
				if err != nil {
					t.Fatal(err)
				}
				var r struct{ Facts released.Facts }
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatal(err)
				}
				if i > 0 && r.Facts.Files[released.ImageFile] != before.Files[released.ImageFile] {
					t.Error("two releases differ")
				}
				before = r.Facts
			}
			checkTeacher(t, filepath.Join(root, "one", "small"), &before, name == "mixed")
			for _, file := range []string{released.ImageFile, released.ConfigFile, released.TokenizerFile, released.CardFile, released.FactsFile} {
				one, err1 := os.ReadFile(filepath.Join(root, "one", "small", file))
				two, err2 := os.ReadFile(filepath.Join(root, "two", "small", file))
				if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
					t.Errorf("%s differs between two releases of one run (%v, %v)", file, err1, err2)
				}
				if bytes.Contains(one, []byte(filepath.Dir(stories))) {
					t.Errorf("%s tells where the stories lay", file)
				}
			}
			if err := os.RemoveAll(filepath.Dir(run)); err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			s := released.New(os.DirFS(filepath.Join(root, "one")))
			holdsWhatItSays(t, s, "small")

			out, _, err := callWith(t, s, Command(), "bpb", "--model", "small", "--stories", stories, "--json")
			if err != nil {
				t.Fatal(err)
			}
			var r Report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			if got := r.Models[0]; got.BitsPerByte != before.Score.BitsPerByte || got.Path != "released/small" {
				t.Errorf("it scores %v at %s, the facts say %v", got.BitsPerByte, got.Path, before.Score.BitsPerByte)
			}
			out, _, err = callWith(t, s, VerifyCommand(), "small", "--stories", stories, "--json")
			if err != nil {
				t.Fatal(err)
			}
			var v Verification
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatal(err)
			}
			if !v.Passed || v.EngineDigest != v.GraphDigest || v.EqualShare != 1 {
				t.Errorf("engine and graph: %+v", v)
			}
			if _, _, err := callWith(t, s, VerifyCommand(), "small"); err == nil || !strings.Contains(err.Error(), "--stories") {
				t.Errorf("without stories: %v", err)
			}
		})
	}
}

// checkTeacher wants facts and card to name the teacher, by its run and not by where it lay.
func checkTeacher(t *testing.T, dir string, f *released.Facts, taught bool) {
	t.Helper()
	card, err := os.ReadFile(filepath.Join(dir, released.CardFile))
	if err != nil {
		t.Fatal(err)
	}
	if !taught {
		if f.Training.Teacher != nil || bytes.Contains(card, []byte("| teacher |")) {
			t.Errorf("a teacher without one: %+v", f.Training.Teacher)
		}
		return
	}
	want := released.Teacher{Run: "big-one", ModelSHA256: strings.Repeat("5a", 32), Share: 0.25, From: 0.5}
	if f.Training.Teacher == nil || *f.Training.Teacher != want || !bytes.Contains(card, []byte("| teacher | the run big-one")) ||
		!bytes.Contains(card, []byte("--teacher checkpoints/runs/big-one\n")) {
		t.Errorf("teacher %+v, card:\n%s", f.Training.Teacher, card)
	}
}

// holdsWhatItSays checks a released model by what it does: its golden, its sample, its tokenizer, and its exports for all
// chips there are.
func holdsWhatItSays(t *testing.T, s *released.Store, name string) {
	t.Helper()
	m, err := s.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	im, err := engine.NewImage(m.Image)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if err := engine.Verify(im); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(im.Config(), m.Config) {
		t.Error("the configuration in the image is not the one beside it")
	}
	inside, err := bpe.FromImage(im.Tokenizer())
	if err != nil {
		t.Fatal(err)
	}
	if inside.Hash() != m.TokenizerSHA256 || !bytes.Equal(inside.JSON(), m.Tokenizer) {
		t.Error("the tokenizer in the image is not the one beside it")
	}
	if _, err := configs.Parse(released.ConfigFile, m.Config); err != nil {
		t.Error(err)
	}
	out, _, err := callWith(t, s, SampleCommand(), "--model", released.Prefix+name, "--prompt", m.Sample.Prompt)
	if want := m.Sample.Prompt + m.Sample.Text + "\n"; err != nil || strings.ToValidUTF8(out, "\ufffd") != want {
		t.Errorf("it writes %q (%v), the recorded text is %q", out, err, want)
	}
	for _, target := range targets.Builtin() {
		dir := filepath.Join(t.TempDir(), target)
		if _, _, err := callWith(t, s, export.Command(), "--model", released.Prefix+name, "--target", target, "--out", dir); err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if out, _, err := callWith(t, s, export.ImageCommand(), "check", dir); err != nil || !strings.Contains(out, "verified") {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
		manifest, err := export.ReadManifest(dir)
		if err != nil || manifest.Digest != m.Digest || manifest.Run != released.Prefix+name || manifest.ModelHash != m.ModelSHA256 {
			t.Errorf("%s: %+v, %v", target, manifest, err)
		}
	}
}

// Every model that the program carries does what its facts say.
func TestEmbeddedModels(t *testing.T) {
	s := released.Embedded()
	for _, name := range s.Names() {
		t.Run(name, func(t *testing.T) { holdsWhatItSays(t, s, name) })
	}
}

// Where nothing was trained, sample takes a released model and says so; a run of the same name goes before it.
func TestSampleTakesReleased(t *testing.T) {
	run, _ := releasableRun(t, tinyModel)
	root := t.TempDir()
	if _, err := call(t, ReleaseCommand(), run, "--name", "small", "--text-licence", "MIT", "--out", filepath.Join(root, "small")); err != nil {
		t.Fatal(err)
	}
	s := released.New(os.DirFS(root))
	t.Chdir(t.TempDir())
	if out, notes, err := callWith(t, s, SampleCommand(), "--tokens", "3"); err != nil || out == "" || !strings.Contains(notes, "the released model small") {
		t.Errorf("%q, %q, %v", out, notes, err)
	}
	if _, notes, err := callWith(t, s, SampleCommand(), "small", "--tokens", "3", "--runs", filepath.Dir(run)); err != nil || !strings.Contains(notes, "your own small") {
		t.Errorf("%q, %v", notes, err)
	}
	if _, _, err := callWith(t, s, SampleCommand(), "smal", "--tokens", "3"); err == nil || !strings.Contains(err.Error(), "did you mean small?") {
		t.Errorf("an unknown name: %v", err)
	}
	if _, _, err := callWith(t, s, export.Command(), "small", "--bits", "2"); !errors.Is(err, export.ErrReleased) {
		t.Errorf("quantised otherwise: %v", err)
	}
	// Twice into the default folder: the same export is replaced.
	for range 2 {
		if _, _, err := callWith(t, s, export.Command(), "small", "--target", "host"); err != nil {
			t.Error(err)
		}
	}
	if _, notes, err := callWith(t, s, export.Command(), "small", "--target", "host", "--runs", filepath.Dir(run)); !errors.Is(err, export.ErrOther) {
		t.Errorf("the run of the same name into the same folder: %v, %s", err, notes)
	}
}

// What is no release is not overwritten, and a run whose texts are gone or changed gives none.
func TestReleaseRefuses(t *testing.T) {
	run, _ := releasableRun(t, tinyModel)
	dir := filepath.Join(t.TempDir(), "small")
	tryRelease := func(args ...string) error {
		_, err := call(t, ReleaseCommand(), append([]string{run, "--out", dir, "--text-licence", "MIT"}, args...)...)
		return err
	}
	if err := tryRelease("--name", "small"); err != nil {
		t.Fatal(err)
	}
	if err := tryRelease("--name", "small"); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := tryRelease("--name", "other"); !errors.Is(err, export.ErrRelease) {
		t.Errorf("another model there: %v", err)
	}
	for _, args := range [][]string{{"--name", "a/b"}, {"--name", ".."}, {"--name="}, {"--text-licence="}, {"--out="}, {"--workers", "0"}, {"--n", "-1"}} {
		var coded interface{ ExitCode() int }
		if err := tryRelease(args...); !errors.As(err, &coded) || coded.ExitCode() != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	thesis := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(thesis, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := tryRelease("--name", "small"); !errors.Is(err, export.ErrRelease) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("a file of the user's: %v", err)
	}
	if _, err := os.Stat(thesis); err != nil {
		t.Error(err)
	}

	dir = filepath.Join(t.TempDir(), "small")
	for name, change := range map[string]func(*checkpoints.State){
		"gone":    func(s *checkpoints.State) { s.Corpus = "nowhere.txt" },
		"changed": func(s *checkpoints.State) { s.CorpusHash = strings.Repeat("0", 64) },
		"stories": func(s *checkpoints.State) { s.ValidHash = strings.Repeat("0", 64) },
	} {
		ck, err := checkpoints.LoadModel(run)
		if err != nil {
			t.Fatal(err)
		}
		change(&ck.State)
		opt := ReleaseOptions{Name: "small", Folder: dir, Licence: "MIT", Prompt: "Once", Workers: 1,
			Progress: func(string) (func(int64, int64), func()) { return func(int64, int64) {}, func() {} }}
		if _, _, err := release(t.Context(), ck, opt, io.Discard); err == nil {
			t.Errorf("%s: released", name)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

// A store may be empty, as it is before the first release: the commands say what they said without it.
func TestNoReleasedModels(t *testing.T) {
	t.Chdir(t.TempDir())
	none := released.New(fstest.MapFS{})
	if _, _, err := callWith(t, none, SampleCommand()); !errors.Is(err, checkpoints.ErrNone) {
		t.Errorf("%v", err)
	}
}
