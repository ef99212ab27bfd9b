package clusters

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/splitmix"
	"github.com/chiplm/chiplm/qat"
)

// source draws test data; its normal numbers are sums of uniform ones, the same on every machine.
type source struct{ *splitmix.Source }

func newSource(seed uint64) source { return source{splitmix.New(seed, 7)} }

func (s source) normal() float64 {
	var sum float64
	for range 12 {
		sum += float64(s.Next()>>11) * 0x1p-53
	}
	return sum - 6
}

// head makes rows like those of a trained head: a common direction, of which frequent tokens have more, a spectrum that
// falls, and a few copies.
func head(t testing.TB, seed uint64, v, d int, spec qat.Spec) *qat.Matrix {
	t.Helper()
	s := newSource(seed)
	mix := make([]float64, d*d)
	for j := range d {
		for k := range d {
			mix[j*d+k] = s.normal() / float64(1+j)
		}
	}
	w := make([]float32, v*d)
	for i := range v {
		if i%17 == 16 {
			copy(w[i*d:(i+1)*d], w[(i-5)*d:(i-4)*d])
			continue
		}
		for j := range d {
			x := s.normal()
			for k := range d {
				w[i*d+k] += float32(x * mix[j*d+k] / 8)
			}
		}
		for k := range d {
			w[i*d+k] += float32(0.3 * mix[k] * (1 + s.normal()))
		}
	}
	m, err := qat.Quantise(spec, w, v, d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func spec(bits, group int) qat.Spec {
	return qat.Spec{Bits: bits, Group: group, Scale: configs.ScaleF32}
}

func build(t testing.TB, m *qat.Matrix, opt Options) *Clusters {
	t.Helper()
	c, err := Make(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// states are hidden states for heads of d columns: some like each other, some at random, some extreme.
func states(seed uint64, d, n int) [][]int8 {
	s := newSource(seed)
	common := make([]float64, d)
	for k := range common {
		common[k] = s.normal()
	}
	out := [][]int8{make([]int8, d)} // the zero vector
	for i := range n {
		x := make([]int8, d)
		for k := range x {
			switch i % 5 {
			case 0, 1:
				x[k] = clampCode(40 * (s.normal() + common[k]))
			case 2:
				x[k] = clampCode(60 * s.normal())
			case 3:
				x[k] = [2]int8{-127, 127}[s.Next()&1]
			}
		}
		if i%5 == 4 {
			x[s.Below(uint64(d))] = 127
		}
		out = append(out, x)
	}
	return out
}

func clampCode(x float64) int8 { return int8(max(-127, min(127, math.Round(x)))) }

func momentOf(d int, xs [][]int8) *Moment {
	m := NewMoment(d)
	y := make([]float32, d)
	for _, x := range xs {
		for k := range y {
			y[k] = float32(x[k]) / 30
		}
		m.Add(y)
	}
	return m
}

// cases are heads of several shapes, degenerate ones among them.
func cases(t testing.TB) map[string]*qat.Matrix {
	zero := head(t, 1, 40, 64, spec(4, 64))
	clear(zero.Codes)
	clear(zero.Scales)
	equal := head(t, 2, 40, 64, spec(4, 64))
	for i := range equal.Rows {
		copy(equal.Codes[i*64:(i+1)*64], equal.Codes[:64])
		equal.Scales[i] = equal.Scales[0]
	}
	some := head(t, 3, 300, 32, spec(4, 32))
	clear(some.Codes[:100*32])
	clear(some.Scales[:100])
	huge := head(t, 4, 100, 64, spec(4, 64))
	clear(huge.Scales[1:])
	clear(huge.Codes[64:])
	return map[string]*qat.Matrix{
		"4 bits, groups of 64":   head(t, 5, 700, 128, spec(4, 64)),
		"2 bits, groups of 32":   head(t, 6, 500, 96, spec(2, 32)),
		"8 bits, one group":      head(t, 7, 400, 48, spec(8, 0)),
		"a short last group":     head(t, 8, 300, 80, spec(4, 64)),
		"one column":             head(t, 9, 50, 1, spec(8, 0)),
		"two columns":            head(t, 10, 400, 2, spec(4, 0)),
		"one row":                head(t, 11, 1, 64, spec(4, 64)),
		"fewer rows than groups": head(t, 12, 5, 64, spec(4, 64)),
		"zero rows":              zero,
		"equal rows":             equal,
		"a third of zero rows":   some,
		"one row that is not 0":  huge,
	}
}

func eachCase(t *testing.T, f func(t *testing.T, m *qat.Matrix, c *Clusters)) {
	for name, m := range cases(t) {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, moment known %v", name, known), func(t *testing.T) {
				opt := Options{Count: 32, Seed: 3}
				if known {
					opt.Hidden = momentOf(m.Cols, states(20, m.Cols, 200))
				}
				f(t, m, build(t, m, opt))
			})
		}
	}
}

func TestEveryTokenInOneCluster(t *testing.T) {
	eachCase(t, func(t *testing.T, m *qat.Matrix, c *Clusters) {
		if want := min(32, m.Rows); c.Count() != want || len(c.First) != want+1 || c.First[0] != 0 ||
			int(c.First[want]) != m.Rows || len(c.Order) != m.Rows {
			t.Fatalf("%d clusters, %d bounds, %d tokens", c.Count(), len(c.First), len(c.Order))
		}
		for k := range c.Count() {
			ids := c.Order[c.First[k]:c.First[k+1]]
			if len(ids) == 0 || len(ids) > max(1, MaxSize*m.Rows/c.Count()) {
				t.Errorf("cluster %d holds %d of %d rows", k, len(ids), m.Rows)
			}
			if !slices.IsSorted(ids) {
				t.Errorf("cluster %d is not in the order of ids", k)
			}
		}
		seen := slices.Sorted(slices.Values(c.Order))
		for i, id := range seen {
			if int(id) != i {
				t.Fatalf("token %d is missing or there twice", i)
			}
		}
	})
}

// A cluster would be far larger than the rest if nothing held it.
func TestLargeClustersAreCut(t *testing.T) {
	m := head(t, 30, 400, 16, spec(8, 0))
	for i := 100; i < 400; i++ {
		copy(m.Codes[i*16:(i+1)*16], m.Codes[:16])
		m.Scales[i] = m.Scales[0]
	}
	c := build(t, m, Options{Count: 40})
	for k := range c.Count() {
		if n := c.First[k+1] - c.First[k]; n < 1 || n > 40 {
			t.Errorf("cluster %d holds %d rows", k, n)
		}
	}
}

// hostile are hidden states along which the bound of a row's level is as tight as can be: z_j in proportion to r_j/v_j^2.
func hostile(c *Clusters, m *qat.Matrix) [][]int8 {
	turn, rows := widen(c.Rotation), widen(m)
	u, err := coefficients(turn, rows, c.V, c.D, largestNorm(rows, c.D))
	if err != nil {
		panic(err)
	}
	lu := slices.Clone(turn)
	pivots, _ := factor(lu, c.D)
	var out [][]int8
	for at := 0; at < c.V; at += 1 + c.V/12 {
		r := slices.Clone(u[int(c.Order[at])*c.D:][:c.D])
		z, h := make([]float64, c.D), make([]float64, c.D)
		add := func(w []float32) {
			var most float64
			for j := range z {
				z[j] = 0
				if w[j] > 0 {
					z[j] = r[j] / (float64(w[j]) * float64(w[j]))
				}
			}
			solve(lu, pivots, z, h)
			for _, x := range h {
				most = max(most, math.Abs(x))
			}
			x := make([]int8, c.D)
			for j := range x {
				x[j] = clampCode(h[j] / max(most, 1e-300) * 127)
			}
			out = append(out, x)
		}
		add(c.Weights)
		for l := range c.Levels {
			level := &c.Levels[l]
			for lane, j := range level.Dims {
				r[j] -= float64(codeAt(level, at, lane)) * float64(level.Steps[lane])
			}
			add(level.Weights)
		}
	}
	return out
}

func codeAt(l *Level, at, lane int) int8 {
	b := l.Blocks[at*BlockBytes+lane%15]
	if lane < 15 {
		return int8(b<<4) >> 4
	}
	return int8(b) >> 4
}

// Every bound must be at least the true value of acc and the computed one, whatever the hidden state.
func TestBoundsHold(t *testing.T) {
	eachCase(t, func(t *testing.T, m *qat.Matrix, c *Clusters) {
		rows := widen(m)
		for n, x := range append(states(40, m.Cols, 60), hostile(c, m)...) {
			q := c.NewQuery(x, 1)
			for k := range c.Count() {
				for at := int(c.First[k]); at < int(c.First[k+1]); at++ {
					id := int(c.Order[at])
					var truth float64
					for j, w := range rows[id*c.D : (id+1)*c.D] {
						truth += w * float64(x[j])
					}
					truth = max(truth, float64(Logit(m, id, x, 1)))
					bounds := []float32{q.Cluster(k)}
					var sum float32
					for l := range Levels {
						var b float32
						b, sum = q.Row(l, at, sum)
						bounds = append(bounds, b)
					}
					for l, b := range bounds {
						if !(float64(b) >= truth) {
							t.Fatalf("state %d, row %d: bound %d is %g, the sum is %g", n, id, l, b, truth)
						}
					}
				}
			}
		}
	})
}

// With one row and no more columns than a box has, nothing but rounding separates the bound from the logit.
func TestSlackCoversRounding(t *testing.T) {
	closest := math.Inf(1)
	for seed := range uint64(100) {
		m := head(t, seed, 1, BoxDims, spec(8, 0))
		c := build(t, m, Options{})
		for _, x := range states(seed, BoxDims, 100)[1:] {
			acc, bound := Logit(m, 0, x, 1), c.NewQuery(x, 1).Cluster(0)
			if !(bound >= acc) {
				t.Fatalf("seed %d, state %v: the bound %g is below the sum %g", seed, x, bound, acc)
			}
			closest = min(closest, float64(bound-acc)/(128*float64(c.RowNorm)))
		}
	}
	if closest > 0x1p-12 {
		t.Errorf("no bound comes closer than %g of the largest row", closest)
	}
}

func full(m *qat.Matrix, x []int8, scale float32, k int) []Candidate {
	all := make([]Candidate, m.Rows)
	for i := range all {
		all[i] = Candidate{int32(i), Logit(m, i, x, scale)}
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all[:k]
}

func TestSearchFindsTheBest(t *testing.T) {
	eachCase(t, func(t *testing.T, m *qat.Matrix, c *Clusters) {
		for n, x := range append(states(50, m.Cols, 60), hostile(c, m)...) {
			for _, k := range []int{1, 3, 40, m.Rows} {
				k = min(k, m.Rows)
				got, work := c.Search(m, x, 0.037, k, 1)
				if want := full(m, x, 0.037, k); !slices.Equal(got, want) {
					t.Fatalf("state %d, k %d: found %v, the best are %v", n, k, got, want)
				}
				if work.Rows < k || work.Blocks[0] < work.Blocks[1] || work.Blocks[1] < work.Rows {
					t.Fatalf("state %d, k %d: work %+v", n, k, work)
				}
			}
		}
	})
}

// The search must leave most of the head unread, or all this is for nothing.
func TestSearchReadsLittle(t *testing.T) {
	m := head(t, 60, 2000, 64, spec(4, 64))
	xs := states(61, 64, 300)
	var like [][]int8
	for i, x := range xs[1:] {
		if i%5 < 2 {
			like = append(like, x)
		}
	}
	c := build(t, m, Options{Count: 128, Hidden: momentOf(64, like)})
	var certain, likely Work
	same := 0
	for _, x := range like {
		a, w := c.Search(m, x, 1, 1, 1)
		certain.Add(w)
		b, w := c.Search(m, x, 1, 1, 0.6)
		likely.Add(w)
		if a[0] == b[0] {
			same++
		}
	}
	n := len(like)
	if certain.Rows > n*2000/8 || certain.Blocks[1] > n*2000/3 || certain.Blocks[0] > n*2000*9/10 {
		t.Errorf("a search reads %d blocks, %d blocks, %d rows of 2000", certain.Blocks[0]/n, certain.Blocks[1]/n, certain.Rows/n)
	}
	if likely.Rows >= certain.Rows || same < n*9/10 {
		t.Errorf("a margin of 0.6 reads %d rows for %d and agrees in %d of %d", likely.Rows/n, certain.Rows/n, same, n)
	}
	if c.Bytes(certain, 36)-c.Bytes(Work{}, 36) != 16*(certain.Blocks[0]+certain.Blocks[1])+40*certain.Rows {
		t.Error("bytes do not add up")
	}
}

// print is a digest of everything in c.
func print(t *testing.T, c *Clusters) string {
	t.Helper()
	h := sha256.New()
	for _, x := range []any{int64(c.V), int64(c.D), c.Order, c.First, c.Rotation.Codes, c.Rotation.Scales, c.Boxes, c.BoxSteps,
		c.NormStep, c.Weights, c.RowNorm} {
		if err := binary.Write(h, binary.LittleEndian, x); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range c.Levels {
		for _, x := range []any{l.Dims, l.Steps, l.Weights, l.NormStep, l.Blocks} {
			if err := binary.Write(h, binary.LittleEndian, x); err != nil {
				t.Fatal(err)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// The digests were computed on amd64; any other machine must give the same.
func TestSameBytesEverywhere(t *testing.T) {
	m := head(t, 70, 600, 64, spec(4, 64))
	xs := states(71, 64, 300)
	for _, want := range []struct {
		opt    Options
		digest string
	}{
		{Options{Count: 48, Hidden: momentOf(64, xs), Seed: 1}, "6967fe4526099f52"},
		{Options{Count: 48, Hidden: momentOf(64, xs), Seed: 2}, "e133866fc895eba5"},
		{Options{}, "2e186437a5b51a3e"},
	} {
		for range 2 {
			if got := print(t, build(t, m, want.opt)); got != want.digest {
				t.Errorf("%d clusters, seed %d: digest %s, want %s", want.opt.Count, want.opt.Seed, got, want.digest)
			}
		}
	}
}

func TestImpossibleIsRefused(t *testing.T) {
	m := head(t, 80, 20, 32, spec(4, 32))
	for name, f := range map[string]func() (*Clusters, error){
		"count":  func() (*Clusters, error) { return Make(m, Options{Count: -1}) },
		"moment": func() (*Clusters, error) { return Make(m, Options{Hidden: NewMoment(31)}) },
		"empty":  func() (*Clusters, error) { return Make(&qat.Matrix{Spec: spec(4, 32), Cols: 32}, Options{}) },
	} {
		if _, err := f(); err == nil || errors.Is(err, ErrRange) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, scale := range []float32{0x1p-60, 0x1p60} {
		far := head(t, 80, 20, 32, spec(4, 32))
		for i := range far.Scales {
			far.Scales[i] *= scale
		}
		if _, err := Make(far, Options{}); !errors.Is(err, ErrRange) {
			t.Errorf("scale %g: error %v", scale, err)
		}
	}
}

// Heads at both ends of the range still give values that a chip computes with without loss.
func TestEndsOfTheRange(t *testing.T) {
	for _, scale := range []float32{0x1p-36, 0x1p34} {
		m := head(t, 81, 60, 32, spec(4, 32))
		for i := range m.Scales {
			m.Scales[i] *= scale
		}
		c := build(t, m, Options{Count: 8})
		for _, x := range states(82, 32, 20) {
			if got, _ := c.Search(m, x, 1, 5, 1); !slices.Equal(got, full(m, x, 1, 5)) {
				t.Errorf("scale %g: %v", scale, got)
			}
		}
	}
}

func BenchmarkMake(b *testing.B) {
	m := head(b, 90, 4096, 128, spec(4, 64))
	for b.Loop() {
		build(b, m, Options{})
	}
}
