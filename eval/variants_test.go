package eval

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/train"
)

// randomText is a text of ids without meaning: what is learned does not matter here.
type randomText struct{ vocab, context int }

func (r randomText) Batch(n int64, ids, targets []int32, lengths []int) []int {
	rng := rand.New(rand.NewPCG(uint64(n), 5))
	for i := range ids {
		ids[i], targets[i] = rng.Int32N(int32(r.vocab)), rng.Int32N(int32(r.vocab))
	}
	for range len(ids) / r.context {
		lengths = append(lengths, r.context)
	}
	return lengths
}

// small cuts a model file down, and leaves its structure as it is.
var small = []string{"vocab_size=300", "d_model=72", "n_heads=2", "d_ff=80", "context_length=24", "train.batch_tokens=48", "train.micro_batch=1",
	"train.tokens=192", "train.warmup=0", "train.lr=0.01", "train.distill=0"}

// agrees trains a model for a few steps, and holds the engine to the training graph on it.
func agrees(t *testing.T, file string, sets ...string) {
	t.Helper()
	c, err := configs.Load("builtin:"+file, append(small, sets...)...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := tinyRunOf(t, string(text), func(w *arch.Weights) {
		tr, err := train.NewTrainer(c, w.Data, train.ArchBuilder(c, w), randomText{c.VocabSize, c.ContextLength}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		for range 4 {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, spec := range w.Tensors {
			_, part := configs.SplitTensor(spec.Name)
			if part != configs.AttentionOutput && part != configs.Down {
				continue
			}
			zero := true
			for _, x := range w.Data[i] {
				zero = zero && x == 0
			}
			if zero {
				t.Errorf("%s is as it started: nothing was trained", spec.Name)
			}
		}
	})
	v, err := verification(t, dir, "--workers", "1")
	if err != nil || !v.Passed || v.Agreement != 1 || v.LargestLogit != 0 || v.EngineDigest != v.GraphDigest || v.EqualPositions != v.Tokens {
		t.Errorf("%v: %+v", err, v)
	}
}

// Every built-in model, cut down and trained for a few steps, says the same in the engine as in the training graph, to the
// bit. Float models have no engine.
func TestEveryBuiltinModelAgrees(t *testing.T) {
	for _, file := range configs.Builtin() {
		c, err := configs.Load("builtin:" + file)
		if err != nil {
			t.Fatal(err)
		}
		if c.Quant.Weights.Bits == 32 || c.Quant.Activations.Bits == 32 {
			continue
		}
		var sets []string
		if c.PLEDim > 0 {
			sets = append(sets, "ple_dim=8")
		}
		if c.NLayers > 2 && file != "deep.yaml" {
			sets = append(sets, "n_layers=2")
		}
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) { agrees(t, file, sets...) })
	}
}

// Each class of tensor may have bits, a group and scales of its own, in a model of every other class's.
func TestEveryClassOfTensorAgreesByItself(t *testing.T) {
	const trunk, table, embedding, head = "quant.classes.trunk=", "quant.classes.ple_table=", "quant.classes.embedding=", "quant.classes.head="
	for name, sets := range map[string][]string{
		"8-bit embedding, tied":     {embedding + "{bits: 8, group: 0}"},
		"2-bit table":               {table + "{bits: 2, group: 32, scale: f16}"},
		"8-bit table, whole rows":   {table + "{bits: 8, group: 0}"},
		"2-bit trunk, rows, f16":    {trunk + "{bits: 2, group: 0, scale: f16}"},
		"8-bit trunk, 4-bit tables": {trunk + "{bits: 8, group: 32}"},
		"untied, all different": {"tie_embeddings=false", head + "{bits: 2, group: 32}", embedding + "{bits: 8, group: 0, scale: f16}",
			trunk + "{group: 128}", table + "{bits: 2, scale: f16}"},
		"untied, 8-bit head":        {"tie_embeddings=false", head + "{bits: 8, group: 0, scale: f16}", embedding + "{bits: 2}"},
		"experts, 2-bit, f16 heads": {"experts=3", "tie_embeddings=false", trunk + "{bits: 2, group: 32}", head + "{scale: f16}"},
	} {
		t.Run(name, func(t *testing.T) { agrees(t, "combo.yaml", append([]string{"ple_dim=8", "n_layers=2"}, sets...)...) })
	}
}
