package train

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

// tinyExperts are sizes and a recipe for moe.yaml that take seconds.
var tinyExperts = []string{"vocab_size=300", "d_model=32", "n_layers=2", "n_heads=2", "d_ff=32", "context_length=32", "quant.weights.group=32",
	"train.batch_tokens=512", "train.micro_batch=4", "train.tokens=204800", "train.valid_every=0", "train.valid_tokens=320", "train.sample_every=0",
	"train.save_every=0"}

// expertShares gives the share of the tokens of stories of another seed that each expert of each layer of a trained model takes.
func expertShares(t *testing.T, run string) [][]float64 {
	t.Helper()
	ck, err := checkpoints.LoadModel(run)
	if err != nil {
		t.Fatal(err)
	}
	w, err := arch.WeightsOf(ck.Config, ck.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Parse(ck.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int32
	err = data.Builtin(2, 60).Stories(context.Background(), func(story []byte) error {
		for _, id := range tok.Encode(nil, story) {
			ids = append(ids, int32(id))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := ck.Config
	const batch = 16
	g, err := arch.Build(c, w, arch.Options{Batch: batch, Seq: c.ContextLength})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	shares := make([][]float64, c.NLayers)
	for l := range shares {
		shares[l] = make([]float64, c.Experts)
	}
	n := batch * c.ContextLength
	windows := (len(ids) - 1) / n
	for i := range windows {
		if _, err := g.Run(ids[i*n:(i+1)*n], ids[i*n+1:(i+1)*n+1]); err != nil {
			t.Fatal(err)
		}
		for l := range shares {
			for _, e := range g.Choices(l) {
				shares[l][e] += 1 / float64(n*windows)
			}
		}
	}
	return shares
}

// After four hundred steps of moe.yaml's recipe, every expert of every layer takes a share of the tokens of stories of
// another seed; a quarter would be even. Without the load-balancing loss some are all but dead after a hundred.
func TestNoExpertDies(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CHIPLM_CACHE", filepath.Join(dir, "cache"))
	least := func(name string, sets ...string) float64 {
		sum := mustRun(t, Options{Config: "builtin:moe.yaml", Sets: append(slices.Clone(tinyExperts), sets...), Corpus: "builtin:1:500",
			Out: filepath.Join(dir, "runs"), Name: name, Workers: 1})
		least := 1.0
		for l, shares := range expertShares(t, sum.Run) {
			t.Logf("%s, layer %d: %.3f", name, l, shares)
			least = min(least, slices.Min(shares))
		}
		return least
	}
	for _, seed := range []string{"1", "3"} {
		if got := least("balanced-"+seed, "train.seed="+seed); got < 0.1 {
			t.Errorf("seed %s: an expert takes %.1f %% of the tokens", seed, 100*got)
		}
	}
	if got := least("unbalanced", "train.seed=3", "train.router_aux=0", "train.tokens=51200"); got > 0.01 {
		t.Errorf("without balancing every expert takes %.1f %% or more: this test says nothing", 100*got)
	}
}
