package engine

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// testConfigs are the shapes that the engine is held to the reference on: every number format, every option, odd sizes.
func testConfigs() map[string]configs.Config {
	quant := func(c configs.Config, bits, group int, scale configs.ScaleType) configs.Config {
		c.Quant.Weights = configs.WeightQuant{Bits: bits, Group: group, Scale: scale}
		return c
	}
	class := func(c configs.Config, name configs.TensorClass, bits, group int) configs.Config {
		c.Quant.Classes = map[configs.TensorClass]configs.ClassRule{name: {Bits: &bits, Group: &group}}
		return c
	}
	with := func(c configs.Config, f func(*configs.Config)) configs.Config { f(&c); return c }
	return map[string]configs.Config{
		"combo in small": with(shape(97, 64, 2, 2, 80, 40, 16, 0), func(c *configs.Config) { c.QKNorm = true }),
		"2 bits":         quant(shape(50, 96, 2, 4, 70, 30, 0, 0), 2, 32, configs.ScaleF32),
		"8 bits":         quant(shape(50, 72, 2, 3, 100, 30, 8, 0), 8, 128, configs.ScaleF16),
		"a row":          quant(shape(33, 130, 1, 1, 50, 30, 24, 0), 4, 0, configs.ScaleF16),
		"8-bit row":      quant(shape(33, 40, 2, 5, 200, 30, 0, 0), 8, 0, configs.ScaleF32),
		"experts": with(quant(shape(60, 48, 2, 2, 40, 40, 8, 5), 4, 32, configs.ScaleF32),
			func(c *configs.Config) { c.Activation = configs.SwiGLU }),
		"untied": with(class(shape(70, 64, 1, 1, 66, 20, 0, 0), configs.ClassHead, 8, 0),
			func(c *configs.Config) { c.TieEmbeddings = false; c.Activation = configs.SwiGLU; c.QKNorm = true }),
		"table of 2 bits":  class(shape(70, 32, 3, 4, 66, 20, 40, 0), configs.ClassPLETable, 2, 64),
		"relu experts":     quant(shape(60, 80, 2, 2, 70, 30, 0, 4), 4, 32, configs.ScaleF16),
		"2-bit neurons":    with(quant(shape(50, 192, 1, 2, 130, 24, 64, 0), 2, 64, configs.ScaleF16), func(c *configs.Config) { c.QKNorm = true }),
		"8-bit neurons":    quant(shape(50, 64, 2, 2, 150, 24, 0, 0), 8, 64, configs.ScaleF32),
		"neurons in a row": quant(shape(50, 72, 2, 2, 200, 24, 0, 0), 4, 0, configs.ScaleF32),
		"least":            shape(1, 2, 1, 1, 1, 1, 1, 2),
		"sharp":            with(shape(40, 64, 2, 2, 64, 70, 16, 0), func(c *configs.Config) { c.QKNorm, c.AttentionScale = true, 6.5 }),
		"bigrams":          with(shape(97, 64, 2, 2, 80, 40, 16, 0), func(c *configs.Config) { c.QKNorm, c.NgramRows = true, 61 }),
		"bigrams of 2 bits": with(class(quant(shape(40, 40, 1, 2, 48, 30, 0, 0), 8, 0, configs.ScaleF16), configs.ClassNgramTable, 2, 32),
			func(c *configs.Config) { c.TieEmbeddings, c.NgramRows = false, 1000 }),
		"one row of bigrams": with(shape(9, 10, 1, 1, 3, 5, 0, 0), func(c *configs.Config) { c.NgramRows = 1 }),
		"context 1":          shape(9, 10, 1, 1, 3, 1, 0, 0),
		"wide heads":         shape(40, 256, 1, 2, 32, 70, 0, 0),
	}
}

// run feeds ids in the given pieces and returns all logits.
func run(tb testing.TB, e *Engine, ids []int32, pieces []int) []float32 {
	tb.Helper()
	v := e.Image().Model().VocabSize
	logits := make([]float32, len(ids)*v)
	at := 0
	for _, n := range pieces {
		if err := e.Forward(ids[at:at+n], logits[at*v:(at+n)*v]); err != nil {
			tb.Fatal(err)
		}
		at += n
	}
	if at != len(ids) || e.Position() != at {
		tb.Fatalf("fed %d of %d ids, position %d", at, len(ids), e.Position())
	}
	return logits
}

func sameBits(tb testing.TB, what string, got, want []float32) {
	tb.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			tb.Fatalf("%s: logit %d is %v, the reference has %v", what, i, got[i], want[i])
		}
	}
}

// splits cuts n into pieces in several ways.
func splits(n int) [][]int {
	ones := make([]int, n)
	for i := range ones {
		ones[i] = 1
	}
	out := [][]int{{n}, ones}
	if n > 4 {
		out = append(out, []int{3, 0, n - 4, 1}, []int{n / 2, n - n/2})
	}
	return out
}

func newEngine(tb testing.TB, im *Image, batch int) *Engine {
	tb.Helper()
	e, err := New(im, Options{Batch: batch})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func openTest(tb testing.TB, b []byte) *Image {
	tb.Helper()
	im, err := NewImage(b)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := im.Close(); err != nil {
			tb.Error(err)
		}
	})
	return im
}

func TestForwardEqualsReference(t *testing.T) {
	for name, cfg := range testConfigs() {
		t.Run(name, func(t *testing.T) {
			m := newTestModel(t, cfg, 7)
			ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 3)
			want := m.forward(ids)
			im := openTest(t, m.image(t, ids[:min(len(ids), 6)]).bytes)
			if err := Verify(im); err != nil {
				t.Fatal(err)
			}
			for _, batch := range []int{1, 2, 3, 8, 32, 100} {
				e := newEngine(t, im, batch)
				for _, pieces := range splits(len(ids)) {
					e.Reset()
					got := run(t, e, ids, pieces)
					sameBits(t, fmt.Sprintf("batch %d, pieces %v", batch, pieces), got, want)
				}
				e.Reset()
				last := make([]float32, cfg.VocabSize)
				if err := e.ForwardLast(ids, last); err != nil {
					t.Fatal(err)
				}
				sameBits(t, "last", last, want[len(want)-cfg.VocabSize:])
			}
			d := NewDigest()
			for i, id := range ids {
				d = d.Add(i, id, want[i*cfg.VocabSize:(i+1)*cfg.VocabSize])
			}
			if uint64(d) != referenceDigest(ids, want, cfg.VocabSize) {
				t.Error("digest differs from the reference's")
			}
		})
	}
}

// TestExpertsAreAllChosen guards the test above: a router that always chose one expert would prove little.
func TestExpertsAreAllChosen(t *testing.T) {
	cfg := testConfigs()["experts"]
	m := newTestModel(t, cfg, 7)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 3)
	want := m.forward(ids)
	for e := range cfg.Experts { // an expert without weights changes the logits if it is ever chosen
		broken := newTestModel(t, cfg, 7)
		for l := range cfg.NLayers {
			q := broken.matrices[configs.LayerTensor(l, configs.Down)]
			clear(q.Codes[e*cfg.DModel*cfg.DFF : (e+1)*cfg.DModel*cfg.DFF])
		}
		if referenceDigest(ids, broken.forward(ids), cfg.VocabSize) == referenceDigest(ids, want, cfg.VocabSize) {
			t.Errorf("expert %d is never chosen", e)
		}
	}
}

func TestEnginesRunInParallel(t *testing.T) {
	cfg := testConfigs()["combo in small"]
	m := newTestModel(t, cfg, 9)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 4)
	want := m.forward(ids)
	im := openTest(t, m.image(t, ids[:3]).bytes)
	var wg sync.WaitGroup
	for i := range 4 {
		e := newEngine(t, im, 1+5*i)
		wg.Go(func() {
			logits := make([]float32, len(want))
			for range 5 {
				e.Reset()
				if err := e.Forward(ids, logits); err != nil {
					t.Error(err)
					return
				}
				for j := range want {
					if logits[j] != want[j] {
						t.Errorf("engine %d: logit %d differs", i, j)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkScore runs the combo shape as scoring does: 256 tokens a time, all logits.
func BenchmarkScore(b *testing.B) {
	cfg := shape(4096, 128, 6, 4, 320, 256, 64, 0)
	cfg.QKNorm = true
	m := newTestModel(b, cfg, 1)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 1)
	im, err := NewImage(m.image(b, ids[:1]).bytes)
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range []int{1, 8, 32, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			e := newEngine(b, im, batch)
			logits := make([]float32, len(ids)*cfg.VocabSize)
			for b.Loop() {
				e.Reset()
				if err := e.Forward(ids, logits); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(ids)*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
