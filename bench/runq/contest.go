package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const chiplmName = "chiplm"

// entrant is one of those who are compared on a shape.
type entrant struct {
	Program string `json:"program"`         // chiplm, or the name of an opponent
	Model   string `json:"model,omitempty"` // the user's; empty with the shape's random weights
	Bits    int    `json:"bits"`            // of the weights
	MACs    int64  `json:"macs_per_token"`

	tokens int                                            // timed in a run
	run    func(context.Context) (sec float64, err error) // times one sequence
}

// Row is an entrant with its figures. Speeds are tokens per second of a round.
type Row struct {
	entrant
	Median  float64 `json:"tokens_per_second"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	PerMAC  float64 `json:"ns_per_mac"`         // at the median
	Best    float64 `json:"ns_per_mac_fastest"` // in the fastest round

	// The fastest opponent's time for a multiply-accumulate over this row's: above 1, this row is faster.
	Ratio        float64 `json:"ratio"`
	RatioFastest float64 `json:"ratio_fastest"` // of the fastest rounds

	speeds []float64
}

// Group is a shape and those who ran it.
type Group struct {
	Shape     Shape `json:"shape"`
	Agreement int   `json:"same_tokens"` // of context_length: where chiplm with 8 bits writes the token that every opponent wrote
	Rows      []Row `json:"rows"`
}

// Result is the outcome, also as JSON.
type Result struct {
	CPU       string     `json:"cpu"`
	Opponents []Opponent `json:"opponents"`
	Rounds    int        `json:"rounds"`
	Seconds   float64    `json:"seconds"` // that each entrant decodes in a round, at least
	Groups    []Group    `json:"groups"`
}

// contest lets entrants decode in turn.
type contest struct {
	rounds  int
	seconds float64   // of decoding by each entrant in a round
	log     io.Writer // a line for each turn
}

// hold lets everyone run once to warm up, then once a round, so that a machine that becomes slower meanwhile does so for
// all.
func (c contest) hold(ctx context.Context, shape string, entrants []entrant) ([]Row, error) {
	rows := make([]Row, len(entrants))
	for i, e := range entrants {
		rows[i].entrant = e
		if _, err := e.run(ctx); err != nil {
			return nil, err
		}
	}
	for round := range c.rounds {
		for i := range rows {
			speed, err := c.turn(ctx, rows[i].entrant)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(c.log, "%s, round %d: %s: %.0f tokens/s\n", shape, round+1, rows[i].entrant, speed)
			rows[i].speeds = append(rows[i].speeds, speed)
		}
	}
	rank(rows)
	return rows, nil
}

// errNoTime is for an entrant that says that it took no time, run after run.
var errNoTime = errors.New("no time passes in its runs: it cannot be timed")

// turn runs sequences until their time adds up to the seconds of a turn, and gives tokens a second. A single run of a
// small model lasts a few milliseconds, in which the opponent tells time.
func (c contest) turn(ctx context.Context, e entrant) (float64, error) {
	start := time.Now()
	sum, tokens := 0.0, 0
	for sum < c.seconds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		sec, err := e.run(ctx)
		if err != nil {
			return 0, err
		}
		sum += sec
		tokens += e.tokens
		if sum == 0 && time.Since(start).Seconds() > 10*c.seconds {
			return 0, fmt.Errorf("%s: %w", e.Program, errNoTime)
		}
	}
	return float64(tokens) / sum, nil
}

// rank works out medians, times and ratios.
func rank(rows []Row) {
	perMAC := func(r *Row, speed float64) float64 { return 1e9 / (speed * float64(r.MACs)) }
	rival := struct{ median, best float64 }{}
	for i := range rows {
		r := &rows[i]
		slices.Sort(r.speeds)
		n := len(r.speeds)
		r.Lowest, r.Highest, r.Median = r.speeds[0], r.speeds[n-1], (r.speeds[(n-1)/2]+r.speeds[n/2])/2
		r.PerMAC, r.Best = perMAC(r, r.Median), perMAC(r, r.Highest)
		if r.Program == chiplmName {
			continue
		}
		if rival.median == 0 || r.PerMAC < rival.median {
			rival.median = r.PerMAC
		}
		if rival.best == 0 || r.Best < rival.best {
			rival.best = r.Best
		}
	}
	for i := range rows {
		rows[i].Ratio, rows[i].RatioFastest = rival.median/rows[i].PerMAC, rival.best/rows[i].Best
	}
}
