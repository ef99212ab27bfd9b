package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
)

// The model of these tests: twelve steps of four micro-batches, on sixty stories of the generator.
const tinyModel = `
name: tiny
vocab_size: 300
d_model: 16
n_layers: 1
n_heads: 2
d_ff: 24
context_length: 16
ple_dim: 8
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {tokens: 1536, batch_tokens: 128, micro_batch: 2, lr: 0.01, valid_every: 4, valid_tokens: 300,
  sample_every: 6, save_every: 3, keep_last: 2}
`

const tinyCorpus = "builtin:1:60"

// tinyOptions are those of a new run under a folder of the test's own.
func tinyOptions(t *testing.T, sets ...string) Options {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CHIPLM_CACHE", filepath.Join(dir, "cache"))
	config := filepath.Join(dir, "tiny.yaml")
	if err := os.WriteFile(config, []byte(tinyModel), 0o644); err != nil {
		t.Fatal(err)
	}
	return Options{Config: config, Sets: sets, Corpus: tinyCorpus, Out: filepath.Join(dir, "runs"), Workers: 1}
}

func mustRun(t *testing.T, o Options) *Summary {
	t.Helper()
	sum, err := Run(t.Context(), o, io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// cancelAt is a log that ends a run when it shows some text.
type cancelAt struct {
	bytes.Buffer
	text   string
	cancel func()
}

func (c *cancelAt) Write(p []byte) (int, error) {
	n, err := c.Buffer.Write(p)
	if strings.Contains(c.String(), c.text) {
		c.cancel()
	}
	return n, err
}

// runUntil runs until the log shows a text, and gives the error.
func runUntil(t *testing.T, o Options, text string) (*Interrupted, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Run(ctx, o, &cancelAt{text: text, cancel: cancel}, false)
	var stopped *Interrupted
	if !errors.As(err, &stopped) {
		t.Fatalf("until %q: got %v", text, err)
	}
	return stopped, err
}

func TestRunLeavesWhatItPromises(t *testing.T) {
	o := tinyOptions(t)
	var log bytes.Buffer
	sum, err := Run(t.Context(), o, &log, false)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Step != 12 || sum.Tokens != 1536 || sum.Run != filepath.Join(o.Out, "tiny") || sum.Workers != 1 {
		t.Errorf("summary %+v", sum)
	}
	c, err := checkpoints.Load(sum.Run)
	if err != nil {
		t.Fatal(err)
	}
	st := c.State
	if c.Dir != sum.Checkpoint || c.ModelSHA256 != sum.ModelSHA256 || st.Step != 12 || st.Tokens != 1536 ||
		st.Sequences != 96 || st.ConfigHash != sum.ConfigHash || st.TokenizerHash != sum.TokenizerHash ||
		st.CorpusHash != sum.CorpusHash || st.Corpus != tinyCorpus+"#train" || st.Valid != tinyCorpus+"#held-out" {
		t.Errorf("state %+v", st)
	}
	entries, err := filepath.Glob(filepath.Join(sum.Run, "step-*"))
	if err != nil || len(entries) != 2 {
		t.Errorf("checkpoints kept: %v, %v", entries, err)
	}
	records, err := ReadMetrics(sum.Run)
	if err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, records, 12)
	if first, last := *records[0].Loss, *sum.Loss; last >= first || first < 4 || first > 8 {
		t.Errorf("the loss went from %v to %v", first, last)
	}
	if st.BestValid > *sum.ValidLoss {
		t.Errorf("best validation %v, last %v", st.BestValid, *sum.ValidLoss)
	}
	curve, err := os.Open(sum.LossCurve)
	if err != nil {
		t.Fatal(err)
	}
	defer curve.Close()
	if _, err := png.Decode(curve); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"parameters", "bytes/token", "MFLOP per token", "in 12 steps of 4 micro-batches x 2 sequences x 16 tokens", "passes over the corpus",
		"step=12/12 loss=", " bpb=", " tok/s=", "valid step=8 ", "sample step=6 \"Once upon a time"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > 101 && !strings.HasPrefix(line, "sample") {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}

// checkMetrics wants each step once and in order, and the validations and samples of tinyModel.
func checkMetrics(t *testing.T, records []Record, steps int) {
	t.Helper()
	var trained, validated, sampled []int
	for _, r := range records {
		switch {
		case r.Loss != nil:
			trained = append(trained, r.Step)
			if r.Tokens != int64(r.Step)*128 || *r.BPB <= 0 || *r.LR <= 0 || *r.GradNorm <= 0 || *r.TokensPerSecond <= 0 {
				t.Errorf("record %+v", r)
			}
		case r.ValidBPB != nil:
			validated = append(validated, r.Step)
		case r.Sample != nil:
			sampled = append(sampled, r.Step)
		}
	}
	for i := range steps {
		if i >= len(trained) || trained[i] != i+1 {
			t.Fatalf("steps in the metrics: %v", trained)
		}
	}
	if len(trained) != steps || !slices.Equal(validated, []int{4, 8, 12}) || !slices.Equal(sampled, []int{6, 12}) {
		t.Errorf("metrics of steps %v, validations %v, samples %v", trained, validated, sampled)
	}
}

func TestWorkersAndResumeGiveTheSameBytes(t *testing.T) {
	for _, sets := range [][]string{
		nil,
		{"quant.start_step=5", "train.schedule=cosine", "train.min_lr=0.1"}, // resumed before and after the switch
		{"experts=2", "ple_dim=0"},
	} {
		t.Run(fmt.Sprint(sets), func(t *testing.T) {
			o := tinyOptions(t, sets...)
			experts := slices.Contains(sets, "experts=2")
			o.Name = "whole"
			want := mustRun(t, o)
			for _, workers := range []int{2, 4} {
				o.Name, o.Workers = fmt.Sprintf("workers-%d", workers), workers
				got := mustRun(t, o)
				if got.ModelSHA256 != want.ModelSHA256 || *got.ValidBPB != *want.ValidBPB || *got.Loss != *want.Loss {
					t.Errorf("%d workers: weights %s, held out %v; want %s, %v", workers, got.ModelSHA256, *got.ValidBPB,
						want.ModelSHA256, *want.ValidBPB)
				}
			}
			o.Name, o.Workers = "stopped", 2
			stopped, _ := runUntil(t, o, "valid step=4 ") // not a step that is saved anyway
			if stopped.Step != 4 || stopped.ExitCode() != 130 || !errors.Is(stopped, context.Canceled) ||
				!strings.Contains(stopped.Error(), "chiplm train --resume "+filepath.Join(o.Out, "stopped")) {
				t.Errorf("got %v", stopped)
			}
			again := Options{Out: o.Out, Resume: true, Run: "stopped", Workers: 1}
			if stopped, _ = runUntil(t, again, "valid step=8 "); stopped.Step != 8 {
				t.Errorf("got %v", stopped)
			}
			again.Workers = 3
			got := mustRun(t, again)
			if got.ModelSHA256 != want.ModelSHA256 || *got.ValidBPB != *want.ValidBPB {
				t.Errorf("resumed: weights %s, held out %v; want %s, %v", got.ModelSHA256, *got.ValidBPB, want.ModelSHA256,
					*want.ValidBPB)
			}
			a, err := os.ReadFile(filepath.Join(want.Checkpoint, checkpoints.MomentsFile))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(got.Checkpoint, checkpoints.MomentsFile))
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("the optimiser's state differs (%v)", err)
			}
			records, err := ReadMetrics(got.Run)
			if err != nil {
				t.Fatal(err)
			}
			checkMetrics(t, records, 12)
			if aux := records[0].AuxLoss; experts != (aux != nil) || experts && (*aux <= 0 || *aux > 2) {
				t.Errorf("load-balancing loss %v", aux)
			}
		})
	}
}

func TestFinishedRunResumesToItself(t *testing.T) {
	o := tinyOptions(t)
	want := mustRun(t, o)
	if err := os.Remove(want.LossCurve); err != nil { // as if killed just before the end
		t.Fatal(err)
	}
	var log bytes.Buffer
	got, err := Run(t.Context(), Options{Out: o.Out, Resume: true}, &log, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.ModelSHA256 != want.ModelSHA256 || got.Checkpoint != want.Checkpoint || got.Step != 12 || *got.ValidBPB != *want.ValidBPB {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := os.Stat(want.LossCurve); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "nothing is left to train") {
		t.Errorf("the log does not say that nothing is left:\n%s", log.String())
	}
}

func TestLossThatIsNotFiniteStopsTheRun(t *testing.T) {
	o := tinyOptions(t)
	stopped, _ := runUntil(t, o, "valid step=4 ")
	// A model that has run away: finite weights, whose products are not.
	run := filepath.Join(o.Out, "tiny")
	c, err := checkpoints.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Tensors["layers.0.gate"] {
		c.Tensors["layers.0.gate"][i] = 3e38
	}
	if stopped.Saved, err = checkpoints.Save(run, c, 2); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(stopped.Saved, checkpoints.ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), Options{Out: o.Out, Resume: true, Run: "tiny", Workers: 2}, io.Discard, true)
	if !errors.Is(err, errNotFinite) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"step 5: ", "micro-batch 0 is NaN", "not finite: layers.0.", "the last good checkpoint is " + stopped.Saved, "train.lr"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if c, err = checkpoints.Load(run); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(c.Dir, checkpoints.ModelFile))
	if err != nil || c.Dir != stopped.Saved || !bytes.Equal(before, after) {
		t.Errorf("the newest checkpoint is %s (%v)", c.Dir, err)
	}
	records, err := ReadMetrics(run)
	if err != nil || records[len(records)-1].Step != 4 {
		t.Errorf("the metrics end with %+v (%v)", records[len(records)-1], err)
	}
}

func TestCommandPrintsOneJSONObject(t *testing.T) {
	o := tinyOptions(t)
	cmd := Command(nil)
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs([]string{"--config", o.Config, "--corpus", o.Corpus, "--out", o.Out, "--json", "--workers", "2",
		"--set", "train.tokens=256", "--set", "train.sample_every=0"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&stdout)
	dec.DisallowUnknownFields()
	var sum Summary
	if err := dec.Decode(&sum); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Errorf("more than one object on standard output (%v)", err)
	}
	if sum.Step != 2 || sum.TokensPerSecond <= 0 || sum.ValidBPB == nil || len(sum.ModelSHA256) != 64 {
		t.Errorf("got %+v", sum)
	}
	cmd = Command(nil)
	stdout.Reset()
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--resume", "tiny", "--out", o.Out, "--quiet"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bits per byte", fmt.Sprintf("on the first %d stories (%d tokens) alone", sum.ValidStories, sum.ValidTokens),
		"chiplm eval bpb"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in %s", want, stdout.String())
		}
	}
	if sum.ValidTokens < 300 || sum.ValidStories < 1 || sum.ValidAll {
		t.Errorf("scored %d stories, %d tokens, all: %v", sum.ValidStories, sum.ValidTokens, sum.ValidAll)
	}
	for line := range strings.Lines(stdout.String()) {
		if len(line) > 101 && strings.HasPrefix(line, " ") {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}
