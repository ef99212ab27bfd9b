package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/bench/comparison"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
)

// image writes an image of a small model with per-layer embeddings and gives its path.
func image(t *testing.T) string {
	t.Helper()
	c, err := tiny.config(4)
	if err != nil {
		t.Fatal(err)
	}
	c.PLEDim = 8
	tok, err := bpe.Train(t.Context(), func(func([]byte) error) error { return nil }, bpe.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	built, err := export.BuildImage(t.Context(), &checkpoints.Checkpoint{Config: c, Tokenizer: tok.JSON(), Tensors: randomWeights(c)}, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), export.ImageFile)
	if err := os.WriteFile(path, built.Bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// program is the twin as a program, with a fault.
func program(t *testing.T, fault string) string {
	t.Helper()
	t.Setenv(twinVariable, fault)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestComparison runs everything with the twin as opponent.
func TestComparison(t *testing.T) {
	path := program(t, "sound")
	args := []string{"--runq", path, "--runq-flags-note", "go test", "--model", image(t), "--shapes", "", "--rounds", "2", "--seconds", "0.01", "--json"}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Groups) != 1 || len(got.Groups[0].Rows) != 4 || len(got.Opponents) != 1 || got.Opponents[0].Note != "go test" {
		t.Fatalf("%+v", got)
	}
	g := got.Groups[0]
	if !g.Shape.sameSizes(tiny) {
		t.Errorf("the shape is %+v, want %+v", g.Shape, tiny)
	}
	if g.Agreement < tiny.Context*3/4 {
		t.Errorf("chiplm agrees on %d of %d tokens: the networks differ", g.Agreement, tiny.Context)
	}
	network := int64(300*64 + 2*(4*64*64+3*64*96) + 2*64*42)
	for i, want := range []struct {
		program, model string
		bits           int
		macs           int64
	}{
		{filepath.Base(path), "", 8, network},
		{chiplmName, "", 4, network},
		{chiplmName, "", 8, network},
		{chiplmName, "tiny", 4, network + 2*8*64 + 2*2*8*64}, // the projection, and gate and output of two layers
	} {
		r := g.Rows[i]
		if r.Program != want.program || r.Model != want.model || r.Bits != want.bits || r.MACs != want.macs {
			t.Errorf("row %d: %+v, want %+v", i, r.entrant, want)
		}
		if ns := 1e9 / r.Median / float64(want.macs); math.Abs(r.PerMAC-ns) > 1e-9*ns || !(r.Highest >= r.Median) || !(r.Median >= r.Lowest) || !(r.Lowest > 0) {
			t.Errorf("row %d: %+v", i, r)
		}
		if ratio := g.Rows[0].PerMAC / r.PerMAC; math.Abs(r.Ratio-ratio) > 1e-9*ratio {
			t.Errorf("row %d: ratio %v, want %v", i, r.Ratio, ratio)
		}
	}
	if speed := 39 / 0.005; math.Abs(g.Rows[0].Median-speed) > 1e-6*speed {
		t.Errorf("the opponent says 39 tokens in 5 ms, and has %v tokens/s", g.Rows[0].Median)
	}
}

// TestFaultyOpponent says what an opponent does wrong.
func TestFaultyOpponent(t *testing.T) {
	model := image(t)
	for fault, want := range map[string]string{
		"stops":         "wrote 9 tokens, not the 40",
		"other network": "does not run the network",
		"silent":        `no line with "achieved tok/s"`,
		"breaks":        "exit status 3: malloc failed!",
		"timeless":      errNoTime.Error(),
		"backwards":     `a speed of "-3"`,
	} {
		args := []string{"--runq", program(t, fault), "--model", model, "--shapes", "", "--rounds", "1", "--seconds", "0.01"}
		err := run(t.Context(), args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fault, err, want)
		}
	}
}

// TestStopped ends with an error that says so, and leaves no files behind.
func TestStopped(t *testing.T) {
	path, model := program(t, "sound"), image(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	stop := writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
	err := run(ctx, []string{"--runq", path, "--model", model, "--shapes", "", "--rounds", "50", "--seconds", "0.01"}, io.Discard, stop)
	if err == nil || !strings.Contains(err.Error(), "was stopped") {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestUsage(t *testing.T) {
	path := program(t, "sound")
	for _, line := range []string{"", "--runq " + path + " --shapes=", "--runq " + path + " --shapes combo,15T",
		"--runq " + path + " --rounds 0", "--runq " + path + " --seconds 0", "--runq " + path + " --seconds NaN", "more",
		"--runq " + path + " --runq-flags-note a --runq-flags-note b", "--frobnicate"} {
		if err := run(t.Context(), strings.Fields(line), io.Discard, io.Discard); !errors.Is(err, comparison.ErrUsage) {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, missing := range []string{filepath.Join(t.TempDir(), "runq"), "no-such-program"} {
		if err := run(t.Context(), []string{"--runq", missing}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v", missing, err)
		}
	}
}
