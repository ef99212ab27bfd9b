package arch

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

func TestParameterCount(t *testing.T) {
	cfg := comboConfig()
	n := 0
	for _, d := range NewWeights(cfg).Data {
		n += len(d)
	}
	if n != 3377600 || cfg.Parameters() != n {
		t.Errorf("combo has %d parameters (the configuration says %d), want 3,377,600", n, cfg.Parameters())
	}
}

// TestInitWeights pins the bytes with which training starts, and their spread.
func TestInitWeights(t *testing.T) {
	cfg := testConfig(func(c *configs.Config) { c.Train.ZeroInitProj, c.Experts = true, 4 })
	h := fnv.New64a()
	w := InitWeights(cfg, 1)
	for i, tensor := range w.Tensors {
		var sum, squares float64
		for _, v := range w.Data[i] {
			binary.Write(h, binary.LittleEndian, v)
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		n := float64(tensor.Len())
		std := math.Sqrt(squares / n)
		part := tensor.Name[strings.LastIndexByte(tensor.Name, '.')+1:]
		want := 1 / math.Sqrt(float64(tensor.Cols()))
		switch {
		case part == configs.AttentionOutput || part == configs.Down:
			want = 0
		case tensor.Class == configs.ClassNorm:
			want = 1
		case tensor.Class == configs.ClassEmbedding || tensor.Class == configs.ClassPLETable:
			want = embeddingStd
		}
		if math.Abs(std-want) > want*4/math.Sqrt(2*n) {
			t.Errorf("%s: standard deviation %v, want %v", tensor.Name, std, want)
		}
	}
	if got := h.Sum64(); got != initHash {
		t.Errorf("the weights of seed 1 hash to %#x, want %#x: the same seed must give the same bytes everywhere", got, uint64(initHash))
	}
	if other := InitWeights(cfg, 2); other.Data[0][0] == w.Data[0][0] {
		t.Error("another seed gives the same weights")
	}
}

const initHash = 0x51fe9688a6262129

func TestBuildRefuses(t *testing.T) {
	cfg := testConfig(nil)
	w := NewWeights(cfg)
	float := testConfig(func(c *configs.Config) { c.Quant.Activations.Bits = 32 })
	odd := testConfig(func(c *configs.Config) { c.NHeads = 4 })
	for name, c := range map[string]struct {
		cfg *configs.Config
		w   *Weights
		opt Options
		say string
	}{
		"batch":            {cfg, w, Options{Batch: 0, Seq: 4}, "batch"},
		"long":             {cfg, w, Options{Batch: 1, Seq: 17}, "context_length"},
		"exact and float":  {cfg, w, Options{Batch: 1, Seq: 4, Exact: true, Float: true}, "exact"},
		"exact and train":  {cfg, w, Options{Batch: 1, Seq: 4, Exact: true, Train: true}, "gradients"},
		"logits and train": {cfg, w, Options{Batch: 1, Seq: 4, Logits: true, Train: true}, "logits"},
		"float activation": {float, w, Options{Batch: 1, Seq: 4, Exact: true}, "8 bits"},
		"odd head":         {odd, w, Options{Batch: 1, Seq: 4}, "heads"},
		"other weights":    {cfg, NewWeights(testConfig(func(c *configs.Config) { c.NLayers = 1 })), Options{Batch: 1, Seq: 4}, "tensors"},
		"other shape":      {cfg, NewWeights(testConfig(func(c *configs.Config) { c.DFF = 8 })), Options{Batch: 1, Seq: 4}, "gate"},
		"three bits": {testConfig(func(c *configs.Config) { c.Quant.Weights.Bits = 3 }), w,
			Options{Batch: 1, Seq: 4}, "3 bits"},
	} {
		if _, err := Build(c.cfg, c.w, c.opt); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.say)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	cfg := testConfig(nil)
	g := mustBuild(t, cfg, randomWeights(cfg, 1), Options{Batch: 1, Seq: 2})
	for name, c := range map[string]struct{ ids, targets []int32 }{
		"short":    {[]int32{1}, []int32{1, 2}},
		"negative": {[]int32{-1, 0}, []int32{1, 2}},
		"high":     {[]int32{1, 29}, []int32{1, 2}},
		"target":   {[]int32{1, 2}, []int32{1, 29}},
	} {
		if _, err := g.Run(c.ids, c.targets); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	loss := mustRun(t, g, []int32{1, 2}, []int32{-1, -1})
	if loss != 0 {
		t.Errorf("without targets the loss is %v", loss)
	}
}

// TestLoss holds the loss, the nats of each position and the logits to each other.
func TestLoss(t *testing.T) {
	cfg := testConfig(nil)
	g := mustBuild(t, cfg, randomWeights(cfg, 1), Options{Batch: 2, Seq: 7, Logits: true})
	ids, targets := randomBatch(cfg, 14, 9)
	loss := mustRun(t, g, ids, targets)
	sum, count := 0.0, 0
	for p, target := range targets {
		row := g.Logits()[p*cfg.VocabSize : (p+1)*cfg.VocabSize]
		total := 0.0
		for _, l := range row {
			total += math.Exp(float64(l))
		}
		want := 0.0
		if target >= 0 {
			want = math.Log(total) - float64(row[target])
			count++
		}
		if got := float64(g.NLL()[p]); math.Abs(got-want) > 1e-5 {
			t.Errorf("position %d costs %v, the logits say %v", p, got, want)
		}
		sum += want
	}
	if want := sum / float64(count); math.Abs(loss-want) > 1e-5 {
		t.Errorf("loss %v, want %v", loss, want)
	}
}

// dequantised are the weights as quantised products see them.
func dequantised(t *testing.T, cfg *configs.Config, w *Weights) *Weights {
	deq := NewWeights(cfg)
	for i, tensor := range w.Tensors {
		copy(deq.Data[i], w.Data[i])
		if tensor.Quant.Bits == 32 {
			continue
		}
		m, err := qat.Quantise(tensor.Quant, w.Data[i], tensor.Rows(), tensor.Cols())
		if err != nil {
			t.Fatal(err)
		}
		m.Dequantise(deq.Data[i])
	}
	return deq
}

// TestStraightThrough: with quantised weights and float activations, every gradient must be, bit for bit, that of a
// float model that has the dequantised weights.
func TestStraightThrough(t *testing.T) {
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			cfg.Quant.Activations.Bits = 32
			w := randomWeights(cfg, 3)
			deq := dequantised(t, cfg, w)
			quantised := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 6, Train: true})
			float := mustBuild(t, cfg, deq, Options{Batch: 2, Seq: 6, Train: true, Float: true})
			ids, targets := randomBatch(cfg, 12, 3)
			if a, b := mustRun(t, quantised, ids, targets), mustRun(t, float, ids, targets); a != b {
				t.Fatalf("losses %v and %v", a, b)
			}
			want := float.Gradients()
			for i, got := range quantised.Gradients() {
				for j := range got {
					if got[j] != want[i][j] {
						t.Fatalf("%s: gradient %d is %v, want %v", w.Tensors[i].Name, j, got[j], want[i][j])
					}
				}
			}
		})
	}
}

// TestQuantisedGradient: with quantised activations too, the gradient points where that of a float model of the
// dequantised weights points.
func TestQuantisedGradient(t *testing.T) {
	cfg := testConfig(func(c *configs.Config) { c.Activation = configs.SwiGLU }) // smooth: no neuron switches
	w := randomWeights(cfg, 3)
	ids, targets := randomBatch(cfg, 24, 3)
	quantised := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 12, Train: true})
	float := mustBuild(t, cfg, dequantised(t, cfg, w), Options{Batch: 2, Seq: 12, Train: true, Float: true})
	mustRun(t, quantised, ids, targets)
	mustRun(t, float, ids, targets)
	want := float.Gradients()
	for i, got := range quantised.Gradients() {
		var dot, a, b float64
		for j := range got {
			dot += float64(got[j]) * float64(want[i][j])
			a += float64(got[j]) * float64(got[j])
			b += float64(want[i][j]) * float64(want[i][j])
		}
		if cos := dot / math.Sqrt(a*b); !(cos > 0.98) {
			t.Errorf("%s: cosine %v between the gradients", w.Tensors[i].Name, cos)
		}
	}
}

// TestRunsRepeat: a run leaves nothing behind that changes the next one, weights are read anew, and table gradients are
// cleared where the last batch wrote.
func TestRunsRepeat(t *testing.T) {
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			w := randomWeights(cfg, 3)
			g := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 6, Train: true})
			ids, targets := randomBatch(cfg, 12, 3)
			first := mustRun(t, g, ids, targets)
			var want [][]float32
			for _, d := range g.Gradients() {
				want = append(want, append([]float32(nil), d...))
			}
			otherIDs, otherTargets := randomBatch(cfg, 12, 4)
			w.Data[0][5] += 1
			if other := mustRun(t, g, otherIDs, otherTargets); other == first {
				t.Error("another batch and other weights give the same loss")
			}
			w.Data[0][5] -= 1
			if again := mustRun(t, g, ids, targets); again != first {
				t.Errorf("losses %v and %v of the same batch", first, again)
			}
			for i, d := range g.Gradients() {
				for j := range d {
					if d[j] != want[i][j] {
						t.Fatalf("%s: gradient %d is %v, was %v", w.Tensors[i].Name, j, d[j], want[i][j])
					}
				}
			}
		})
	}
}

// TestGraphsInParallel: graphs over the same weights give the same bytes at the same time.
func TestGraphsInParallel(t *testing.T) {
	cfg := testConfig(nil)
	w := randomWeights(cfg, 3)
	ids, targets := randomBatch(cfg, 12, 3)
	losses := make([]float64, 4)
	var group sync.WaitGroup
	for i := range losses {
		group.Go(func() {
			g, err := Build(cfg, w, Options{Batch: 2, Seq: 6, Train: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Close()
			for range 20 {
				if losses[i], err = g.Run(ids, targets); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, l := range losses {
		if l != losses[0] {
			t.Errorf("losses %v", losses)
		}
	}
}

func TestFirstNonFinite(t *testing.T) {
	cfg := testConfig(nil)
	w := randomWeights(cfg, 3)
	g := mustBuild(t, cfg, w, Options{Batch: 1, Seq: 4, Train: true})
	ids, targets := []int32{5, 6, 7, 8}, []int32{1, 2, 3, 4}
	mustRun(t, g, ids, targets)
	if name := g.FirstNonFinite(); name != "" {
		t.Errorf("%s is not finite", name)
	}
	qkv := w.Get(configs.LayerTensor(1, configs.QKV))
	saved := qkv[40]
	qkv[40] = float32(math.NaN())
	if loss := mustRun(t, g, ids, targets); loss == loss {
		t.Errorf("a weight that is NaN gives the loss %v", loss)
	}
	if name := g.FirstNonFinite(); name != "layers.1.qkv" {
		t.Errorf("the first tensor at fault is %q", name)
	}
	qkv[40] = saved
	gain := w.Get(configs.LayerTensor(0, configs.FFNNorm))
	for i := range gain {
		gain[i] = 3e38
	}
	if loss := mustRun(t, g, ids, targets); loss == loss {
		t.Errorf("overflowing activations give the loss %v", loss)
	}
	if name := g.FirstNonFinite(); name != "layers.0.ffn_norm" && name != "layers.0.gated_up" {
		t.Errorf("the first tensor at fault is %q", name)
	}
}

// TestMemoryIsFlat runs a graph some hundred times.
func TestMemoryIsFlat(t *testing.T) {
	cfg := testConfig(func(c *configs.Config) { c.Experts = 4 })
	g := mustBuild(t, cfg, randomWeights(cfg, 3), Options{Batch: 2, Seq: 8, Train: true})
	ids, targets := randomBatch(cfg, 16, 3)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	mustRun(t, g, ids, targets)
	before := heap()
	for range 300 {
		mustRun(t, g, ids, targets)
	}
	if after := heap(); after > before+64<<10 {
		t.Errorf("300 runs left %d bytes more on the heap", after-before)
	}
}

// TestGradientRows: rows that are not named hold zeros, over several batches, and the rows read are named.
func TestGradientRows(t *testing.T) {
	for name, cfg := range variants() {
		w := randomWeights(cfg, 7)
		g := mustBuild(t, cfg, w, Options{Batch: 2, Seq: 5, Train: true})
		named := 0
		for seed := range uint64(3) {
			ids, targets := randomBatch(cfg, 10, seed)
			mustRun(t, g, ids, targets)
			pairs := make([]int32, len(ids))
			for i, id := range ids {
				previous := int32(cfg.VocabSize)
				if i%5 > 0 {
					previous = ids[i-1]
				}
				pairs[i] = ngramRow(previous, id, max(cfg.NgramRows, 1))
			}
			set := func(rows []int32) []int32 {
				rows = slices.Clone(rows)
				slices.Sort(rows)
				return slices.Compact(rows)
			}
			for i, tensor := range w.Tensors {
				rows := g.GradientRows()[i]
				if rows == nil {
					continue
				}
				named++
				read := set(ids)
				if tensor.Name == configs.NgramTable {
					read = set(pairs)
				}
				if !slices.Equal(rows, read) {
					t.Errorf("%s: %s: rows %v, where the batch reads %v", name, tensor.Name, rows, read)
				}
				for j, v := range g.Gradients()[i] {
					if v != 0 && !slices.Contains(rows, int32(j/tensor.Cols())) {
						t.Fatalf("%s: %s: row %d is not zero, and not named in %v", name, tensor.Name, j/tensor.Cols(), rows)
					}
				}
			}
		}
		tables := 0
		if cfg.PLEDim > 0 {
			tables++
		}
		if !cfg.TieEmbeddings {
			tables++
		}
		if cfg.NgramRows > 0 {
			tables++
		}
		if named != 3*tables {
			t.Errorf("%s: rows of %d gradients are named in three runs, where there are %d such tables", name, named, tables)
		}
	}
}
