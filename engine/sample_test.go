package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chiplm/chiplm/qat"
)

// testLogits are n logits with many ties.
func testLogits(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.Round(rng.NormFloat64()*8)) / 4
	}
	return out
}

// TestRandom compares with the generator's published sequence (Vigna, splitmix64.c, seed 1234567).
func TestRandom(t *testing.T) {
	r := RNG(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := r.Next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

func TestTopAndArgMax(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 9, 100, 513} {
		logits := testLogits(n, uint64(n))
		best := referenceTop(logits, n)
		if id, err := ArgMax(logits); err != nil || id != best[0].ID {
			t.Errorf("arg-max of %d: %d, %v; want %d", n, id, err, best[0].ID)
		}
		for _, k := range []int{1, 2, 5, 40, n} {
			top, err := Top(logits, k)
			if err != nil {
				t.Fatal(err)
			}
			if len(top) != min(k, n) {
				t.Fatalf("best %d of %d: %d", k, n, len(top))
			}
			for i := range top {
				if top[i] != best[i] {
					t.Fatalf("best %d of %d: place %d is %v, want %v", k, n, i, top[i], best[i])
				}
			}
		}
	}
}

// referenceSample is docs/numerics.md, section "Sampling".
func referenceSample(logits []float32, temperature float32, k int, rng *RNG) int32 {
	best := referenceTop(logits, k)
	a := make([]float32, len(best))
	for i := range a {
		a[i] = qat.Exp((best[i].Logit - best[0].Logit) / temperature)
	}
	threshold := float32(float32(rng.Next()>>40)*0x1p-24) * qat.Sum8(a)
	var running float32
	for i := range a {
		running += a[i]
		if running > threshold {
			return best[i].ID
		}
	}
	return best[len(best)-1].ID
}

func TestSampleEqualsReference(t *testing.T) {
	a, b := RNG(1), RNG(1)
	for i := range 600 {
		n := 1 + i%37
		logits := testLogits(n, uint64(i))
		temperature := []float32{0.01, 0.5, 0.8, 1, 3}[i%5]
		k := i % 45 // 0 keeps all
		want := k
		if want == 0 {
			want = n
		}
		got, err := Sample(logits, temperature, k, &a)
		if err != nil {
			t.Fatal(err)
		}
		if want := referenceSample(logits, temperature, want, &b); got != want {
			t.Fatalf("case %d: %d, want %d", i, got, want)
		}
	}
	if a != b {
		t.Error("the generators went apart")
	}
}

func TestSampleFollowsTheDistribution(t *testing.T) {
	logits := []float32{0, 1, 2, -1, 0.5}
	var total float64
	for _, l := range logits {
		total += math.Exp(float64(l))
	}
	counts := make([]int, len(logits))
	rng := RNG(7)
	const n = 20000
	for range n {
		id, err := Sample(logits, 1, 0, &rng)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
	}
	for id, l := range logits {
		p := math.Exp(float64(l)) / total
		if sigma := math.Sqrt(p * (1 - p) * n); math.Abs(float64(counts[id])-p*n) > 5*sigma {
			t.Errorf("token %d was drawn %d times, expected %.0f", id, counts[id], p*n)
		}
	}
}

func TestNLL(t *testing.T) {
	for _, n := range []int{1, 3, 8, 17, 4096} {
		logits := testLogits(n, 5)
		top := logits[0]
		for _, l := range logits {
			top = max(top, l)
		}
		a := make([]float32, n)
		var exact float64
		for i, l := range logits {
			a[i] = qat.Exp(l - top)
			exact += math.Exp(float64(l) - float64(top))
		}
		for _, id := range []int32{0, int32(n / 2), int32(n - 1)} {
			got, err := NLL(logits, id)
			if err != nil {
				t.Fatal(err)
			}
			if want := math.Log(float64(qat.Sum8(a))) - float64(logits[id]-top); got != want {
				t.Errorf("%d of %d: %v, the definition gives %v", id, n, got, want)
			}
			if want := math.Log(exact) - float64(logits[id]) + float64(top); math.Abs(got-want) > 1e-5 {
				t.Errorf("%d of %d: %v nats, want %v", id, n, got, want)
			}
		}
	}
}

func TestSamplingErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	rng := RNG(1)
	good := []float32{1, 2, 3}
	sample := func(logits []float32, temperature float32, k int) error {
		_, err := Sample(logits, temperature, k, &rng)
		return err
	}
	nll := func(logits []float32, id int32) error { _, err := NLL(logits, id); return err }
	argMax := func(logits []float32) error { _, err := ArgMax(logits); return err }
	top := func(logits []float32, k int) error { _, err := Top(logits, k); return err }
	for name, c := range map[string]struct{ got, want error }{
		"temperature below 0":  {sample(good, -1, 0), ErrTemperature},
		"temperature NaN":      {sample(good, nan, 0), ErrTemperature},
		"temperature infinite": {sample(good, inf, 0), ErrTemperature},
		"top-k below 0":        {sample(good, 1, -1), ErrArgument},
		"sample of nothing":    {sample(nil, 1, 0), ErrArgument},
		"sample NaN":           {sample([]float32{1, nan}, 1, 0), ErrNotFinite},
		"sample NaN greedily":  {sample([]float32{1, nan}, 0, 0), ErrNotFinite},
		"arg-max of nothing":   {argMax(nil), ErrArgument},
		"arg-max infinite":     {argMax([]float32{1, -inf}), ErrNotFinite},
		"top 0":                {top(good, 0), ErrArgument},
		"top infinite":         {top([]float32{inf}, 1), ErrNotFinite},
		"id below 0":           {nll(good, -1), ErrID},
		"id past the end":      {nll(good, 3), ErrID},
		"nll of nothing":       {nll(nil, 0), ErrArgument},
		"nll NaN":              {nll([]float32{1, nan}, 0), ErrNotFinite},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if rng != 1 {
		t.Error("a refused or greedy draw moved the generator")
	}
	if id, err := Sample(good, 0, 0, nil); err != nil || id != 2 {
		t.Errorf("greedy: %d, %v", id, err)
	}
}

func TestSampleIsTotal(t *testing.T) {
	huge := []float32{-3e38, 3e38, 1e-45}
	for _, temperature := range []float32{1e-45, 1e-30, 1, 3e38} {
		rng := RNG(3)
		for range 50 {
			if id, err := Sample(huge, temperature, 0, &rng); err != nil || id < 0 || id > 2 {
				t.Errorf("temperature %v: %d, %v", temperature, id, err)
			}
		}
	}
}
