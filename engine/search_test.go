package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// clusteredConfigs are shapes whose heads are worth searching.
func clusteredConfigs() map[string]configs.Config {
	out := map[string]configs.Config{
		"tied":   shape(700, 64, 1, 2, 40, 24, 16, 0),
		"odd":    shape(333, 42, 2, 3, 30, 24, 0, 0),
		"untied": shape(510, 96, 1, 2, 40, 24, 0, 0),
		"tiny":   shape(3, 2, 1, 1, 4, 12, 0, 0),
	}
	for name, bits := range map[string]int{"2 bits": 2, "8 bits": 8} {
		c := shape(600, 128, 1, 2, 40, 20, 0, 0)
		c.Quant.Weights = configs.WeightQuant{Bits: bits, Group: 32, Scale: configs.ScaleF16}
		out[name] = c
	}
	eight := shape(200, 42, 1, 1, 20, 16, 0, 0) // a row of whole blocks and half a chunk
	eight.Quant.Weights = configs.WeightQuant{Bits: 8, Scale: configs.ScaleF32}
	out["8 bits, odd"] = eight
	two := shape(200, 74, 1, 1, 20, 16, 0, 0)
	two.Quant.Weights = configs.WeightQuant{Bits: 2, Group: 32, Scale: configs.ScaleF32}
	out["2 bits, odd"] = two
	c := out["untied"]
	c.TieEmbeddings = false
	out["untied"] = c
	return out
}

// hiddenStates lets an engine show the head's inputs, quantised.
func hiddenStates(t *testing.T, e *Engine) *[]float32 {
	t.Helper()
	var h []float32
	if err := e.Trace(func(s Step) {
		if s.Name == "output_norm" {
			h = slices.Clone(s.Values)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return &h
}

// TestSearchEqualsTheFullHead holds the certified search to the full head at every position, for one token and many, to
// the bit; and what it reads to the search of package clusters, which is written in Go.
func TestSearchEqualsTheFullHead(t *testing.T) {
	for name, cfg := range clusteredConfigs() {
		t.Run(name, func(t *testing.T) {
			m := newTestModel(t, cfg, 21)
			m.cluster(t, min(16, cfg.VocabSize))
			im := openTest(t, m.image(t, []int32{1}).bytes)
			ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 5)
			want := m.forward(ids)
			options := []Options{{Batch: 3, Threads: 2}}
			for _, path := range Paths() {
				options = append(options, Options{Batch: 1 + 6*len(options), Path: path})
			}
			for _, opt := range options {
				for _, k := range []int{1, 5, 40} {
					k = min(k, cfg.VocabSize)
					e, err := New(im, opt)
					if err != nil {
						t.Fatal(err)
					}
					hidden := hiddenStates(t, e)
					var read int64
					for i, id := range ids {
						best, err := e.ForwardBest([]int32{id}, im.Certified(), k)
						if err != nil {
							t.Fatal(err)
						}
						full := referenceTop(want[i*cfg.VocabSize:(i+1)*cfg.VocabSize], k)
						sameChoices(t, fmt.Sprintf("%+v, best %d at %d", opt, k, i), best, full)

						codes := make([]int8, cfg.DModel)
						scale := qat.QuantiseVector(*hidden, codes)
						_, work := m.clusters.Search(m.head(), codes, scale, k, 1)
						r, err := e.Reads()
						if err != nil {
							t.Fatal(err)
						}
						if r.SearchedRows != int64(work.Rows) || r.BlocksRead != [2]int64{int64(work.Blocks[0]), int64(work.Blocks[1])} {
							t.Fatalf("best %d at %d: %d rows and %v blocks, the search in Go reads %+v", k, i, r.SearchedRows, r.BlocksRead, work)
						}
						read += r.SearchedRows
						e.ClearReads()
					}
					if k == 1 && cfg.VocabSize > 100 && read >= int64(len(ids)*cfg.VocabSize) {
						t.Errorf("%d rows read of %d: the bounds do nothing", read, len(ids)*cfg.VocabSize)
					}
					e.Reset()
					best, err := e.ForwardBest(ids, Search{Full: true}, k)
					if err != nil {
						t.Fatal(err)
					}
					sameChoices(t, "full", best, referenceTop(want[len(want)-cfg.VocabSize:], k))
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func sameChoices(t *testing.T, what string, got, want []TokenLogit) {
	t.Helper()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i].ID == want[i].ID && math.Float32bits(got[i].Logit) == math.Float32bits(want[i].Logit)
	}
	if !same {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestLimitedSearch reads fewer rows the tighter the limit; what it finds are true logits in order.
func TestLimitedSearch(t *testing.T) {
	cfg := clusteredConfigs()["tied"]
	m := newTestModel(t, cfg, 22)
	m.cluster(t, 32)
	im := openTest(t, m.image(t, []int32{1}).bytes)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 5)
	want := m.forward(ids)
	logits := want[len(want)-cfg.VocabSize:]
	e := newEngine(t, im, 8)
	before := int64(0)
	for _, s := range []Search{{Clusters: 1, Margin: 1}, {Clusters: 4, Margin: 1}, {Clusters: 32, Margin: 1}, {Full: true}} {
		e.Reset()
		e.ClearReads()
		best, err := e.ForwardBest(ids, s, cfg.VocabSize)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Reads()
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(best)) != r.SearchedRows || r.SearchedRows < before || r.SearchedRows == 0 {
			t.Errorf("%+v: %d found, %d rows read, %d before", s, len(best), r.SearchedRows, before)
		}
		before = r.SearchedRows
		for i, b := range best {
			if math.Float32bits(b.Logit) != math.Float32bits(logits[b.ID]) {
				t.Fatalf("%+v: token %d has %v, want %v", s, b.ID, b.Logit, logits[b.ID])
			}
			if i > 0 && (b.Logit > best[i-1].Logit || b.Logit == best[i-1].Logit && b.ID < best[i-1].ID) {
				t.Fatalf("%+v: %v stands after %v", s, b, best[i-1])
			}
		}
	}
	if before != int64(cfg.VocabSize) {
		t.Errorf("the full search read %d rows of %d", before, cfg.VocabSize)
	}
	count := func(s Search) int64 {
		e.Reset()
		e.ClearReads()
		if _, err := e.ForwardBest(ids, s, 1); err != nil {
			t.Fatal(err)
		}
		r, _ := e.Reads()
		return r.SearchedRows
	}
	if certain, loose := count(im.Certified()), count(Search{Margin: 0.3}); loose > certain {
		t.Errorf("a margin of 0.3 reads %d rows, 1 reads %d", loose, certain)
	}
	for name, c := range map[string]struct {
		s    Search
		k    int
		want error
	}{
		"margin":   {Search{Margin: 1.5}, 1, ErrArgument},
		"NaN":      {Search{Margin: float32(math.NaN())}, 1, ErrArgument},
		"none":     {Search{Margin: 1}, 0, ErrArgument},
		"negative": {Search{Margin: 1, Clusters: -1}, 1, ErrArgument},
	} {
		if _, err := e.ForwardBest(ids[:1], c.s, c.k); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := newTestModel(t, cfg, 22)
	whole := newEngine(t, openTest(t, plain.image(t, []int32{1}).bytes), 1)
	if _, err := whole.ForwardBest(ids[:1], Search{Margin: 1}, 1); !errors.Is(err, ErrClusters) {
		t.Errorf("without clusters: %v", err)
	}
	if s := whole.Image().Certified(); !s.Full {
		t.Errorf("the certified search of an image without clusters is %+v", s)
	}
}

// TestDrawEqualsSample draws from the best tokens what sampling draws from all logits.
func TestDrawEqualsSample(t *testing.T) {
	logits := make([]float32, 300)
	rng := RNG(3)
	for i := range logits {
		logits[i] = float32(rng.Next()%1000) / 100
	}
	for _, temperature := range []float32{0, 0.3, 1, 5} {
		for _, k := range []int{1, 2, 40, 300} {
			a, b := RNG(7), RNG(7)
			for range 50 {
				id, err := Sample(logits, temperature, k, &a)
				if err != nil {
					t.Fatal(err)
				}
				best, err := Top(logits, k)
				if err != nil {
					t.Fatal(err)
				}
				drawn, err := Draw(best, temperature, &b)
				if err != nil {
					t.Fatal(err)
				}
				if drawn.ID != id || a != b {
					t.Fatalf("temperature %v, k %d: drew %d, sampling draws %d", temperature, k, drawn.ID, id)
				}
			}
		}
	}
	if _, err := Draw(nil, 1, new(RNG)); !errors.Is(err, ErrArgument) {
		t.Error(err)
	}
	if _, err := Draw([]TokenLogit{{}}, -1, new(RNG)); !errors.Is(err, ErrTemperature) {
		t.Error(err)
	}
	if _, err := Draw([]TokenLogit{{0, float32(math.NaN())}}, 1, new(RNG)); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
}

// TestChoicesDigest is the digest of a search: the same for every way to run it.
func TestChoicesDigest(t *testing.T) {
	cfg := clusteredConfigs()["odd"]
	m := newTestModel(t, cfg, 23)
	m.cluster(t, 9)
	im := openTest(t, m.image(t, []int32{1}).bytes)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 5)
	want := NewDigest()
	logits := m.forward(ids)
	for i := range ids {
		want = want.AddChoice(referenceTop(logits[i*cfg.VocabSize:(i+1)*cfg.VocabSize], 1)[0])
	}
	for _, opt := range ways() {
		e, err := New(im, opt)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDigest()
		for _, id := range ids {
			best, err := e.ForwardBest([]int32{id}, im.Certified(), 1)
			if err != nil {
				t.Fatal(err)
			}
			d = d.AddChoice(best[0])
		}
		if d != want {
			t.Errorf("%v: digest %#x, want %#x", opt, d, want)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
