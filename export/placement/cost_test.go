package placement

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// plain is a chip whose figures are easy to work with: 1,000 cycles a millisecond, memories of 1 and 0.1 MB a millisecond.
func plainChip() *targets.Target {
	f := func(v float64) targets.Figure { return targets.Figure{Value: v, Kind: "estimate", Source: "a test"} }
	var kernels []targets.Kernel
	for _, bits := range []int{2, 4, 8, 32} {
		kernels = append(kernels, targets.Kernel{Work: targets.Product, Bits: bits, Split: true, Call: 8, Row: 4, Group: 2, Value: 1},
			targets.Kernel{Work: targets.Columns, Bits: bits, Split: true, Row: 10, Group: 6, Value: 2})
	}
	kernels = append(kernels, targets.Kernel{Work: targets.Scores, Split: true, Value: 1}, targets.Kernel{Work: targets.Mix, Split: true, Value: 1},
		targets.Kernel{Work: targets.Norm, Row: 100, Value: 3})
	return &targets.Target{
		Name: "plain", Cores: 2, ClockMHz: 1,
		Memories: []targets.Memory{
			{Name: "fast", Tier: image.SRAM, Bytes: 1 << 20, Usable: 1 << 20, Align: 16, Line: 1, Overlap: true, SequentialMBs: f(1000), RowMBs: f(1000)},
			{Name: "slow", Tier: image.PSRAM, Bytes: 1 << 24, Usable: 1 << 24, Align: 16, Line: 64, Overlap: true, SequentialMBs: f(0.1), RowMBs: f(0.1), RowLatencyUs: f(100)},
		},
		Buffers: targets.Buffers{Arena: image.SRAM, Cache: image.PSRAM, Batch: 1},
		Profiles: []targets.Profile{{Name: "p", Kernels: kernels, HandOver: f(5), Fixed: targets.Fixed{UsPerLayer: f(1000), UsPerToken: f(500), Covers: []targets.Work{
			targets.Softmax, targets.Quantise, targets.Rotate, targets.Gate, targets.SiLU, targets.GELU, targets.PLEMix, targets.Add, targets.Unpack,
			targets.Means, targets.Boxes, targets.Blocks, targets.Best}},
			Reads: targets.Reads{Search: targets.SearchNone}}},
	}
}

func part(t *testing.T, c Cost, name, memory string) Part {
	t.Helper()
	for _, p := range c.Parts {
		if p.Name == name && p.Memory == memory {
			return p
		}
	}
	t.Fatalf("no part %s from %s in %+v", name, memory, c.Parts)
	return Part{}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// One layer, worked out by hand. 4 bits in groups of 64, a row of 128 columns: 64 bytes of codes, 8 of scales.
func TestCostByHand(t *testing.T) {
	c := combo()
	c.NLayers, c.PLEDim, c.QKNorm, c.Activation, c.ContextLength = 1, 0, false, configs.SwiGLU, 16
	chip := plainChip()
	chip.Memories[0].Usable = 10000 // the arena, the norms, and nothing else
	l, err := Plan(c, chip, Buffers{Arena: 8000, Cache: 16 * (256 + 32)}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	cost := l.Estimate(c, chip, &chip.Profiles[0], 2, 5)
	// qkv: 384 rows, 768 groups, 49,152 weights: 8 + 1,536 + 1,536 + 49,152 cycles on two cores, and 5 to hand them over.
	// 27,648 bytes at 0.1 MB/s take 276 ms: they are read while the cores compute.
	qkv := part(t, cost, "qkv", "slow")
	if !near(qkv.ComputeMs, (52232.0/2+5)/1000) || !near(qkv.ReadMs, 276.48) || !near(qkv.Ms, qkv.ReadMs) || qkv.Bytes != 27648 || qkv.Bound() != "bytes" {
		t.Errorf("%+v", qkv)
	}
	// The head: 4,096 rows.
	if h := part(t, cost, "head", "slow"); !near(h.ComputeMs, ((8+4096*4+8192*2+524288)/2.0+5)/1000) || !near(h.ReadMs, 2949.12) {
		t.Errorf("%+v", h)
	}
	// A row of the embedding: 72 bytes, in two places.
	if r := part(t, cost, "token_embedding, a row", "slow"); !near(r.Ms, (200+72/0.1)/1000) {
		t.Errorf("%+v", r)
	}
	// Positions 2 to 5 attend over 3 to 6: 4.5 on average. Keys are 128 codes and 4 scales of each.
	if s := part(t, cost, "attention scores", "slow"); !near(s.ReadMs, 4.5*144/100) || !near(s.ComputeMs, (4.5*128/2+5)/1000) {
		t.Errorf("%+v", s)
	}
	// Three norms: 100 cycles and 3 for each of 128 values, on one core. Their gains are read while that goes on elsewhere.
	if n := part(t, cost, "norms", ""); !near(n.Ms, 3*(100+3*128)/1000.0) || n.Bound() != "cycles" {
		t.Errorf("%+v", n)
	}
	if w := part(t, cost, "work between", ""); !near(w.Ms, 1.5) {
		t.Errorf("%+v", w)
	}
}

// Neurons that are silent: 64 bytes of codes are a line of their own, the 8 bytes of scales share one with seven neighbours.
func TestCostOfSilence(t *testing.T) {
	c := combo()
	chip := plainChip()
	chip.Memories[0].Usable = 10000
	m := &Measured{Tokens: 10, Neurons: make([]Neurons, 6)}
	for i := range m.Neurons {
		m.Neurons[i] = Neurons{Experts: 10, Up: 10 * 32, Down: 10 * 16, Groups: 10 * 2}
	}
	l, err := Plan(c, chip, Buffers{Arena: 1000, Cache: 256 * 6 * 288}, 1<<20, m)
	if err != nil {
		t.Fatal(err)
	}
	cost := l.Estimate(c, chip, &chip.Profiles[0], 0, 0)
	lines := 32 + 40*(1-math.Pow(0.9, 8))
	up := part(t, cost, "up", "slow")
	// Each row of the list is a product of its own.
	if !near(up.Bytes, 6*lines*64) || !near(up.ComputeMs, 6*((32*8+32*4+64*2+32*128)/2.0+5)/1000) {
		t.Errorf("%+v, want %v bytes", up, 6*lines*64)
	}
	// Two cores wait for single lines at once: 100 us and 64 bytes at 0.1 MB/s each, or the memory's own speed.
	if want := 6 * lines * 640 / 1000; !near(up.ReadMs, want) {
		t.Errorf("up is read in %v ms, want %v", up.ReadMs, want)
	}
	down := part(t, cost, "down", "slow")
	if !near(down.Bytes, 6*(16*64+2*512)) || !near(down.ComputeMs, 6*((16*10+2*128*6+2*16*128)/2.0+5)/1000) {
		t.Errorf("%+v", down)
	}
}

// estimates are plans of different kinds, with each profile of each built-in chip.
func estimates(t *testing.T, each func(name string, c *configs.Config, x *targets.Target, p *targets.Profile, l *Layout)) {
	t.Helper()
	for _, target := range targets.Builtin() {
		x, err := targets.Load(target)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Profiles {
			p := &x.Profiles[i]
			for name, c := range variants() {
				l, err := Plan(c, x, EstimateBuffers(c, 1), 3<<20, Assume(c, p))
				if err != nil {
					t.Fatal(err)
				}
				each(target+" "+p.Name+" "+name, c, x, p, l)
			}
		}
	}
}

// Parts and waits add up to the mean; the mean of a range is that of its positions; no position is cheaper than the one before.
func TestCostAddsUp(t *testing.T) {
	estimates(t, func(name string, c *configs.Config, x *targets.Target, p *targets.Profile, l *Layout) {
		whole := l.Estimate(c, x, p, 0, c.ContextLength-1)
		var parts, waits float64
		for _, q := range whole.Parts {
			parts += q.Ms
			if q.Ms > q.ReadMs+q.ComputeMs+1e-12 || q.Ms < max(q.ReadMs, q.ComputeMs)-1e-12 {
				t.Errorf("%s: %+v", name, q)
			}
		}
		for _, w := range whole.Waits {
			waits += w.Ms
		}
		if !near(parts, whole.MeanMs) || !near(waits, whole.MeanMs) || !near(whole.PerSec*whole.MeanMs, 1000) {
			t.Errorf("%s: %v in parts, %v in waits, %v in all", name, parts, waits, whole.MeanMs)
		}
		const from, to = 4, 40
		sum, last := 0.0, 0.0
		for position := from; position <= to; position++ {
			one := l.Estimate(c, x, p, position, position).MeanMs
			if one < last {
				t.Errorf("%s: position %d takes %v ms, the one before %v", name, position, one, last)
			}
			sum, last = sum+one, one
		}
		if got := l.Estimate(c, x, p, from, to).MeanMs; !near(got, sum/(to-from+1)) {
			t.Errorf("%s: %v ms over a range, %v one by one", name, got, sum/(to-from+1))
		}
		if !near(whole.StartMs, l.Estimate(c, x, p, 0, 0).MeanMs) || !(whole.StartMs < whole.MiddleMs && whole.MiddleMs < whole.EndMs) {
			t.Errorf("%s: %+v", name, whole)
		}
	})
}

// Nothing gets slower by more bandwidth, less latency, a faster clock or one core more.
func TestCostMonotone(t *testing.T) {
	estimates(t, func(name string, c *configs.Config, x *targets.Target, p *targets.Profile, l *Layout) {
		base := l.Estimate(c, x, p, 0, 9).MeanMs
		for what, change := range map[string]func(x *targets.Target){
			"clock":     func(x *targets.Target) { x.ClockMHz *= 2 },
			"cores":     func(x *targets.Target) { x.Cores *= 2 },
			"bandwidth": func(x *targets.Target) { x.Memories[len(x.Memories)-1].SequentialMBs.Value *= 2 },
			"rows":      func(x *targets.Target) { x.Memories[len(x.Memories)-1].RowMBs.Value *= 2 },
			"latency":   func(x *targets.Target) { x.Memories[len(x.Memories)-1].RowLatencyUs.Value /= 2 },
			"fastest":   func(x *targets.Target) { x.Memories[0].SequentialMBs.Value *= 2 },
		} {
			y := *x
			y.Memories = slices.Clone(x.Memories)
			change(&y)
			q := *p
			q.HandOver.Value = 0 // more cores hand over more
			if got := l.Estimate(c, &y, &q, 0, 9).MeanMs; got > base+1e-12 {
				t.Errorf("%s: %s: %v ms, %v before", name, what, got, base)
			}
		}
	})
}

// One core waits for its memory and then computes; two read while they compute.
func TestOverlap(t *testing.T) {
	c := combo()
	chip := plainChip()
	l, err := Plan(c, chip, Buffers{Arena: 1000, Cache: 256 * 6 * 288}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := l.Estimate(c, chip, &chip.Profiles[0], 0, 0)
	chip.Memories[1].Overlap = false
	other := l.Estimate(c, chip, &chip.Profiles[0], 0, 0)
	a, b := part(t, one, "attention scores", "slow"), part(t, other, "attention scores", "slow")
	if !near(a.Ms, max(a.ReadMs, a.ComputeMs)) || !near(b.Ms, b.ReadMs+b.ComputeMs) || other.MeanMs <= one.MeanMs {
		t.Errorf("%+v %+v", a, b)
	}
}

// What one core does alone waits for a cache and then computes, a row of a list at a time; SRAM has nothing to wait for.
func TestOneCoreAlone(t *testing.T) {
	chip := plainChip()
	for _, c := range []struct {
		memory     int
		alone      bool
		read, both float64
	}{{1, false, 8 * 640 / 1e3, 8 * 640 / 1e3}, {1, true, 8 * (100 + 640) / 1e3, 8*(100+640)/1e3 + 2}, {0, false, 0.000512, 2}, {0, true, 0.000512, 2}} {
		o := operation{memory: &chip.Memories[c.memory], lines: 512, rows: 8, cycles: 2000, alone: c.alone}
		if read, compute, both := o.ms(chip, 0); !near(read, c.read) || !near(compute, 2) || !near(both, c.both) {
			t.Errorf("%+v: %v, %v, %v ms", c, read, compute, both)
		}
	}
}

// A model that lies whole in SRAM waits for cycles there: the plan says where fewer bits are no faster.
func TestCostTellsTheBound(t *testing.T) {
	x := esp32s3(t)
	c := combo()
	c.Name, c.VocabSize, c.DModel, c.NLayers, c.DFF, c.ContextLength, c.PLEDim = "small", 512, 64, 2, 128, 128, 0
	l, err := Plan(c, x, Buffers{Arena: 20000, Cache: 40000}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	if q := part(t, l.Cost, "qkv", "sram"); q.Bound() != "cycles" {
		t.Errorf("%+v", q)
	}
	large := plan(t, combo(), Buffers{Arena: 70000, Cache: 442368}, 3<<20)
	if g := part(t, large.Cost, "head", "psram"); g.Bound() != "bytes" {
		t.Errorf("%+v", g)
	}
	for value, want := range map[float64]bool{0.001: false, 3: true} { // cycles of a weight of 2 bits
		for i := range x.Profiles[0].Kernels {
			if k := &x.Profiles[0].Kernels[i]; k.Work == targets.Product && k.Bits == 2 {
				k.Value, k.Row, k.Group = value, 0, 0
			}
			if k := &x.Profiles[0].Kernels[i]; k.Work == targets.Product && k.Bits == 8 {
				k.Value, k.Row, k.Group = 5, 0, 0
			}
		}
		l, err := Plan(c, x, Buffers{Arena: 20000, Cache: 40000}, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(l.Notes, "\n"), "products from sram wait for cycles, not bytes"); got != want {
			t.Errorf("%v cycles a weight: %v", value, l.Notes)
		}
	}
	var b bytes.Buffer
	if err := l.WriteSummary(&b); err != nil || !strings.Contains(b.String(), "bound by") || !strings.Contains(b.String(), "qkv from sram") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestPositions(t *testing.T) {
	for s, want := range map[string][2]int{"": {0, 255}, "4-203": {4, 203}, "7-7": {7, 7}, "0-255": {0, 255}} {
		if from, to, err := Positions(s, 256); err != nil || from != want[0] || to != want[1] {
			t.Errorf("%q: %d %d %v", s, from, to, err)
		}
	}
	for s, want := range map[string]string{"4": "such as 4-203", "9-4": "such as", "-1-4": "such as", "4-203x": "such as", "4-5-6": "such as",
		"4-256": "the positions 0-255", "a-b": "such as", "0-99999999999999999999": "such as"} {
		if _, _, err := Positions(s, 256); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// What is assumed comes out as the profile's shares.
func TestAssume(t *testing.T) {
	c := combo()
	x := esp32s3(t)
	p := *x.Profile("study")
	p.Reads.Neurons.Value, p.Reads.Rows.Value = 0.25, 0.5
	m := Assume(c, &p)
	if m.Head.Rows != 2048 || !m.Head.Means || m.Head.Blocks != [2]float64{} || float64(m.Neurons[3].Up)/float64(m.Tokens) != 80 || m.Neurons[3].Down != m.Neurons[3].Up {
		t.Errorf("%+v %+v", m.Head, m.Neurons[3])
	}
	if g := float64(m.Neurons[0].Groups) / float64(m.Tokens); math.Abs(g-5) > 1e-5 { // 64 neurons a group: hardly one is silent whole
		t.Errorf("%v groups", g)
	}
	c.Activation = configs.SwiGLU
	if m = Assume(c, &p); m.Neurons != nil || m.Head == nil {
		t.Errorf("%+v", m)
	}
	c.VocabSize = 512
	if m = Assume(c, &p); m != nil {
		t.Errorf("%+v", m)
	}
}
