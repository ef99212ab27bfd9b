package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

const (
	chiplmName = "chiplm"
	torchName  = "PyTorch"
	eager      = "eager"
	compiled   = "compiled"
)

// entrant is one of those who are compared. Mode and Variant are PyTorch's: see bench/README.md.
type entrant struct {
	Program string `json:"program"`
	Mode    string `json:"mode,omitempty"`
	Variant string `json:"variant,omitempty"`
}

var entrants = []entrant{
	{Program: chiplmName},
	{torchName, eager, "faithful"},
	{torchName, eager, "usual"},
	{torchName, compiled, "faithful"},
	{torchName, compiled, "usual"},
}

// setting is what PyTorch may choose. Its result does not depend on it.
type setting struct {
	MicroBatch int    `json:"micro_batch,omitempty"`     // sequences at a time
	Wait       string `json:"omp_wait_policy,omitempty"` // with more than one thread
}

// measurement is what a run of either program prints.
type measurement struct {
	TokensPerSecond float64 `json:"tokens_per_second"`
	Fastest         float64 `json:"fastest_step_seconds"`
	TokensPerStep   int64   `json:"tokens_per_step"`
	CPU             string  `json:"cpu"`            // chiplm's
	Path            string  `json:"simd"`           // chiplm's
	Torch           string  `json:"torch"`          // PyTorch's version
	Capability      string  `json:"cpu_capability"` // PyTorch's instruction set
}

// Result is the outcome of a contest, also as JSON.
type Result struct {
	Config        string     `json:"config"`
	CPU           string     `json:"cpu"`
	Path          string     `json:"simd"`
	Torch         string     `json:"torch"`
	Capability    string     `json:"torch_cpu_capability"`
	TokensPerStep int64      `json:"tokens_per_step"`
	Rounds        int        `json:"rounds"`
	Steps         int        `json:"steps"`
	Rows          []Row      `json:"rows"`
	Headlines     []Headline `json:"headlines"`
}

// Row is one entrant at one number of threads. Speeds are tokens per second.
type Row struct {
	Threads int `json:"threads"`
	entrant
	setting
	Median  float64 `json:"tokens_per_second"` // over the rounds
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	Fastest float64 `json:"fastest_step"`       // the speed of the fastest step of all rounds
	Ratio   float64 `json:"ratio"`              // chiplm's median over this one's
	Best    float64 `json:"ratio_fastest_step"` // chiplm's fastest step over this one's
	Failure string  `json:"failure,omitempty"`  // why there are no figures

	speeds []float64
}

// Headline is chiplm against the faster variant of a mode of PyTorch.
type Headline struct {
	Threads int     `json:"threads"`
	Mode    string  `json:"mode"`
	Variant string  `json:"variant"`
	Ratio   float64 `json:"ratio"`
	Best    float64 `json:"ratio_fastest_step"`
}

// contest lets chiplm and PyTorch train in turn.
type contest struct {
	run           func(ctx context.Context, e entrant, s setting, threads, steps int) (*measurement, error)
	threads       []int
	micro         []int    // what PyTorch may choose from: sequences at a time
	wait          []string // and wait policies
	rounds, steps int
	log           io.Writer // a line for each run
}

// hold runs the contest. First PyTorch tries its settings, in short runs, and keeps the best of each mode and variant.
// Then everyone runs once a round, so that a machine that becomes slower meanwhile does so for all. A mode of PyTorch
// that fails is left out with its reason; when chiplm fails there is nothing to compare.
func (c contest) hold(ctx context.Context) (*Result, error) {
	r := &Result{Rounds: c.rounds, Steps: c.steps}
	for _, threads := range c.threads {
		var rows []*Row
		for _, e := range entrants {
			row := &Row{Threads: threads, entrant: e}
			if e.Program == torchName {
				if err := c.choose(ctx, row); err != nil {
					return nil, err
				}
			}
			rows = append(rows, row)
		}
		for round := range c.rounds {
			for _, row := range rows {
				if row.Failure != "" {
					continue
				}
				m, err := c.once(ctx, row, row.setting, c.steps, fmt.Sprintf("round %d", round+1))
				switch {
				case err == nil:
					row.add(m)
					r.about(m)
				case ctx.Err() != nil || row.Program == chiplmName:
					return nil, err
				default:
					row.Failure = err.Error()
				}
			}
		}
		r.rank(rows)
	}
	return r, nil
}

// choose tries every setting and keeps the one with the fastest step.
func (c contest) choose(ctx context.Context, row *Row) error {
	var settings []setting
	for _, m := range c.micro {
		if row.Threads == 1 {
			settings = append(settings, setting{MicroBatch: m})
			continue
		}
		for _, policy := range c.wait {
			settings = append(settings, setting{m, policy})
		}
	}
	best := 0.0
	for _, s := range settings {
		m, err := c.once(ctx, row, s, min(2, c.steps), "setting")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			row.Failure = err.Error()
			continue
		}
		if best == 0 || m.Fastest < best {
			best, row.setting = m.Fastest, s
		}
	}
	if best > 0 {
		row.Failure = ""
	}
	return nil
}

func (c contest) once(ctx context.Context, row *Row, s setting, steps int, what string) (*measurement, error) {
	m, err := c.run(ctx, row.entrant, s, row.Threads, steps)
	fmt.Fprintf(c.log, "%s, threads %d: %s%s: ", what, row.Threads, row.entrant, s)
	if err != nil {
		fmt.Fprintln(c.log, err)
		return nil, err
	}
	fmt.Fprintf(c.log, "%.0f tokens/s\n", m.TokensPerSecond)
	return m, nil
}

// about notes what a run says of itself and the machine.
func (r *Result) about(m *measurement) {
	r.TokensPerStep = m.TokensPerStep
	if m.Torch != "" {
		r.Torch, r.Capability = m.Torch, m.Capability
	} else {
		r.CPU, r.Path = m.CPU, m.Path
	}
}

// add takes the figures of one round.
func (r *Row) add(m *measurement) {
	r.speeds = append(r.speeds, m.TokensPerSecond)
	slices.Sort(r.speeds)
	n := len(r.speeds)
	r.Lowest, r.Highest, r.Median = r.speeds[0], r.speeds[n-1], (r.speeds[(n-1)/2]+r.speeds[n/2])/2
	r.Fastest = max(r.Fastest, float64(m.TokensPerStep)/m.Fastest)
}

// rank works out the ratios of the rows of one number of threads, chiplm's first.
func (r *Result) rank(rows []*Row) {
	best := map[string]*Row{}
	for _, row := range rows {
		if row.Failure != "" {
			*row = Row{Threads: row.Threads, entrant: row.entrant, Failure: row.Failure}
		} else {
			row.Ratio, row.Best = rows[0].Median/row.Median, rows[0].Fastest/row.Fastest
			if b := best[row.Mode]; b == nil || row.Median > b.Median {
				best[row.Mode] = row
			}
		}
		r.Rows = append(r.Rows, *row)
	}
	for _, mode := range []string{eager, compiled} {
		if b := best[mode]; b != nil {
			r.Headlines = append(r.Headlines, Headline{b.Threads, mode, b.Variant, b.Ratio, b.Best})
		}
	}
}
