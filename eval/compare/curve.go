package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/chiplm/chiplm/eval/results"
)

// curve is the mean training loss of an arm over its runs, in nats per token, by ascending tokens. Runs that logged at
// other tokens are read between their points; only what all of them cover is told. Runs without a curve do not count.
func (a *Arm) curve() []results.Point {
	var curves [][]results.Point
	for _, r := range a.runs {
		if len(r.Curve) == 0 {
			continue
		}
		c := slices.Clone(r.Curve)
		slices.SortStableFunc(c, func(a, b results.Point) int { return cmp.Compare(a.Tokens, b.Tokens) })
		curves = append(curves, slices.CompactFunc(c, func(a, b results.Point) bool { return a.Tokens == b.Tokens }))
	}
	if len(curves) == 0 {
		return nil
	}
	var mean []results.Point
	for _, p := range curves[0] {
		sum, covered := 0.0, true
		for _, c := range curves {
			v, ok := between(c, p.Tokens)
			sum, covered = sum+v, covered && ok
		}
		if covered {
			mean = append(mean, results.Point{Tokens: p.Tokens, Loss: sum / float64(len(curves))})
		}
	}
	return mean
}

// between reads a curve at so many tokens, if it reaches there.
func between(c []results.Point, tokens int64) (loss float64, ok bool) {
	i, found := slices.BinarySearchFunc(c, tokens, func(p results.Point, t int64) int { return cmp.Compare(p.Tokens, t) })
	switch {
	case found:
		return c[i].Loss, true
	case i == 0 || i == len(c):
		return 0, false
	}
	a, b := c[i-1], c[i]
	share := float64(tokens-a.Tokens) / float64(b.Tokens-a.Tokens)
	return a.Loss + share*(b.Loss-a.Loss), true
}

// oneTokenizer says whether nats per token of all arms compare.
func (r *Report) oneTokenizer() bool {
	for _, a := range r.Arms {
		if a.runs[0].TokenizerSHA256 != r.Arms[0].runs[0].TokenizerSHA256 {
			return false
		}
	}
	return true
}

// perByte is the factor from nats per token of an arm to bits per byte, by its bytes per token of the held-out text.
func (a *Arm) perByte() float64 { return 1 / (math.Ln2 * a.TextBytesPerToken) }
