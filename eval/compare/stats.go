package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the share of intervals that hold the true difference.
const Confidence = 0.95

// pairs is the least number of seeds in common for a paired interval.
const pairs = 3

// Ways to the interval of a difference.
const (
	Paired = "paired" // by the differences of equal seeds
	Pooled = "pooled" // by the spread within all arms
	None   = "none"   // no arm has two runs: no interval
)

// sample holds one figure of each run of an arm, by ascending seed.
type sample struct {
	seeds  []int64
	values []float64
}

// Summary is one figure over the runs of an arm.
type Summary struct {
	Mean   float64   `json:"mean"`
	Spread *float64  `json:"spread"` // of two runs the range, of more the standard deviation; nil of one
	Kind   string    `json:"kind"`   // "range", "sd", or "none"
	Values []float64 `json:"values"` // by ascending seed
}

func (s sample) summary() Summary {
	sum := Summary{Mean: stat.Mean(s.values, nil), Kind: "none", Values: s.values}
	switch len(s.values) {
	case 0, 1:
		return sum
	case 2:
		spread := math.Abs(s.values[0] - s.values[1])
		sum.Kind, sum.Spread = "range", &spread
	default:
		spread := stat.StdDev(s.values, nil)
		sum.Kind, sum.Spread = "sd", &spread
	}
	return sum
}

// squares is the sum of squares about the mean, and its degrees of freedom.
func (s sample) squares() (sum float64, degrees int) {
	if len(s.values) < 2 {
		return 0, 0
	}
	degrees = len(s.values) - 1
	return stat.Variance(s.values, nil) * float64(degrees), degrees
}

// Noise is the standard deviation of a run about the mean of its arm, from all arms together.
type Noise struct {
	SD      float64 `json:"sd"`
	Degrees int     `json:"degrees_of_freedom"` // 0: no arm has two runs, and SD means nothing
}

func pool(samples []sample) Noise {
	var sum float64
	var n Noise
	for _, s := range samples {
		squares, degrees := s.squares()
		sum, n.Degrees = sum+squares, n.Degrees+degrees
	}
	if n.Degrees > 0 {
		n.SD = math.Sqrt(sum / float64(n.Degrees))
	}
	return n
}

// Estimate is a difference of means with its confidence interval.
type Estimate struct {
	Value     float64  `json:"value"`      // arm - baseline
	HalfWidth *float64 `json:"half_width"` // of the 95 % interval; nil when there is none
	Method    string   `json:"method"`
	Degrees   int      `json:"degrees_of_freedom"`
}

// Clear says whether the difference is larger than its uncertainty. Without an interval, no difference is.
func (e Estimate) Clear() bool { return e.HalfWidth != nil && math.Abs(e.Value) > *e.HalfWidth }

// scaled gives the estimate in another unit.
func (e Estimate) scaled(by float64) Estimate {
	e.Value *= by
	if e.HalfWidth != nil {
		half := *e.HalfWidth * by
		e.HalfWidth = &half
	}
	return e
}

// difference estimates arm - base; noise is that of all arms.
func difference(arm, base sample, noise Noise) Estimate {
	e := Estimate{Value: stat.Mean(arm.values, nil) - stat.Mean(base.values, nil), Method: None}
	var half float64
	switch {
	case len(arm.seeds) >= pairs && slices.Equal(arm.seeds, base.seeds):
		d := make([]float64, len(arm.values))
		for i := range d {
			d[i] = arm.values[i] - base.values[i]
		}
		e.Method, e.Degrees = Paired, len(d)-1
		half = stat.StdErr(stat.StdDev(d, nil), float64(len(d)))
	case noise.Degrees > 0:
		e.Method, e.Degrees = Pooled, noise.Degrees
		half = noise.SD * math.Sqrt(1/float64(len(arm.values))+1/float64(len(base.values)))
	default:
		return e
	}
	half *= quantile(e.Degrees)
	e.HalfWidth = &half
	return e
}

// quantile is Student's t that a deviation exceeds, up or down, with the probability 1 - Confidence.
func quantile(degrees int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(degrees)}.Quantile((1 + Confidence) / 2)
}
