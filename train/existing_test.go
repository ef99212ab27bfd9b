package train

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
)

// TestCheckpointsThatCannotBeReadAreNotReplaced damages a run in several ways; neither a new run nor a resume may touch
// what is left of it.
func TestCheckpointsThatCannotBeReadAreNotReplaced(t *testing.T) {
	o := tinyOptions(t)
	runUntil(t, o, "valid step=4 ")
	run := filepath.Join(o.Out, "tiny")
	dirs, err := filepath.Glob(filepath.Join(run, "step-*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for what, spoil := range map[string]func(dir string) error{
		"empty state": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, checkpoints.StateFile), nil, 0o644)
		},
		"newer state": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, checkpoints.StateFile), []byte(`{"version": 999}`), 0o644)
		},
		"no mark": func(dir string) error { return os.RemoveAll(filepath.Join(dir, checkpoints.DoneFile)) },
	} {
		for _, dir := range dirs {
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, o, "holds a run already", "--name")
		refused(t, Options{Out: o.Out, Resume: true, Run: "tiny"}, run)
		refused(t, Options{Out: o.Out, Resume: true, Run: run}, run)
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, checkpoints.ModelFile)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
}

func TestRunGivesItsNameToTheModel(t *testing.T) {
	o := tinyOptions(t)
	o.Name = "second"
	runUntil(t, o, "valid step=4 ")
	resume := Options{Config: o.Config, Out: o.Out, Resume: true, Run: "second"} // the model file says tiny
	runUntil(t, resume, "valid step=8 ")
	c, err := checkpoints.Load(filepath.Join(o.Out, "second"))
	if err != nil || c.State.Step != 8 || c.Config.Name != "second" {
		t.Errorf("step %d is of a model named %q (%v)", c.State.Step, c.Config.Name, err)
	}
}
