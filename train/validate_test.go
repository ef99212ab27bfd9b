package train

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
	"github.com/chiplm/chiplm/qat/simd"
)

// byteTokens has a token for each of the bytes a to z, and end-of-text at 0.
type byteTokens struct{ lossy bool }

func (b byteTokens) Encode(dst []int32, text []byte) []int32 {
	if b.lossy {
		text = text[1:]
	}
	for _, c := range text {
		dst = append(dst, int32(c-'a')+1)
	}
	return dst
}

func (byteTokens) Bytes(id int32) []byte {
	if id == 0 {
		return nil
	}
	return []byte{byte('a' + id - 1)}
}

func (byteTokens) EOT() int32 { return 0 }

// listed is a corpus of given stories.
type listed []string

func (l listed) Stories(_ context.Context, yield func([]byte) error) error {
	for _, s := range l {
		if err := yield([]byte(s)); err == data.ErrStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (listed) Info() data.Info { return data.Info{} }

func TestValidatorCutsStoriesIntoWindows(t *testing.T) {
	v, err := NewValidator(t.Context(), listed{"abcdefg", "xy", "abcd", "never"}, byteTokens{}, 3, 4, 13)
	if err != nil {
		t.Fatal(err)
	}
	if v.Stories != 3 || v.Tokens != 13 || v.Bytes != 13 {
		t.Errorf("%d stories, %d tokens, %d bytes", v.Stories, v.Tokens, v.Bytes)
	}
	var ids, targets [][]int32
	for _, w := range v.windows {
		ids, targets = append(ids, w.ids), append(targets, w.targets)
	}
	wantIDs := [][]int32{{0, 1, 2, 3}, {0, 5, 6}, {0, 24}, {0, 1, 2, 3}}
	wantTargets := [][]int32{{1, 2, 3, 4}, {5, 6, 7}, {24, 25}, {1, 2, 3, 4}}
	if !equalAll(ids, wantIDs) || !equalAll(targets, wantTargets) {
		t.Errorf("ids     %v\nwant    %v\ntargets %v\nwant    %v", ids, wantIDs, targets, wantTargets)
	}

	cfg := tinyConfig()
	m := &fakeModel{weights: tinyWeights(cfg)}
	want := 0.0 // the fake model's loss at each scored target
	for i, targets := range wantTargets {
		for j, target := range targets {
			want += float64(float32(math.Abs(math.Sin(float64(3*wantIDs[i][j] + target)))))
		}
	}
	for _, workers := range []int{1, 2, 7} {
		score, err := v.Run(t.Context(), m.build, workers, false)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(score.Loss-want/13) > 1e-12 || math.Abs(score.BPB-want/13/math.Ln2) > 1e-12 {
			t.Errorf("%d workers: %+v, want %v nats in all", workers, score, want)
		}
	}
	if len(m.built) != 2 || m.built[0].Train || m.built[0].Batch != 3 || m.built[0].Seq != 4 {
		t.Errorf("graphs built: %+v", m.built)
	}
	if _, err := v.Run(t.Context(), m.build, 1, true); err != nil || len(m.built) != 3 || !m.built[2].Float {
		t.Errorf("without quantisation: %v, %+v", err, m.built)
	}
	m.fault = func(_ []int32, g *fakeGraph) { g.nll[0], g.bad = float32(math.NaN()), "layers.0.qkv" }
	if _, err := v.Run(t.Context(), m.build, 1, true); err == nil || !strings.Contains(err.Error(), "layers.0.qkv") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Run(ctx, m.build, 2, true); err == nil {
		t.Error("a validation that was given up has a score")
	}
}

// TestPackedWindowsScoreAsAlone holds a validation against the plain way: a graph for each window, a window at a time.
func TestPackedWindowsScoreAsAlone(t *testing.T) {
	if simd.Current() == simd.Library {
		t.Skip("the library's order of summation depends on the sizes of the matrices")
	}
	cfg := tinyConfig()
	cfg.VocabSize, cfg.ContextLength = 27, 16
	w := &arch.Weights{Tensors: cfg.Tensors(), Data: tinyWeights(cfg)}
	build := ArchBuilder(cfg, w)
	rng := rand.New(rand.NewPCG(1, 0))
	var stories listed
	for range 30 {
		story := make([]byte, 1+rng.IntN(40))
		for i := range story {
			story[i] = byte('a' + rng.IntN(26))
		}
		stories = append(stories, string(story))
	}
	v, err := NewValidator(t.Context(), stories, byteTokens{}, 3, cfg.ContextLength, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	got, err := v.Run(t.Context(), build, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	sum, tokens := 0.0, 0
	for _, story := range stories {
		err := windows.Cut(byteTokens{}.Encode(nil, []byte(story)), 0, cfg.ContextLength, func(ids, targets []int32) error {
			if targets[len(targets)-1] == 0 { // the closing end-of-text is not charged
				ids, targets = ids[:len(ids)-1], targets[:len(targets)-1]
			}
			if len(ids) == 0 {
				return nil
			}
			g, err := build(arch.Options{Batch: 1, Seq: len(ids)})
			if err != nil {
				return err
			}
			if _, err := g.Run(ids, targets); err != nil {
				return err
			}
			nats := 0.0
			for _, n := range g.NLL() {
				nats += float64(n)
			}
			sum += nats
			tokens += len(ids)
			return g.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got.Loss != sum/float64(tokens) || int64(tokens) != v.Tokens {
		t.Errorf("%v nats a token over %d, one window at a time %v over %d", got.Loss, v.Tokens, sum/float64(tokens), tokens)
	}
}

// TestPack: every window is in one micro-batch, all of them are full to the end, and few are there.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for _, sequences := range []int{1, 4} {
		const context = 64
		size, total := sequences*context, 0
		windows := make([]window, 500)
		for i := range windows {
			n := min(1+rng.IntN(100), context)
			windows[i] = window{ids: make([]int32, n), targets: make([]int32, n)}
			windows[i].ids[0] = int32(i)
			total += n
		}
		batches := pack(windows, size)
		if most := total*21/20/size + 1; len(batches) > most {
			t.Errorf("%d tokens are in %d micro-batches of %d, at most %d are needed", total, len(batches), size, most)
		}
		seen := map[*window]bool{}
		for _, b := range batches {
			b.fill(size, context, 7)
			if len(b.ids) != size || len(b.targets) != size {
				t.Fatalf("a micro-batch of %d ids and %d targets", len(b.ids), len(b.targets))
			}
			at := 0
			for i, n := range b.lengths {
				if i < len(b.windows) {
					w := b.windows[i]
					if seen[w] || n != len(w.ids) || !slices.Equal(b.ids[at:at+n], w.ids) || !slices.Equal(b.targets[at:at+n], w.targets) {
						t.Fatalf("window %d is not as it was, or there twice", w.ids[0])
					}
					seen[w] = true
				} else if b.ids[at] != 7 || b.targets[at] != -1 || n > context {
					t.Fatalf("the filling begins with %d, %d in a sequence of %d", b.ids[at], b.targets[at], n)
				}
				at += n
			}
		}
		if len(seen) != len(windows) {
			t.Errorf("%d of %d windows are there", len(seen), len(windows))
		}
	}
}

// TestBuiltInModelsAreValidatedForLittle: scoring a token costs at most about 0.4 of training on one, so validation takes
// less than 2 % of the time.
func TestBuiltInModelsAreValidatedForLittle(t *testing.T) {
	for _, name := range configs.Builtin() {
		cfg, err := configs.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := NewPlan(cfg)
		if err != nil {
			t.Fatal(err)
		}
		times := (plan.Steps + cfg.Train.ValidEvery - 1) / cfg.Train.ValidEvery
		if share := 0.4 * float64(int64(times)*cfg.Train.ValidTokens) / float64(cfg.Train.Tokens); share >= 0.02 {
			t.Errorf("%s: %d validations of %d tokens take %.1f %% of the training", name, times, cfg.Train.ValidTokens, 100*share)
		}
	}
}

func TestValidatorRefuses(t *testing.T) {
	if _, err := NewValidator(t.Context(), listed{"ab", "abc"}, byteTokens{lossy: true}, 1, 4, 100); err == nil ||
		!strings.Contains(err.Error(), "story 0 has 2 bytes") {
		t.Errorf("a tokenizer that loses bytes: %v", err)
	}
	if _, err := NewValidator(t.Context(), listed{""}, byteTokens{}, 1, 4, 100); err == nil || !strings.Contains(err.Error(), "--valid") {
		t.Errorf("nothing to score: %v", err)
	}
}

// logitGraph always wants the same continuation: each token is followed by the next one.
type logitGraph struct {
	fakeGraph
	vocab  int
	logits []float32
}

func (g *logitGraph) Run(ids, targets []int32) (float64, error) {
	g.logits = make([]float32, len(ids)*g.vocab)
	for i, id := range ids {
		g.logits[i*g.vocab+(int(id)+1)%g.vocab] = 1000
	}
	return 0, nil
}

func (g *logitGraph) Logits() []float32 { return g.logits }

// letters leaves out what it has no token for.
type letters struct{ byteTokens }

func (letters) Encode(dst []int32, text []byte) []int32 {
	return byteTokens{}.Encode(dst, bytes.ReplaceAll(bytes.ToLower(text), []byte(" "), nil))
}

func TestSamplerFollowsTheModel(t *testing.T) {
	s := NewSampler(27, 256)
	var built []arch.Options
	build := func(opt arch.Options) (Graph, error) {
		built = append(built, opt)
		return &logitGraph{vocab: 27}, nil
	}
	text, err := s.Story(t.Context(), build, letters{}, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if text != "onceuponatimefghijklmnopqrstuvwxyz" { // and then end-of-text
		t.Errorf("got %q", text)
	}
	if _, err := s.Story(t.Context(), build, letters{}, true, 1); err != nil || len(built) != 2 || !built[1].Float ||
		!built[1].Logits || built[1].Train || built[1].Seq != sampleTokens {
		t.Errorf("%v, graphs built: %+v", err, built)
	}
	short := NewSampler(27, 5) // no room for the prompt
	if text, err := short.Story(t.Context(), build, letters{}, false, 1); err != nil || text != "abcd" {
		t.Errorf("got %q, %v", text, err)
	}
	s.Close()
	short.Close()
}

func TestSamplerDrawsBySoftmax(t *testing.T) {
	s := NewSampler(3, 8)
	logits := []float32{0, float32(sampleTemperature * math.Log(3)), -1000}
	rng := rand.New(rand.NewPCG(1, 0))
	counts := make([]int, 3)
	for range 4000 {
		counts[s.choose(logits, rng)]++
	}
	if counts[2] != 0 || math.Abs(float64(counts[1])/4000-0.75) > 0.03 {
		t.Errorf("drawn %v times, want a quarter, three quarters, never", counts)
	}
}
