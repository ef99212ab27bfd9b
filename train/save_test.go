package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
)

// tinySaver is the saver of a run that has begun, its trainer, and the way to end both.
func tinySaver(t *testing.T) (*saver, *Trainer) {
	t.Helper()
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	s, err := openSession(t.Context(), tinyOptions(t), newClock(), say)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	weights := arch.InitWeights(s.cfg, 1)
	tr, err := NewTrainer(s.cfg, weights.Data, ArchBuilder(s.cfg, weights), fakeFor(s.cfg), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return newSaver(s, tr, say), tr
}

// TestTrainingGoesOnWhileACheckpointIsWritten: what changes after save is not in the checkpoint.
func TestTrainingGoesOnWhileACheckpointIsWritten(t *testing.T) {
	save, tr := tinySaver(t)
	for step := range 3 {
		if _, err := tr.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[string][]float32{}
		for _, p := range tr.params {
			want[p.name] = slices.Clone(p.weights)
		}
		state := cloneState(tr.solver)
		if err := save.save(); err != nil {
			t.Fatal(err)
		}
		changing := tr.solver.moments()
		for _, p := range tr.params {
			changing = append(changing, moment{data: p.weights})
		}
		for _, x := range changing {
			for j := range x.data {
				x.data[j]++
			}
		}
		if err := save.wait(); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoints.Load(save.dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.State.Step != step+1 || c.ModelSHA256 != save.sum {
			t.Errorf("step %d: the checkpoint is of step %d, its weights %.8s, not %.8s", step+1, c.State.Step, c.ModelSHA256, save.sum)
		}
		if !reflect.DeepEqual(c.Tensors, want) || !reflect.DeepEqual(c.Moments, state) {
			t.Errorf("step %d: it has changed while it was written", step+1)
		}
	}
}

// TestAFailedWriteIsToldAndTriedAgain: an error comes from wait, from failed or from the next save, whichever is first.
func TestAFailedWriteIsToldAndTriedAgain(t *testing.T) {
	save, _ := tinySaver(t)
	if err := os.RemoveAll(save.session.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(save.session.dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	told := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "run folder") || save.dir != "" {
			t.Errorf("got %v, the newest checkpoint is %q", err, save.dir)
		}
	}
	begin := func() {
		t.Helper()
		if err := save.save(); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	told(save.wait())
	begin()
	w := <-save.pending
	save.pending <- w
	told(save.failed())
	if err := save.failed(); err != nil {
		t.Errorf("told twice: %v", err)
	}
	begin()
	save.best = 1 // a checkpoint that knows of this is another
	told(save.save())
	if err := os.Remove(save.session.dir); err != nil {
		t.Fatal(err)
	}
	begin()
	if err := save.wait(); err != nil || save.dir == "" {
		t.Errorf("%v, saved %q", err, save.dir)
	}
}

// onText is a log that does something when it shows a text.
type onText struct {
	text string
	do   func()
}

func (o *onText) Write(p []byte) (int, error) {
	if o.do != nil && strings.Contains(string(p), o.text) {
		o.do()
		o.do = nil
	}
	return len(p), nil
}

func TestARunThatCannotSaveEnds(t *testing.T) {
	for _, at := range []string{"valid step=4 ", "valid step=12 "} { // a save is under way; none is left but the last
		o := tinyOptions(t)
		dir := filepath.Join(o.Out, "tiny")
		// Who meets it first, a save or the metrics, and whether between the two, is chance.
		_, err := Run(context.Background(), o, &onText{at, func() {
			if err := os.Rename(dir, dir+"-moved"); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(dir, nil, 0o644); err != nil {
				t.Error(err)
			}
		}}, false)
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "the last checkpoint is ") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestTimesAddUp(t *testing.T) {
	sum := mustRun(t, tinyOptions(t))
	parts := []float64{sum.Time.Opening, sum.Time.Tokenizer, sum.Time.Tokens, sum.Time.Training, sum.Time.Validation,
		sum.Time.Sampling, sum.Time.Saving, sum.Time.Other}
	total := 0.0
	for i, s := range parts {
		if s <= 0 {
			t.Errorf("part %d took %v s", i, s)
		}
		total += s
	}
	if math.Abs(total-sum.Seconds) > 1e-6 {
		t.Errorf("the parts %v add up to %v s of %v", parts, total, sum.Seconds)
	}
	if steps := float64(sum.Tokens) / sum.TokensPerSecond; sum.Time.Training < steps {
		t.Errorf("training took %v s, its steps alone %v", sum.Time.Training, steps)
	}
}

func TestTimesArePrinted(t *testing.T) {
	var b strings.Builder
	Times{Opening: 1, Tokenizer: 2, Tokens: 3, Training: 180, Validation: 8, Sampling: 4, Saving: 1.5, Other: 0.5}.print(&b)
	want := "time:       200.0 s: training 90.0 %, validation 4.0 %, sampling 2.0 %, saving 0.8 %,\n" +
		"            start-up 3.0 % (tokenizer 2.0 s, tokens 3.0 s), other 0.2 %\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
