package engine

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// ways are the settings that may change speed and no bit: every path, alone and in a team, all neurons and some.
func ways() []Options {
	var out []Options
	for _, path := range Paths() {
		for _, batch := range []int{1, 5, 8, 33} {
			out = append(out, Options{Path: path, Batch: batch}, Options{Path: path, Batch: batch, Dense: true})
		}
		out = append(out, Options{Path: path, Threads: 2, Batch: 1}, Options{Path: path, Threads: 3, Batch: 7})
	}
	return out
}

func (o Options) String() string {
	return fmt.Sprintf("%v, %d threads, batch %d, dense %v", o.Path, o.Threads, o.Batch, o.Dense)
}

// digestOf runs ids in pieces and returns the digest of all logits.
func digestOf(tb testing.TB, e *Engine, ids []int32, pieces []int) uint64 {
	tb.Helper()
	e.Reset()
	return referenceDigest(ids, run(tb, e, ids, pieces), e.Image().Model().VocabSize)
}

// explain is where a run goes wrong: the first step in which it differs from the reference.
func explain(tb testing.TB, m *testModel, e *Engine, ids []int32, pieces []int) string {
	tb.Helper()
	m.tracing = &Tracing{}
	m.forward(ids)
	defer func() { m.tracing = nil }()
	got, err := e.Record()
	if err != nil {
		tb.Fatal(err)
	}
	digestOf(tb, e, ids, pieces)
	if d := FirstDifference(m.tracing, got); d != nil {
		return d.String()
	}
	return "all steps agree with the reference when traced"
}

func TestDigestIsTheSameEveryWay(t *testing.T) {
	for name, cfg := range testConfigs() {
		for _, byRows := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by rows %v", name, byRows), func(t *testing.T) {
				m := newTestModel(t, cfg, 13)
				m.byRows = byRows
				ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 3)
				want := referenceDigest(ids, m.forward(ids), cfg.VocabSize)
				im := openTest(t, m.image(t, ids[:1]).bytes)
				for _, opt := range ways() {
					e, err := New(im, opt)
					if err != nil {
						t.Fatal(err)
					}
					for i, pieces := range splits(len(ids)) {
						if byRows && i > 0 || opt.Threads > 1 && i == 1 {
							continue
						}
						if got := digestOf(t, e, ids, pieces); got != want {
							t.Fatalf("%v, pieces %v: digest %#x, the reference has %#x: %s", opt, pieces, got, want,
								explain(t, m, e, ids, pieces))
						}
					}
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestScaleOfZero gives rows with codes the scale 0, as only a hostile image does. Where the sum is negative, the product of
// the first group is -0, which added to the +0 that a row starts from is +0, in every kernel.
func TestScaleOfZero(t *testing.T) {
	for _, byRows := range []bool{false, true} {
		cfg := shape(90, 72, 1, 2, 80, 12, 0, 0)
		cfg.Quant.Weights.Group = 32
		m := newTestModel(t, cfg, 13)
		m.byRows = byRows
		for _, q := range m.matrices {
			for i := range q.Scales {
				if i/3%4 < 2 {
					q.Scales[i] = 0
				}
			}
		}
		m.cluster(t, 5)
		ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 3)
		logits := m.forward(ids)
		want, last := referenceDigest(ids, logits, cfg.VocabSize), logits[len(logits)-cfg.VocabSize:]
		if !slices.Contains(last, 0) {
			t.Fatal("no logit is 0")
		}
		im := openTest(t, m.image(t, ids[:1]).bytes)
		for _, opt := range ways() {
			e, err := New(im, opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, pieces := range splits(len(ids)) {
				if got := digestOf(t, e, ids, pieces); got != want {
					t.Fatalf("%v, pieces %v: digest %#x, the reference has %#x: %s", opt, pieces, got, want, explain(t, m, e, ids, pieces))
				}
			}
			for _, search := range []Search{im.Certified(), {Full: true}, {Margin: 0}} {
				e.Reset()
				best, err := e.ForwardBest(ids, search, cfg.VocabSize)
				if err != nil {
					t.Fatal(err)
				}
				sameChoices(t, fmt.Sprintf("%v, %+v", opt, search), best, referenceTop(last, cfg.VocabSize))
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFaultIsFoundInATrace changes one code of the image and wants the tensor named that it belongs to.
func TestFaultIsFoundInATrace(t *testing.T) {
	cfg := testConfigs()["combo in small"]
	for tensor, step := range map[string]string{
		"layers.0.qkv": "layer 0, qkv", "layers.1.up": "layer 1, ffn", "layers.1.down": "layer 1, down", "layers.0.ple_gate": "layer 0, ple_gate",
	} {
		m := newTestModel(t, cfg, 13)
		im := m.image(t, []int32{1})
		for i := range 200 { // codes that survive any rounding behind them
			b := &im.bytes[im.codes[tensor]+i]
			if *b = *b ^ 0x22; *b&15 == 8 || *b>>4 == 8 {
				*b ^= 0x11
			}
		}
		fixCRCs(im.bytes)
		e := newEngine(t, openTest(t, im.bytes), 4)
		ids := randomIDs(10, cfg.VocabSize, 3)
		if got := explain(t, m, e, ids, []int{10}); !strings.Contains(got, step+", value") || !strings.Contains(got, "position 0") {
			t.Errorf("%s: %q", tensor, got)
		}
	}
}

// TestReads compares what is counted with what the shapes ask for: every tensor once a block, a row of the tables for
// each position, and fewer neurons when silent ones are passed over.
func TestReads(t *testing.T) {
	for name, cfg := range testConfigs() {
		t.Run(name, func(t *testing.T) {
			m := newTestModel(t, cfg, 13)
			ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 3)
			im := openTest(t, m.image(t, ids[:1]).bytes)
			for _, batch := range []int{1, 3} {
				e, err := New(im, Options{Batch: batch, Dense: true})
				if err != nil {
					t.Fatal(err)
				}
				run(t, e, ids, []int{len(ids)})
				dense, err := e.Reads()
				if err != nil {
					t.Fatal(err)
				}
				blocks := int64((len(ids) + batch - 1) / batch)
				if dense.Positions != int64(len(ids)) || dense.Blocks != blocks || dense.Logits != int64(len(ids)) {
					t.Errorf("batch %d: %+v", batch, dense)
				}
				for i, b := range cfg.Budget().Tensors {
					want := blocks * b.TokenRead
					whole := b.Codes + b.Scales
					switch {
					case b.Reading == configs.ReadRow:
						want = int64(len(ids)) * b.TokenRead
					case b.Class == configs.ClassEmbedding:
						want = blocks*whole + int64(len(ids))*(b.TokenRead-whole)
					case b.Reading == configs.ReadExpert && batch > 1: // one to all experts a block
						if got := dense.Tensors[i]; got < want || got > blocks*whole {
							t.Errorf("batch %d, %s: %d bytes, want %d to %d", batch, b.Name, got, want, blocks*whole)
						}
						continue
					}
					if dense.Tensors[i] != want {
						t.Errorf("batch %d, %s: %d bytes, want %d", batch, b.Name, dense.Tensors[i], want)
					}
				}
				e.ClearReads()
				if r, _ := e.Reads(); r.Total() != 0 || r.Positions != 0 {
					t.Errorf("after clearing: %+v", r)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if cfg.Activation != configs.ReLU {
				return
			}
			e := newEngine(t, im, 1)
			run(t, e, ids, splits(len(ids))[1])
			r, err := e.Reads()
			if err != nil {
				t.Fatal(err)
			}
			for l := range cfg.NLayers {
				if r.UpRows[l] != r.Open[l] || r.DownColumns[l] != r.Used[l] || r.Used[l] > r.Open[l] || r.Open[l] > int64(len(ids)*cfg.DFF) {
					t.Errorf("layer %d: %d rows of up for %d open gates, %d columns of down for %d neurons", l, r.UpRows[l], r.Open[l],
						r.DownColumns[l], r.Used[l])
				}
			}
			for i, b := range cfg.Budget().Tensors {
				if strings.HasSuffix(b.Name, ".up") {
					row := (b.Codes + b.Scales) / int64(b.Rows())
					var layer int
					fmt.Sscanf(b.Name, "layers.%d.up", &layer)
					if want := r.Open[layer] * row; r.Tensors[i] != want {
						t.Errorf("%s: %d bytes for %d open gates of %d each", b.Name, r.Tensors[i], r.Open[layer], row)
					}
				}
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	im := openTest(t, smallModel(t).image(t, []int32{1}).bytes)
	for _, opt := range []Options{{Batch: -1}, {Batch: MaxBatch + 1}, {Threads: -1}, {Threads: MaxThreads + 1}, {Path: 77}, {Path: -1},
		{Path: map[bool]Path{true: PathNEON, false: PathAVX2}[runtime.GOARCH == "amd64"]}} {
		if e, err := New(im, opt); err == nil {
			e.Close()
			t.Errorf("%+v is accepted", opt)
		}
	}
}
