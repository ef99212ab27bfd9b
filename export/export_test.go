package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/qat"
)

const tinyYAML = `name: tiny
vocab_size: 270
d_model: 40
n_layers: 2
n_heads: 2
d_ff: 72
context_length: 24
ple_dim: 6
tie_embeddings: true
activation: relu
qk_norm: true
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {batch_tokens: 48, micro_batch: 2}
`

func config(t *testing.T, sets ...string) *configs.Config {
	t.Helper()
	c, err := configs.Parse("tiny.yaml", []byte(tinyYAML), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tokenizer(t *testing.T) *bpe.Tokenizer {
	t.Helper()
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		return yield([]byte("Once upon a time there was a little girl. The little girl was once in the park."))
	}, 262)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// checkpoint makes a model of random weights: the zeros that training starts from would hide faults.
func checkpoint(t *testing.T, c *configs.Config) *checkpoints.Checkpoint {
	t.Helper()
	w := arch.InitWeights(c, 1)
	rng := rand.New(rand.NewPCG(2, 3))
	ck := &checkpoints.Checkpoint{Config: c, Tokenizer: tokenizer(t).JSON(), Tensors: map[string][]float32{}}
	for i, x := range w.Tensors {
		for j := range w.Data[i] {
			w.Data[i][j] += 0.2 * (rng.Float32() - 0.5)
		}
		ck.Tensors[x.Name] = w.Data[i]
	}
	ck.State.Step, ck.State.Tokens = 7, 12345
	ck.State.CorpusHash = "c0ffee"
	return ck
}

func build(t *testing.T, ck *checkpoints.Checkpoint, opt Options) *Built {
	t.Helper()
	b, err := BuildImage(context.Background(), ck, opt)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func chip(t *testing.T) *targets.Target {
	t.Helper()
	x, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// What the training graph computed in exact mode, the engine must reproduce to the bit, for every kind of model.
func TestEngineAgreesWithTrainer(t *testing.T) {
	for name, sets := range map[string][]string{
		"plain":    nil,
		"no PLE":   {"ple_dim=0"},
		"untied":   {"tie_embeddings=false", "activation=swiglu", "qk_norm=false"},
		"experts":  {"experts=3"},
		"bigrams":  {"ngram_rows=500", "attention_scale=4"},
		"f16 rows": {"quant.weights.scale=f16", "quant.weights.group=0"},
		"mixed":    {"quant.classes.ple_table.bits=2", "quant.classes.embedding.bits=8", "quant.weights.group=64"},
		"short":    {"context_length=4", "train.batch_tokens=8"},
	} {
		t.Run(name, func(t *testing.T) {
			b := build(t, checkpoint(t, config(t, sets...)), Options{Target: chip(t)})
			_, results, err := image.Check(bytes.NewReader(b.Bytes), int64(len(b.Bytes)))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Err != nil {
					t.Error(r.Err)
				}
			}
			im, err := engine.NewImage(b.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			if err := engine.Verify(im); err != nil {
				t.Error(err)
			}
			if n := len(b.Model.Golden.Prompt); n != min(24, b.Config.ContextLength) || b.Model.Golden.Prompt[0] != 0 {
				t.Errorf("a prompt of %d starting with %d", n, b.Model.Golden.Prompt[0])
			}
			// The engine's own digest of a changed model must differ, else verified would mean nothing.
			m := *b.Model
			m.Golden.Digest++
			wrong, err := image.Encode(&m)
			if err != nil {
				t.Fatal(err)
			}
			bad, err := engine.NewImage(wrong)
			if err != nil {
				t.Fatal(err)
			}
			defer bad.Close()
			if err := engine.Verify(bad); !errors.Is(err, engine.ErrDigest) {
				t.Errorf("a wrong digest: %v", err)
			}
		})
	}
}

// The image's own decoder, which shares no code with the quantiser, must read what quantise-then-dequantise gives.
func TestParityWithQAT(t *testing.T) {
	c := config(t, "quant.classes.ple_table.bits=2", "quant.classes.embedding.bits=8", "quant.weights.scale=f16")
	ck := checkpoint(t, c)
	b := build(t, ck, Options{})
	for i, x := range c.Tensors() {
		got := make([]float32, x.Cols())
		want := ck.Tensors[x.Name]
		if x.Quant.Bits != 32 {
			m, err := qat.Quantise(x.Quant, want, x.Rows(), x.Cols())
			if err != nil {
				t.Fatal(err)
			}
			want = make([]float32, x.Len())
			m.Dequantise(want)
		}
		for r := range x.Rows() {
			b.Model.Tensors[i].Row(got, r)
			for col, v := range got {
				if v != want[r*x.Cols()+col] {
					t.Fatalf("%s[%d,%d] = %v, want %v", x.Name, r, col, v, want[r*x.Cols()+col])
				}
			}
		}
	}
}

func TestTiersAreWritten(t *testing.T) {
	b := build(t, checkpoint(t, config(t)), Options{Target: chip(t)})
	f, err := image.Read(bytes.NewReader(b.Bytes), int64(len(b.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Tensors {
		if f.Tensors[i].Tier != b.Layout.Tensors[i].Tier {
			t.Errorf("%s: %s in the image, %s in the plan", f.Tensors[i].Name, f.Tensors[i].Tier, b.Layout.Tensors[i].Tier)
		}
	}
	if x := f.Tensor("ple_table"); x.Tier != image.Flash {
		t.Errorf("ple_table lies in %s", x.Tier)
	}
	if b.Layout.Buffers.Arena <= 0 || b.Layout.Buffers.Cache <= 0 || b.Layout.Partition.Image != int64(len(b.Bytes)) {
		t.Errorf("%+v %+v", b.Layout.Buffers, b.Layout.Partition)
	}
	host := build(t, checkpoint(t, config(t)), Options{})
	for i := range host.Model.Tensors {
		if host.Model.Tensors[i].Tier != image.SRAM {
			t.Errorf("on a host %s lies in %s", host.Model.Tensors[i].Name, host.Model.Tensors[i].Tier)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		sets   []string
		change func(ck *checkpoints.Checkpoint)
		want   string
		is     error
	}{
		"float weights":     {[]string{"quant.weights.bits=32"}, nil, "--bits 4", ErrNotQuantised},
		"float activations": {[]string{"quant.activations.bits=32"}, nil, "quant.activations.bits is 32", ErrNotQuantised},
		"missing tensor":    {nil, func(ck *checkpoints.Checkpoint) { delete(ck.Tensors, "ple_table") }, "ple_table has 0 weights", nil},
		"NaN":               {nil, func(ck *checkpoints.Checkpoint) { v := ck.Tensors["layers.1.qkv"]; v[3] /= v[3] - v[3] }, "layers.1.qkv", nil},
		"norm NaN":          {nil, func(ck *checkpoints.Checkpoint) { v := ck.Tensors["output_norm"]; v[3] /= v[3] - v[3] }, "output_norm: row 0, column 3", nil},
		"no tokenizer":      {nil, func(ck *checkpoints.Checkpoint) { ck.Tokenizer = nil }, "tokenizer", nil},
		"other tokenizer":   {[]string{"vocab_size=260"}, nil, "has 262 entries, the model only 260", nil},
		"hash":              {nil, func(ck *checkpoints.Checkpoint) { ck.ModelSHA256 = "zz" }, "no SHA-256", nil},
	} {
		ck := checkpoint(t, config(t, c.sets...))
		if c.change != nil {
			c.change(ck)
		}
		_, err := BuildImage(context.Background(), ck, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	small := chip(t)
	small.Memories[0].Usable = 1000
	if _, err := BuildImage(context.Background(), checkpoint(t, config(t)), Options{Target: small}); !errors.Is(err, placement.ErrFit) {
		t.Errorf("a chip of 1000 bytes: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := BuildImage(ctx, checkpoint(t, config(t)), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOverrides(t *testing.T) {
	float := config(t, "quant.weights.bits=32", "quant.activations.bits=32")
	b := build(t, checkpoint(t, float), Options{Overrides: Overrides{Bits: []string{"4", "ple_table=2"}, Group: []string{"embedding=0"}}})
	if !b.PostTraining || len(b.Notes) == 0 || !strings.Contains(strings.Join(b.Notes, "\n"), "quantised after training") {
		t.Errorf("post-training %v: %q", b.PostTraining, b.Notes)
	}
	by := map[string]image.Tensor{}
	for _, x := range b.Model.Tensors {
		by[x.Name] = x
	}
	if by["layers.0.qkv"].Bits != 4 || by["ple_table"].Bits != 2 || by["token_embedding"].Group != 0 || by["token_embedding"].Bits != 4 {
		t.Errorf("%+v", b.Config.Quant)
	}
	if float.Quant.Weights.Bits != 32 || len(float.Quant.Classes) != 0 {
		t.Error("the checkpoint's configuration was changed")
	}
	if same := build(t, checkpoint(t, config(t)), Options{}); same.PostTraining || len(same.Notes) != 0 {
		t.Errorf("a quantised checkpoint: %q", same.Notes)
	}
	late := checkpoint(t, config(t, "quant.start_step=7"))
	if b := build(t, late, Options{}); !b.PostTraining || !strings.Contains(b.Notes[0], "starts after step 7") {
		t.Errorf("before quantisation starts: %q", b.Notes)
	}
	for _, s := range []string{"5", "x", "norm=4", "head=", "=4"} {
		if _, err := (Overrides{Bits: []string{s}}).apply(config(t)); err == nil || !strings.Contains(err.Error(), "--bits") {
			t.Errorf("--bits %s: %v", s, err)
		}
	}
	if _, err := (Overrides{Group: []string{"48"}}).apply(config(t)); err == nil {
		t.Error("--group 48")
	}
}

// FNV-1a-64 of its authors' test vectors "" and "a", and one by hand over whole words.
func TestDigest(t *testing.T) {
	h := uint64(0xcbf29ce484222325)
	if h = (h ^ 'a') * 0x100000001b3; h != 0xaf63dc4c8601ec8c {
		t.Fatal("the constants are wrong")
	}
	d := engine.NewDigest()
	logits := []float32{1, -2, 0.5, 3, 4, 5}
	ids := []int32{9, 300}
	for p, id := range ids {
		d = d.Add(p, id, logits[3*p:3*p+3])
	}
	if got := digest(ids, logits); got != uint64(d) {
		t.Errorf("%016x, the engine has %016x", got, uint64(d))
	}
	if s := top([]float32{1, 3, 3, 2}, 3); s[0].ID != 1 || s[1].ID != 2 || s[2].ID != 3 {
		t.Errorf("top: %v", s)
	}
}

func TestWriteFolder(t *testing.T) {
	ck := checkpoint(t, config(t))
	b := build(t, ck, Options{Target: chip(t)})
	root := t.TempDir()
	dir := filepath.Join(root, "deep", "tiny-esp32s3")
	m, err := Write(context.Background(), dir, ck, b)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Verified || m.Step != 7 || m.CorpusHash != "c0ffee" || len(m.Files) != 7 {
		t.Errorf("%+v", m)
	}
	for name, want := range m.Files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != want.SHA256 || int64(len(got)) != want.Bytes {
			t.Errorf("%s does not have the hash of the manifest", name)
		}
	}
	// Replaced by the same again: every byte equal. Nothing temporary is left.
	before, _ := os.ReadFile(filepath.Join(dir, ManifestFile))
	if _, err := Write(context.Background(), dir, ck, b); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, ManifestFile)); !bytes.Equal(before, after) {
		t.Error("two exports of one checkpoint differ")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteRefuses(t *testing.T) {
	ck := checkpoint(t, config(t))
	b := build(t, ck, Options{Target: chip(t)})
	other := t.TempDir()
	keep := filepath.Join(other, "thesis.txt")
	if err := os.WriteFile(keep, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), other, ck, b); !errors.Is(err, ErrFolder) {
		t.Errorf("a foreign folder: %v", err)
	}
	if _, err := Write(context.Background(), keep, ck, b); !errors.Is(err, ErrFolder) {
		t.Errorf("a file: %v", err)
	}
	ours := filepath.Join(t.TempDir(), "out")
	if _, err := Write(context.Background(), ours, ck, b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ours, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), ours, ck, b); !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("an export folder with more in it: %v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error("the foreign file is gone")
	}
	// An engine that disagrees: nothing appears under the final name, an older export stays.
	if err := os.Remove(filepath.Join(ours, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	b.Model.Golden.Digest++
	if _, err := Write(context.Background(), ours, ck, b); !errors.Is(err, engine.ErrDigest) || !strings.Contains(err.Error(), "does not give the golden") {
		t.Errorf("a wrong golden: %v", err)
	}
	if r, err := checkFile(filepath.Join(ours, ImageFile)); err != nil || !r.Verified {
		t.Errorf("the older export: %+v %v", r, err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	if _, err := Write(context.Background(), fresh, ck, b); err == nil {
		t.Error("a wrong golden was exported")
	}
	if left, _ := os.ReadDir(filepath.Dir(fresh)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The size table accounts for every byte of the file.
func TestSizes(t *testing.T) {
	for _, sets := range [][]string{nil, {"experts=3", "quant.weights.bits=2"}, {"ple_dim=0", "quant.weights.scale=f16"}} {
		b := build(t, checkpoint(t, config(t, sets...)), Options{})
		f, err := image.Read(bytes.NewReader(b.Bytes), int64(len(b.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		s := sizesOf(f)
		if s.Total.Bytes != f.Bytes || s.Total.Params != int64(b.Config.Parameters()) {
			t.Errorf("%v: %d of %d bytes, %d of %d parameters", sets, s.Total.Bytes, f.Bytes, s.Total.Params, b.Config.Parameters())
		}
		for _, r := range s.Rows {
			if r.Padding < 0 || r.Payload < 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// run executes a command line and returns what it printed.
func run(t *testing.T, c *cobra.Command, args ...string) (string, string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.ExecuteContext(context.Background())
	return out.String(), errs.String(), err
}
