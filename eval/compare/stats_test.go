package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, have, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(have-want) <= tolerance) {
		t.Errorf("%s: %.8g, want %.8g", what, have, want)
	}
}

func samples(values ...float64) sample {
	s := sample{values: values}
	for i := range values {
		s.seeds = append(s.seeds, int64(i+1))
	}
	return s
}

// apart gives a sample other seeds.
func apart(s sample) sample {
	moved := sample{values: s.values}
	for _, seed := range s.seeds {
		moved.seeds = append(moved.seeds, seed+100)
	}
	return moved
}

// The two-sided 5 % column of the usual table of Student's t.
func TestQuantilesOfPublishedTables(t *testing.T) {
	for degrees, want := range map[int]float64{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
		10: 2.228, 15: 2.131, 20: 2.086, 25: 2.060, 30: 2.042, 40: 2.021, 60: 2.000, 100: 1.984, 120: 1.980, 1000: 1.962} {
		near(t, "t", quantile(degrees), want, 0.0005)
	}
	near(t, "t of one degree, in closed form", quantile(1), math.Tan(0.475*math.Pi), 1e-9)
	near(t, "t of two degrees, in closed form", quantile(2), 0.95*math.Sqrt(2/(1-0.95*0.95)), 1e-9)
}

// Student's own example of 1908, hours of sleep won by two drugs in ten patients. R's t.test gives for the pairs
// -1.58 (-2.4598858, -0.7001142) with 9 degrees of freedom, and for independent groups of equal variance
// (-3.363874, 0.203874) with 18.
func TestStudentsSleep(t *testing.T) {
	one := samples(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
	two := samples(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
	noise := pool([]sample{one, two})
	for _, c := range []struct {
		base      sample
		method    string
		degrees   int
		low, high float64
		clear     bool
	}{
		{two, Paired, 9, -2.4598858, -0.7001142, true},
		{apart(two), Pooled, 18, -3.363874, 0.203874, false},
	} {
		e := difference(one, c.base, noise)
		if e.Method != c.method || e.Degrees != c.degrees || e.Clear() != c.clear || e.HalfWidth == nil {
			t.Fatalf("%+v, want %+v", e, c)
		}
		near(t, "difference", e.Value, -1.58, 1e-12)
		near(t, "lower end", e.Value-*e.HalfWidth, c.low, 5e-7)
		near(t, "upper end", e.Value+*e.HalfWidth, c.high, 5e-7)
	}
	near(t, "spread", *one.summary().Spread, 1.789010, 5e-7)
}

// Dried weights of plants under two treatments and none, the data set PlantGrowth of R, whose linear model has a residual
// standard error of 0.6234 with 27 degrees of freedom, and differences of -0.371 and 0.494 with a standard error of 0.2788.
func TestPooledOverSeveralArms(t *testing.T) {
	control := samples(4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14)
	first := apart(samples(4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69))
	second := apart(samples(6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26))
	noise := pool([]sample{control, first, second})
	near(t, "standard deviation", noise.SD, 0.6234, 5e-5)
	for want, arm := range map[float64]sample{-0.371: first, 0.494: second} {
		e := difference(arm, control, noise)
		if e.Method != Pooled || e.Degrees != 27 || e.Clear() {
			t.Errorf("%+v", e)
		}
		near(t, "difference", e.Value, want, 5e-4)
		near(t, "half width", *e.HalfWidth, 0.2788*2.0518, 2e-4)
	}
}

// Two arms of two seeds, by hand: squares about the means 0.0002 + 0.0008, two degrees of freedom, s^2 = 0.0005; the
// interval is 4.302653 * sqrt(0.0005 * (1/2 + 1/2)).
func TestTwoSeedsByHand(t *testing.T) {
	arm, base := samples(0.90, 0.92), samples(1.00, 1.04)
	noise := pool([]sample{arm, base})
	e := difference(arm, base, noise)
	near(t, "s", noise.SD, math.Sqrt(0.0005), 1e-12)
	near(t, "difference", e.Value, -0.11, 1e-12)
	near(t, "half width", *e.HalfWidth, 4.302653*math.Sqrt(0.0005), 1e-7)
	if e.Method != Pooled || e.Degrees != 2 || !e.Clear() {
		t.Errorf("%+v", e)
	}
	if s := arm.summary(); s.Kind != "range" || math.Abs(*s.Spread-0.02) > 1e-12 {
		t.Errorf("%+v", s)
	}
	// Three more quiet arms give more degrees of freedom, and a narrower interval.
	more := []sample{arm, base, samples(0.8, 0.8), samples(0.7, 0.7), samples(0.6, 0.6)}
	if closer := difference(arm, base, pool(more)); closer.Degrees != 5 || *closer.HalfWidth >= *e.HalfWidth {
		t.Errorf("%+v", closer)
	}
}

func TestOneRunHasNoUncertainty(t *testing.T) {
	arm, base := samples(0.9), samples(1.0)
	noise := pool([]sample{arm, base})
	e := difference(arm, base, noise)
	if noise.Degrees != 0 || e.Method != None || e.HalfWidth != nil || e.Clear() {
		t.Errorf("%+v, %+v", noise, e)
	}
	if s := arm.summary(); s.Spread != nil || s.Kind != "none" || s.Mean != 0.9 {
		t.Errorf("%+v", s)
	}
	// With another arm of two runs, its spread stands for theirs: t(1) * s * sqrt(1 + 1).
	noise = pool([]sample{arm, base, samples(0.5, 0.52)})
	e = difference(arm, base, noise)
	near(t, "half width", *e.HalfWidth, 12.7062047*math.Sqrt(0.0002)*math.Sqrt2, 1e-7)
}

// A constant on every score changes no interval; more spread widens it; swapping the arms turns the sign.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 2 + rng.IntN(4)
		draw := func(spread float64) sample {
			var v []float64
			for range n {
				v = append(v, 1+spread*rng.NormFloat64())
			}
			return samples(v...)
		}
		arm, base := draw(0.1), draw(0.1)
		change := func(s sample, by, stretch float64) sample {
			m := s.summary().Mean
			var v []float64
			for _, x := range s.values {
				v = append(v, m+(x-m)*stretch+by)
			}
			return samples(v...)
		}
		noise := pool([]sample{arm, base})
		e := difference(arm, base, noise)
		a, b := change(arm, 3, 1), change(base, 3, 1)
		moved := difference(a, b, pool([]sample{a, b}))
		near(t, "moved value", moved.Value, e.Value, 1e-12)
		near(t, "moved interval", *moved.HalfWidth, *e.HalfWidth, 1e-9)
		a, b = change(arm, 0, 2), change(base, 0, 2)
		if wide := difference(a, b, pool([]sample{a, b})); !(*wide.HalfWidth > *e.HalfWidth) {
			t.Errorf("twice the spread: %g after %g", *wide.HalfWidth, *e.HalfWidth)
		}
		back := difference(base, arm, noise)
		near(t, "swapped value", back.Value, -e.Value, 1e-15)
		near(t, "swapped interval", *back.HalfWidth, *e.HalfWidth, 1e-12)
	}
}

// Of many comparisons without an effect, 95 % of the intervals hold zero, whatever the method.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const trials = 4000
	for _, c := range []struct{ arms, seeds int }{{2, 2}, {6, 2}, {4, 3}, {3, 5}} {
		held := 0
		for range trials {
			var all []sample
			for range c.arms {
				var v []float64
				for range c.seeds {
					v = append(v, 0.9+0.01*rng.NormFloat64())
				}
				all = append(all, samples(v...))
			}
			if !difference(all[1], all[0], pool(all)).Clear() {
				held++
			}
		}
		// Four standard deviations of the share of 4,000 draws are 0.014.
		near(t, "share of intervals that hold the truth", float64(held)/trials, Confidence, 0.014)
	}
}
