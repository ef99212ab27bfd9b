package eval

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/placement"
)

// countModels are small models of every kind that differ in what they read.
var countModels = map[string]string{
	"relu":          "d_ff: 130\nple_dim: 8\nquant: {weights: {bits: 4, group: 32}}\n",
	"relu, a row":   "d_ff: 130\nquant: {weights: {bits: 4, group: 0}}\n",
	"swiglu":        "d_ff: 130\nactivation: swiglu\nple_dim: 8\nquant: {weights: {bits: 4, group: 64}}\n",
	"experts":       "d_ff: 66\nexperts: 3\nple_dim: 8\nquant: {weights: {bits: 4, group: 32}}\n",
	"swiglu of two": "d_ff: 66\nexperts: 2\nactivation: swiglu\nquant: {weights: {bits: 4, group: 32}}\n",
	"untied":        "d_ff: 40\ntie_embeddings: false\nple_dim: 5\nquant: {weights: {bits: 4, group: 32}}\n",
	"2 bits":        "d_ff: 97\nple_dim: 8\nquant: {weights: {bits: 2, group: 32}}\n",
	"f16":           "d_ff: 97\nple_dim: 8\nquant: {weights: {bits: 4, group: 32, scale: f16}}\n",
	"8 bits, odd":   "d_ff: 33\nd_model: 36\nple_dim: 3\nqk_norm: true\nquant: {weights: {bits: 8, group: 32}}\n",
	"bigrams":       "d_ff: 97\nple_dim: 8\nngram_rows: 77\nquant: {weights: {bits: 4, group: 32}, classes: {ngram_table: {bits: 2}}}\n",
	"mixed":         "d_ff: 70\nple_dim: 8\nquant: {weights: {bits: 4, group: 64}, classes: {ple_table: {bits: 2, scale: f16}, embedding: {bits: 8}}}\n",
}

// countModel makes such a model. Neurons 32 to 63 never open, and those from 0 to 7 open but say nothing.
func countModel(t *testing.T, sizes string) *subject {
	t.Helper()
	text := "vocab_size: 300\nn_layers: 2\nn_heads: 2\ncontext_length: 24\ntrain: {tokens: 1000, batch_tokens: 24, micro_batch: 1, zero_init_proj: false}\n" + sizes
	if !strings.Contains(sizes, "d_model") {
		text += "d_model: 32\n"
	}
	dir, _ := tinyRunOf(t, text, func(w *arch.Weights) {
		for i, spec := range w.Tensors {
			_, part := configs.SplitTensor(spec.Name)
			rows := func(first, last int) {
				for r := first; r <= min(last, spec.Rows()-1); r++ {
					clear(w.Data[i][r*spec.Cols() : (r+1)*spec.Cols()])
				}
			}
			switch part {
			case configs.Gate:
				rows(32, 63)
			case configs.Up:
				rows(0, 7)
			}
		}
	})
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// What the engine counts while it runs prompts, blocks and single tokens is what the planner predicts from the calls and
// from the values of the run: for each tensor, to the byte.
func TestCountedIsPredicted(t *testing.T) {
	for name, sizes := range countModels {
		s := countModel(t, sizes)
		for _, opt := range []engine.Options{{Batch: 1}, {Batch: 5}, {Batch: 32}, {Batch: 32, Dense: true}, {Batch: 3, Threads: 2}} {
			t.Run(fmt.Sprintf("%s, batch %d, dense %v", name, opt.Batch, opt.Dense), func(t *testing.T) {
				m, err := newMeter(s.image, s.config, opt)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				runAround(t, m, s.config.VocabSize)
				checkCount(t, s, m)
			})
		}
	}
}

// runAround feeds tokens in every way: a prompt with its last logits, single tokens, blocks with all logits and with none.
func runAround(t *testing.T, r runner, vocab int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = rng.Int32N(int32(vocab))
		}
		return out
	}
	for range 3 {
		r.Reset()
		must := func(err error) {
			if err != nil {
				t.Helper()
				t.Fatal(err)
			}
		}
		last := make([]float32, vocab)
		must(r.ForwardLast(ids(11), last))
		must(r.ForwardLast(ids(1), last))
		must(r.Forward(ids(1), nil))
		must(r.Forward(ids(6), make([]float32, 6*vocab)))
		must(r.Forward(nil, nil))
		must(r.Forward(ids(4), nil))
		must(r.ForwardLast(ids(1), last))
	}
}

// checkCount compares every number that the engine counts with what was seen from outside.
func checkCount(t *testing.T, s *subject, m *meter) {
	t.Helper()
	reads, err := m.Reads()
	if err != nil {
		t.Fatal(err)
	}
	run := m.conditions()
	want := placement.Predict(s.config, run)
	for i, w := range s.config.Tensors() {
		if reads.Tensors[i] != want.Tensors[i] {
			t.Errorf("%s: counted %d, predicted %d", w.Name, reads.Tensors[i], want.Tensors[i])
		}
		if reads.Tensors[i] == 0 {
			t.Errorf("%s was never read", w.Name)
		}
	}
	if reads.Rope != want.Rotary || reads.Cache != want.Cache || reads.Total() != want.Total() {
		t.Errorf("rotary %d, cache %d, all %d; predicted %d, %d, %d", reads.Rope, reads.Cache, reads.Total(), want.Rotary, want.Cache, want.Total())
	}
	if reads.Positions != run.Positions || reads.Blocks != run.Passes || reads.Positions != 3*24 {
		t.Errorf("%d positions in %d blocks, seen %d in %d", reads.Positions, reads.Blocks, run.Positions, run.Passes)
	}
	relu := s.config.Activation == configs.ReLU
	if relu && (!slices.Equal(reads.Open, m.opened) || !slices.Equal(reads.Used, m.used)) {
		t.Errorf("open %d and used %d, seen %d and %d", reads.Open, reads.Used, m.opened, m.used)
	}
	all, sparse := run.Dense(s.config), false
	for l, n := range run.Layers {
		if reads.UpRows[l] != n.Up || reads.DownColumns[l] != n.Down {
			t.Errorf("layer %d: %d rows and %d columns, seen %d and %d", l, reads.UpRows[l], reads.DownColumns[l], n.Up, n.Down)
		}
		sparse = sparse || n.Up < all.Layers[l].Up && n.Down < n.Up
	}
	if sparse != (relu && !m.dense) {
		t.Errorf("neurons were left out: %v", sparse)
	}
}

// The table's rows add up to all that was counted, in kinds and in tiers, and a difference shows in the row it belongs to.
func TestCountRows(t *testing.T) {
	for name, sizes := range countModels {
		s := countModel(t, sizes)
		m, err := newMeter(s.image, s.config, engine.Options{Batch: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		runAround(t, m, s.config.VocabSize)
		reads, err := m.Reads()
		if err != nil {
			t.Fatal(err)
		}
		c := newCount(s.config, s.image.Tensors(), reads, m.conditions())
		if c.Total.Counted != reads.Total() || c.Total.Difference != 0 || c.Total.PerToken*3*24 != float64(reads.Total()) {
			t.Errorf("%s: %+v, counted %d", name, c.Total, reads.Total())
		}
		for _, rows := range [][]CountRow{c.Rows, c.Tiers} {
			sum := CountRow{}
			for _, r := range rows {
				sum.Counted += r.Counted
				sum.Predicted += r.Predicted
				sum.Dense += r.Dense
				if r.Difference != 0 || r.Counted <= 0 || r.Counted > r.Dense {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if sum.Counted != c.Total.Counted || sum.Predicted != c.Total.Predicted || sum.Dense != c.Total.Dense {
				t.Errorf("%s: rows add up to %+v, want %+v", name, sum, c.Total)
			}
		}
		if (len(c.Layers) > 0) != (s.config.Activation == configs.ReLU) {
			t.Errorf("%s: %d layers", name, len(c.Layers))
		}
		for _, l := range c.Layers {
			if !(l.Silent > 0.2 && l.Silent < l.Unused && l.Unused < 1 && l.DownRead < l.UpRead && l.UpRead < 1 && l.Bytes < l.Dense) {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if c.OneByOne <= c.Total.Counted {
			t.Errorf("%s: one by one %d, in blocks %d", name, c.OneByOne, c.Total.Counted)
		}
		reads.Tensors[0] += 7
		c = newCount(s.config, s.image.Tensors(), reads, m.conditions())
		for _, r := range c.Rows {
			wrong := kindEmbedding
			if s.config.TieEmbeddings {
				wrong = kindHead
			}
			if (r.Difference == 7) != (r.Kind == wrong) {
				t.Errorf("%s: 7 bytes too many show as %+v", name, r)
			}
		}
	}
}

// Scoring with --count gives the scores of scoring without, on any number of workers, and counts what decoding reads.
func TestCountedScores(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	plain := report(t, dir).Models[0]
	if plain.Count != nil {
		t.Errorf("counted unasked: %+v", plain.Count)
	}
	one := report(t, dir, "--count", "--workers", "1").Models[0]
	three := report(t, dir, "--count", "--workers", "3").Models[0]
	for _, row := range []Row{one, three} {
		c := row.Count
		if row.Score != plain.Score || row.BytesReadPerToken != plain.BytesReadPerToken {
			t.Errorf("with --count %+v, without %+v", row, plain)
		}
		if c == nil || c.Total.Difference != 0 || c.Total.Counted != one.Count.Total.Counted || !slices.Equal(c.Rows, one.Count.Rows) {
			t.Fatalf("counted %+v, on one worker %+v", c, one.Count)
		}
		if c.Conditions.Passes != c.Conditions.Positions || c.Conditions.Heads != c.Conditions.Positions || c.Conditions.Positions < row.Tokens {
			t.Errorf("not one token at a time: %+v", c.Conditions)
		}
		var weights int64
		for _, r := range c.Rows {
			if r.Kind != kindRotary && r.Kind != kindCache {
				weights += r.Dense
			}
		}
		if weights != c.Conditions.Positions*row.BytesReadPerToken || weights <= c.Total.Counted/2 || c.Total.Counted >= c.Total.Dense {
			t.Errorf("weights with every neuron %d, the table says %d a token: %+v", weights, row.BytesReadPerToken, c.Total)
		}
	}
	out, err := call(t, Command(), "bpb", dir, "--count", "--n", "1")
	if err != nil || !strings.Contains(out, "keys and values") || !strings.Contains(out, "rows of up") {
		t.Errorf("%v in\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "/") && len(line) > 101 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// A head that is read in part writes the same story, and what the search reads is predicted from the rows and bounds it
// came to.
func TestCountOfSearch(t *testing.T) {
	dir, _ := tinyRunOf(t, wholeModel, nil)
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.close()
	built, err := export.BuildImage(context.Background(), ck, export.Options{Clusters: 12})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(path, built.Bytes, 0o666); err != nil {
		t.Fatal(err)
	}
	part, err := openSubject(context.Background(), path, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer part.close()
	for seed := range uint64(6) {
		opt := SampleOptions{Prompt: "Tom", Temperature: float64(seed) / 3, TopK: 1 + 3*int(seed), Seed: seed, Batch: 4, Count: true}
		want, err := sample(context.Background(), whole, opt, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sample(context.Background(), part, opt, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != want.Text || got.Tokens != want.Tokens || got.Given != want.Given {
			t.Errorf("with the full head %+v, with a search %+v", want, got)
		}
		c := got.Count
		if opt.choices() > 4 {
			if c.Conditions.Search.Searches != 0 || c.Total.Difference != 0 {
				t.Errorf("a search for the best %d: %+v, %+v", opt.choices(), c.Conditions, c.Total)
			}
			continue
		}
		if s := c.Conditions.Search; s.Clusters != 12 || s.Searches != c.Conditions.Heads || s.Rows != c.Conditions.HeadRows || s.Rows < s.Searches ||
			s.Blocks[0] < s.Rows || s.Blocks[1] < s.Rows {
			t.Errorf("%+v", c.Conditions)
		}
		if c.Total.Difference != 0 || c.Total.Counted != got.Bytes {
			t.Errorf("%+v", c.Total)
		}
		sum := int64(0)
		for _, r := range c.Rows {
			if r.Difference != 0 {
				t.Errorf("%+v", r)
			}
			if sum += r.Counted; r.Kind == kindSearch && r.Counted == 0 {
				t.Error("no bounds were read")
			}
		}
		if sum != got.Bytes {
			t.Errorf("rows add up to %d, %d bytes were read", sum, got.Bytes)
		}
		opt.Template = parsed(t, "Anna {{x}}") // has need of all logits
		if text, err := sample(context.Background(), part, opt, io.Discard); err != nil || text.Count.Total.Difference != 0 || text.Count.Conditions.Search.Searches != 0 {
			t.Errorf("%v: %+v", err, text.Count)
		}
	}
}
