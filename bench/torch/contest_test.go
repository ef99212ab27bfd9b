package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

var both = []string{"passive", "active"}

// fake makes runs of given speeds and writes down who ran.
type fake struct {
	speed func(e entrant, s setting, threads int) (float64, error)
	ran   []string
}

func (f *fake) run(_ context.Context, e entrant, s setting, threads, _ int) (*measurement, error) {
	f.ran = append(f.ran, e.String()+s.String())
	speed, err := f.speed(e, s, threads)
	if err != nil {
		return nil, err
	}
	m := &measurement{TokensPerSecond: speed, Fastest: 4096 / (2 * speed), TokensPerStep: 4096}
	if e.Program == torchName {
		m.Torch, m.Capability = "9.9.9+cpu", "AVX512"
	} else {
		m.CPU, m.Path = "Processor of some length @ 2.60GHz", "avx512"
	}
	return m, nil
}

// TestContest lets PyTorch choose its settings, and follows medians, ratios and the order of runs.
func TestContest(t *testing.T) {
	round := 0
	f := &fake{speed: func(e entrant, s setting, threads int) (float64, error) {
		switch {
		case e.Program == chiplmName:
			round++
			return []float64{6000, 9000, 5000, 8000}[round-1], nil // of four rounds the median is 7000
		case e.Mode == compiled && e.Variant == "faithful":
			return 0, errors.New("no compiler")
		case s == setting{16, "passive"} && e.Mode == eager:
			return 2000, nil
		case s == setting{4, "active"} && e.Mode == compiled:
			return 3500, nil
		case e.Mode == eager && e.Variant == "usual" && s.MicroBatch == 4:
			return 0, errors.New("out of memory") // one setting that fails does not end the others
		}
		return 1000, nil
	}}
	r, err := contest{run: f.run, threads: []int{2}, micro: []int{4, 16}, wait: both, rounds: 4, steps: 5, log: io.Discard}.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		setting
		median, ratio float64
		failure       string
	}{
		{setting{}, 7000, 1, ""},
		{setting{16, "passive"}, 2000, 3.5, ""},
		{setting{16, "passive"}, 2000, 3.5, ""},
		{setting{}, 0, 0, "no compiler"},
		{setting{4, "active"}, 3500, 2, ""},
	}
	if len(r.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(r.Rows), len(want))
	}
	for i, w := range want {
		if got := r.Rows[i]; got.setting != w.setting || got.Median != w.median || got.Ratio != w.ratio || got.Failure != w.failure {
			t.Errorf("row %d: %+v, want %+v", i, got, w)
		}
	}
	if got := r.Rows[0]; got.Lowest != 5000 || got.Highest != 9000 || got.Fastest != 18000 {
		t.Errorf("chiplm: from %v to %v, fastest step %v", got.Lowest, got.Highest, got.Fastest)
	}
	if len(r.Headlines) != 2 || r.Headlines[0].Ratio != 3.5 || r.Headlines[1].Ratio != 2 || r.Headlines[1].Best != 18000.0/7000 {
		t.Errorf("headlines %+v", r.Headlines)
	}
	// Sixteen trials of settings, then four rounds of those who can run.
	turn := "chiplm|PyTorch eager, faithful, 16 sequences, OpenMP passive|PyTorch eager, usual, 16 sequences, OpenMP passive|" +
		"PyTorch compiled, usual, 4 sequences, OpenMP active"
	if got := strings.Join(f.ran[16:], "|"); got != strings.Join([]string{turn, turn, turn, turn}, "|") {
		t.Errorf("the rounds ran %s", got)
	}
}

// TestOneThread tries no wait policies, which one thread has no use for.
func TestOneThread(t *testing.T) {
	f := &fake{speed: func(entrant, setting, int) (float64, error) { return 1000, nil }}
	if _, err := (contest{run: f.run, threads: []int{1}, micro: []int{4, 16}, wait: both, rounds: 1, steps: 5, log: io.Discard}).hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ran := range f.ran {
		if strings.Contains(ran, "OpenMP") {
			t.Errorf("ran %s", ran)
		}
	}
	if len(f.ran) != 8+5 {
		t.Errorf("%d runs, want 13", len(f.ran))
	}
}

// TestNothingToCompare stops where chiplm fails, and when it is interrupted.
func TestNothingToCompare(t *testing.T) {
	broken := errors.New("broken")
	f := &fake{speed: func(e entrant, _ setting, _ int) (float64, error) {
		if e.Program == chiplmName {
			return 0, broken
		}
		return 1000, nil
	}}
	c := contest{run: f.run, threads: []int{1}, micro: []int{4}, wait: both, rounds: 1, steps: 5, log: io.Discard}
	if _, err := c.hold(t.Context()); !errors.Is(err, broken) {
		t.Errorf("chiplm fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.speed = func(entrant, setting, int) (float64, error) {
		cancel()
		return 0, context.Canceled
	}
	f.ran = nil
	if _, err := c.hold(ctx); !errors.Is(err, context.Canceled) || len(f.ran) != 1 {
		t.Errorf("interrupted: %v after %d runs", err, len(f.ran))
	}
}

// TestTable prints the longest names and numbers within 100 columns.
func TestTable(t *testing.T) {
	f := &fake{speed: func(e entrant, _ setting, threads int) (float64, error) {
		if e.Mode == compiled && threads == 1 {
			return 0, errors.New("train.py: no compiler")
		}
		return 123456.7, nil
	}}
	r, err := contest{run: f.run, threads: []int{1, 128}, micro: []int{16}, wait: both, rounds: 3, steps: 5, log: io.Discard}.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"PyTorch 9.9.9+cpu on AVX512", "123,457-123,457", "failed, see below", "train.py: no compiler",
		"threads 128: chiplm is 1.00 times as fast as PyTorch compiled"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
