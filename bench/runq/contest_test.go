package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// fake decodes 100 tokens a run, in seconds that it takes one after the other, the last again and again.
func fake(program, model string, bits int, macs int64, ran *[]string, seconds ...float64) entrant {
	return entrant{Program: program, Model: model, Bits: bits, MACs: macs, tokens: 100, run: func(context.Context) (float64, error) {
		*ran = append(*ran, program)
		sec := seconds[0]
		if len(seconds) > 1 {
			seconds = seconds[1:]
		}
		return sec, nil
	}}
}

// TestContest follows turns, medians, times and ratios. The first run of each is a warm-up.
func TestContest(t *testing.T) {
	var ran []string
	entrants := []entrant{
		fake("slow", "", 8, 1000, &ran, 9, 4, 2, 2),
		fake("fast", "", 8, 1000, &ran, 9, 1, 2, 1),
		fake(chiplmName, "", 4, 2000, &ran, 9, 0.5, 0.25, 0.75, 1), // three rounds of two runs: 0.75, 1.75, and 1 in one
	}
	rows, err := contest{rounds: 3, seconds: 0.75, log: io.Discard}.hold(t.Context(), "shape", entrants)
	if err != nil {
		t.Fatal(err)
	}
	turn := " slow fast chiplm"
	if got := " " + strings.Join(ran, " "); got != turn+" slow fast chiplm chiplm"+turn+turn {
		t.Errorf("the runs were%s", got)
	}
	type figures struct{ median, lowest, highest, perMAC, best, ratio, ratioFastest float64 }
	for i, want := range []figures{
		{50, 25, 50, 20000, 20000, 0.5, 0.5},
		{100, 50, 100, 10000, 10000, 1, 1},
		{400.0 / 3, 100, 800.0 / 3, 3750, 1875, 10000.0 / 3750, 10000.0 / 1875},
	} {
		r := rows[i]
		got := figures{r.Median, r.Lowest, r.Highest, r.PerMAC, r.Best, r.Ratio, r.RatioFastest}
		for _, pair := range [][2]float64{{got.median, want.median}, {got.lowest, want.lowest}, {got.highest, want.highest},
			{got.perMAC, want.perMAC}, {got.best, want.best}, {got.ratio, want.ratio}, {got.ratioFastest, want.ratioFastest}} {
			if diff := pair[0] - pair[1]; diff > 1e-9*pair[1] || diff < -1e-9*pair[1] {
				t.Errorf("row %d: %+v, want %+v", i, got, want)
				break
			}
		}
	}
}

// TestFailure ends the contest.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	e := entrant{Program: "runq", run: func(context.Context) (float64, error) { return 0, broken }}
	if _, err := (contest{rounds: 1, seconds: 1, log: io.Discard}).hold(t.Context(), "shape", []entrant{e}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestTable prints the longest names and numbers within 100 columns.
func TestTable(t *testing.T) {
	var ran []string
	rows, err := contest{rounds: 1, seconds: 1, log: io.Discard}.hold(t.Context(), "shape", []entrant{
		fake("a-program-with-a-name-of-some-length", "", 8, 1234567890, &ran, 1e-2),
		fake(chiplmName, "", 4, 1234567890, &ran, 1.00002e-2),
		fake(chiplmName, strings.Repeat("name", 16), 4, 1234567890, &ran, 2e-2),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{CPU: "Processor of some length @ 2.60GHz", Rounds: 1, Seconds: 1, Groups: []Group{{Shape: builtin[2], Agreement: 250, Rows: rows}},
		Opponents: []Opponent{{Name: "runq-a", Note: "gcc 99.9 -O3"}, {Name: "runq-b"}}}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(out.String(), "\n15M: chiplm")
	for line := range strings.Lines(table) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"opponent: runq-a: gcc 99.9 -O3\n", "a-program-with-a-name-of...", "1234.568 M", "10,000-10,000",
		"of 256 tokens that runq wrote, 250", "15M: chiplm, 4 bits is 1.00 times", "as trained is 0.50 times"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
