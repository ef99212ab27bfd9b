package train

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/digits"
)

// countdown is a context that ends when it has been asked a number of times whether it has.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func newCountdown(parent context.Context, n int64) *countdown {
	c := &countdown{}
	c.Context, c.cancel = context.WithCancel(parent)
	c.left.Store(n)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// TestInterruptAtAnyMomentLosesNothing stops a run at moments of all kinds, between a step and its validation and
// within a sample among them, and wants the metrics and the checkpoint of a run never stopped.
func TestInterruptAtAnyMomentLosesNothing(t *testing.T) {
	o := tinyOptions(t, "train.tokens=640", "train.valid_every=2", "train.sample_every=3", "train.save_every=2")
	o.Name = "whole"
	asked := newCountdown(t.Context(), 1<<40)
	if _, err := Run(asked, o, io.Discard, true); err != nil {
		t.Fatal(err)
	}
	want, best := metricsButTimes(t, o, "whole")
	moments := 1<<40 - asked.left.Load()

	o.Name = "stopped"
	var sessions, stops int
	resume := o
	for {
		if sessions++; sessions > 200 {
			t.Fatal("the run does not come to its end")
		}
		// Each session gets a little further than making ready needs, so that each stops somewhere else.
		ctx := newCountdown(t.Context(), moments/2+int64(sessions*7)%(moments/2))
		_, err := Run(ctx, resume, io.Discard, true)
		if err == nil {
			break
		}
		var stopped *Interrupted
		if !errors.As(err, &stopped) {
			t.Fatal(err)
		}
		stops++
		if some, _ := checkpoints.HasCheckpoints(filepath.Join(o.Out, "stopped")); some {
			resume = Options{Out: o.Out, Resume: true, Run: "stopped", Workers: 1}
		}
	}
	got, gotBest := metricsButTimes(t, o, "stopped")
	if stops < 2 || !reflect.DeepEqual(got, want) || gotBest != best {
		t.Errorf("after %d stops the metrics are\n%v\nand the best validation %v; want\n%v\nand %v", stops, got, gotBest, want, best)
	}
}

// TestValidationCutOffIsMadeUpFor stops a run at every moment of the hooks after one step.
func TestValidationCutOffIsMadeUpFor(t *testing.T) {
	o := tinyOptions(t, "train.tokens=256", "train.valid_every=1", "train.sample_every=1", "train.save_every=1")
	o.Name = "whole"
	asked := newCountdown(t.Context(), 1<<40)
	if _, err := Run(asked, o, io.Discard, true); err != nil {
		t.Fatal(err)
	}
	moments := 1<<40 - asked.left.Load()
	want, best := metricsButTimes(t, o, "whole")
	tried := 0
	for back := int64(1); back < moments; back += 9 { // from the end, where the last hooks are
		o.Name = "stopped-" + digits.Comma(back)
		if _, err := Run(newCountdown(t.Context(), moments-back), o, io.Discard, true); err == nil {
			continue // it asks less often than the first run, which had to make the tokens, and came to its end
		}
		if some, _ := checkpoints.HasCheckpoints(filepath.Join(o.Out, o.Name)); !some {
			break // it was stopped before there was anything to go on from
		}
		tried++
		mustRun(t, Options{Out: o.Out, Resume: true, Run: o.Name, Workers: 1})
		if got, gotBest := metricsButTimes(t, o, o.Name); !reflect.DeepEqual(got, want) || gotBest != best {
			t.Errorf("stopped %d moments before the end: metrics\n%v\nbest %v; want\n%v\nbest %v", back, got, gotBest, want, best)
		}
	}
	if tried < 5 {
		t.Errorf("only %d moments were tried", tried)
	}
}

// metricsButTimes reads a run's metrics, without speeds, and the best validation of its newest checkpoint.
func metricsButTimes(t *testing.T, o Options, name string) (lines []map[string]any, best float64) {
	t.Helper()
	dir := filepath.Join(o.Out, name)
	records, err := ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoints.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		line := map[string]any{"step": r.Step, "tokens": r.Tokens, "valid_tokens": r.ValidTokens}
		for key, value := range map[string]*float64{"loss": r.Loss, "bpb": r.BPB, "lr": r.LR, "norm": r.GradNorm,
			"valid_loss": r.ValidLoss, "valid_bpb": r.ValidBPB} {
			if value != nil {
				line[key] = *value
			}
		}
		if r.Sample != nil {
			line["sample"] = *r.Sample
		}
		lines = append(lines, line)
	}
	return lines, c.State.BestValid
}

func TestInterruptSaysWhereAndHowToGoOn(t *testing.T) {
	o := tinyOptions(t)
	o.Out = filepath.Join(filepath.Dir(o.Out), "my runs")
	interrupt := func(o Options, moments int64, wants ...string) {
		t.Helper()
		_, err := Run(newCountdown(t.Context(), moments), o, io.Discard, true)
		var stopped *Interrupted
		if !errors.As(err, &stopped) || stopped.ExitCode() != 130 {
			t.Fatalf("after %d moments: %v", moments, err)
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if strings.Contains(err.Error(), "context canceled") {
			t.Errorf("%q speaks of a context", err)
		}
	}
	interrupt(o, 0, "while reading the corpus", "no checkpoint was written", "same command")
	stages := map[string]bool{}
	for n := int64(0); n < 400; n++ { // each later stage in its turn
		_, err := Run(newCountdown(t.Context(), n), o, io.Discard, true)
		for _, stage := range []string{"reading the corpus", "training the tokenizer", "turning the corpus into tokens"} {
			if err != nil && strings.Contains(err.Error(), "while "+stage+"; no checkpoint was written") {
				stages[stage] = true
			}
		}
		if some, _ := checkpoints.HasCheckpoints(filepath.Join(o.Out, "tiny")); some {
			break
		}
	}
	if len(stages) < 3 {
		t.Errorf("stages named: %v", stages)
	}
	o.Name = "second"
	runUntil(t, o, "valid step=4 ")
	resume := Options{Out: o.Out, Resume: true, Run: "second"}
	run := filepath.Join(o.Out, "second")
	interrupt(resume, 0, "while reading the corpus", "step-00000004", "`chiplm train --resume '"+run+"'`")
	refused(t, Options{Config: o.Config, Out: o.Out, Name: "second"}, "--resume '"+run+"'")
}

func TestSlowGraphDoesNotHoldAnInterruptUp(t *testing.T) {
	release, closed := make(chan struct{}), make(chan struct{})
	slow := func(arch.Options) (Graph, error) {
		<-release
		return &closing{closed: closed}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	tr, _ := newFakeTrainer(t, tinyConfig(), 1)
	tr.builder = slow
	if _, err := tr.Step(ctx); !errors.Is(err, context.Canceled) { // it would hang, were the build waited for
		t.Errorf("got %v", err)
	}
	if _, err := NewSampler(11, 6).Story(ctx, slow, nil, false, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("sampler: %v", err)
	}
	close(release)
	<-closed // the graph nobody waits for is given up
}

// closing is a graph that says when it is closed.
type closing struct {
	fakeGraph
	closed chan struct{}
}

func (c *closing) Close() error { close(c.closed); return nil }
