package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
)

// childVariable makes the test binary run `chiplm train` with the arguments it is given.
const childVariable = "CHIPLM_TRAIN_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	cmd := Command(nil)
	cmd.SetArgs(os.Args[1:])
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestKilledRunEndsWithTheSameBytes kills a run at moments of all kinds, and resumes it each time with another number
// of workers, until it is done.
func TestKilledRunEndsWithTheSameBytes(t *testing.T) {
	o := tinyOptions(t, "train.tokens=5120", "train.save_every=1", "train.valid_every=20")
	o.Name = "whole"
	want := mustRun(t, o)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(o.Out, "killed")
	start := []string{"--config", o.Config, "--corpus", o.Corpus, "--out", o.Out, "--name", "killed", "--quiet"}
	for _, set := range o.Sets {
		start = append(start, "--set", set)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	kills := 0
	for attempt := 0; ; attempt++ {
		if attempt == 100 {
			t.Fatal("the run does not come to its end")
		}
		args := start
		if _, err := checkpoints.Newest(run); err == nil {
			args = []string{"--out", o.Out, "--resume", "killed", "--quiet"}
		}
		child := exec.Command(self, append(args, "--workers", strconv.Itoa(1+attempt%3))...)
		child.Env = append(os.Environ(), childVariable+"=1")
		output := &cancelAt{text: "\x00", cancel: func() {}}
		child.Stderr = output
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// A few kills at a random moment; from then on the run is left alone.
		if kills < 6 {
			before := newestStep(run)
			if attempt > 0 { // let it get somewhere first, so that the test ends
				waitFor(func() bool { return newestStep(run) > before+attempt })
			}
			time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			_ = child.Process.Kill() // too late is no harm: Wait tells
		}
		if err := child.Wait(); err == nil {
			break
		} else if child.ProcessState.ExitCode() >= 0 {
			t.Fatalf("attempt %d: %v\n%s", attempt, err, output.String())
		}
		kills++
	}
	if kills < 3 {
		t.Errorf("the run was killed %d times only", kills)
	}
	got, err := checkpoints.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	if got.State.Step != want.Step || got.ModelSHA256 != want.ModelSHA256 {
		t.Errorf("after %d kills: step %d, weights %s; want %d, %s", kills, got.State.Step, got.ModelSHA256, want.Step, want.ModelSHA256)
	}
	records, err := ReadMetrics(run)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, r := range records {
		if r.Loss != nil {
			if steps++; r.Step != steps {
				t.Fatalf("the metrics have step %d in the place of %d", r.Step, steps)
			}
		}
	}
	if steps != want.Step {
		t.Errorf("the metrics have %d steps", steps)
	}
	left, err := filepath.Glob(filepath.Join(run, ".*-*"))
	if err != nil || len(left) > 1 { // .save-lock
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// newestStep is the step of a run's newest checkpoint, 0 when there is none.
func newestStep(run string) int {
	dir, err := checkpoints.Newest(run)
	if err != nil {
		return 0
	}
	var step int
	if _, err := fmt.Sscanf(filepath.Base(dir), "step-%d", &step); err != nil {
		return 0
	}
	return step
}

// waitFor waits until something holds, at most half a minute.
func waitFor(holds func() bool) {
	for end := time.Now().Add(30 * time.Second); !holds() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}
