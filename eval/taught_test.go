package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/train"
)

// A released model teaches as the run that it was made of does: training gives the same weights, since what is asked of a
// teacher is what its quantised weights say. So it does after a stop, and its pupil's release names it.
func TestReleasedModelTeaches(t *testing.T) {
	run, stories := releasableRun(t, tinyModel)
	root := t.TempDir()
	if _, err := call(t, ReleaseCommand(), run, "--name", "wise", "--text-licence", "MIT", "--out", filepath.Join(root, "models", "wise")); err != nil {
		t.Fatal(err)
	}
	s := released.New(os.DirFS(filepath.Join(root, "models")))
	t.Setenv(shards.CacheVariable, t.TempDir())
	config := filepath.Join(root, "pupil.yaml")
	if err := os.WriteFile(config, []byte(strings.Replace(tinyModel, "name: tiny", "name: pupil", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(root, "runs")
	learn := func(args ...string) *train.Summary {
		t.Helper()
		return learnWith(t, s, append([]string{"--out", runs}, args...)...)
	}
	fresh := func(name, teacher string) *train.Summary {
		return learn("--config", config, "--name", name, "--corpus", "builtin:1:50", "--valid", stories, "--teacher", teacher,
			"--set", "train.distill=0.5", "--set", "train.tokens=288", "--set", "train.batch_tokens=72", "--set", "train.micro_batch=1")
	}
	want := fresh("of-run", run)
	got := fresh("of-release", "wise")
	if got.ModelSHA256 != want.ModelSHA256 {
		t.Errorf("the release teaches %.12s, its run %.12s", got.ModelSHA256, want.ModelSHA256)
	}
	ck, err := checkpoints.LoadModel(got.Run)
	if err != nil {
		t.Fatal(err)
	}
	if ck.State.Teacher != "released/wise" || ck.State.TeacherHash == "" {
		t.Errorf("the checkpoint says its teacher is %q, %q", ck.State.Teacher, ck.State.TeacherHash)
	}
	again := learn("--resume=of-release", "--force", "--set", "train.tokens=576")
	if again.Step != 2*got.Step {
		t.Errorf("resumed, it comes to step %d, where it had %d", again.Step, got.Step)
	}
	if _, err := call(t, ReleaseCommand(), "of-release", "--runs", runs, "--name", "pupil", "--text-licence", "MIT",
		"--out", filepath.Join(root, "models", "pupil")); err != nil {
		t.Fatal(err)
	}
	card, err := os.ReadFile(filepath.Join(root, "models", "pupil", released.CardFile))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(card), "the released model wise") || !strings.Contains(string(card), "--teacher released/wise\n") {
		t.Errorf("the card does not tell of the teacher:\n%s", card)
	}
}

// learnWith is chiplm train with other released models, on one worker.
func learnWith(t *testing.T, s *released.Store, args ...string) *train.Summary {
	t.Helper()
	out, _, err := callWith(t, s, train.Command(export.Trainable), append(args, "--json", "--quiet", "--workers", "1")...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var sum train.Summary
	if err := json.Unmarshal([]byte(out), &sum); err != nil {
		t.Fatal(err)
	}
	return &sum
}
