package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export"
)

const sizes = `
vocab_size: 300
d_model: 32
n_layers: 2
n_heads: 2
d_ff: 96
context_length: 64
ple_dim: 8
quant: {weights: {bits: 4, group: 32}}
train: {tokens: 1000, batch_tokens: 64, micro_batch: 1, zero_init_proj: false}
`

// model saves a model that was not trained, and gives its folder.
func model(t *testing.T, text string) string {
	t.Helper()
	cfg, err := configs.Parse("tiny.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	corpus := data.Builtin(1, 50)
	tok, err := bpe.Train(t.Context(), func(yield func([]byte) error) error { return corpus.Stories(t.Context(), yield) }, cfg.VocabSize)
	if err != nil {
		t.Fatal(err)
	}
	w, tensors := arch.InitWeights(cfg, 7), map[string][]float32{}
	for i, spec := range w.Tensors {
		tensors[spec.Name] = w.Data[i]
	}
	dir, err := checkpoints.Save(filepath.Join(t.TempDir(), "tiny"), &checkpoints.Checkpoint{Config: cfg, Tokenizer: tok.JSON(), Tensors: tensors}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func stories(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stories.txt")
	text := strings.Repeat("Tom had a red ball. He ran to the big tree and saw a small bird there. ", 6) + "\n<|endoftext|>\nThe end.\n<|endoftext|>\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(text, 5)), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func decode(t *testing.T, ctx context.Context, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := DecodeCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{"--time", "1ms", "--tokens", "150"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func decoded(t *testing.T, args ...string) *Report {
	t.Helper()
	out, err := decode(t, t.Context(), append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return r
}

func find(t *testing.T, r *Report, name string, batch int, dense bool) Row {
	t.Helper()
	for _, row := range r.Rows {
		if row.Name == name && row.Batch == batch && row.Dense == dense {
			return row
		}
	}
	t.Fatalf("no row %s %d %v", name, batch, dense)
	return Row{}
}

// What is read follows from the sizes: a batch of n reads each weight once for n tokens, decoding reads the head as well,
// and every way attends over the same positions.
func TestBytes(t *testing.T) {
	dir := model(t, sizes)
	cfg, err := configs.Parse("tiny.yaml", []byte(sizes))
	if err != nil {
		t.Fatal(err)
	}
	r := decoded(t, dir, "--stories", stories(t))
	if r.Tokens < 150 || r.Silent == nil || !(*r.Silent > 0.2 && *r.Silent < 0.8) || r.Search || r.SIMD == "" || len(r.Rows) != 1+4+1+6 {
		t.Errorf("%+v", r)
	}
	var each, rows int64 // read once a pass, and one row a position
	for _, b := range cfg.Budget().Tensors {
		switch b.Name {
		case configs.TokenEmbedding, configs.PLETable:
			rows += (b.Codes + b.Scales) / int64(b.Rows())
		case configs.OutputNorm:
		default:
			each += b.TokenRead
		}
	}
	head := cfg.Budget().Tensors[0].TokenRead - cfg.Budget().Tensors[0].TokenRead/int64(cfg.VocabSize+1) + 4*int64(cfg.DModel)
	rows += int64(4 * cfg.DModel / cfg.NHeads) // rotary tables
	tokens := int64(r.Tokens)
	cache := r.Rows[0].Cache
	for _, n := range Batches {
		row := find(t, r, Prompt, n, true)
		var passes int64 // of whole windows of 64 tokens, and the short ones of "The end."
		if passes = (row.Weights - tokens*rows - int64(r.Windows)*head) / each; passes*each != row.Weights-tokens*rows-int64(r.Windows)*head {
			t.Errorf("batch %d: %d bytes of weights are no whole passes", n, row.Weights)
		}
		if passes < (tokens+int64(n)-1)/int64(n) || passes > tokens/int64(n)+int64(r.Windows) || row.Neurons != 1 || row.Cache != cache {
			t.Errorf("batch %d: %d passes for %d tokens: %+v", n, passes, tokens, row)
		}
		if n <= 8 {
			sparse := find(t, r, Prompt, n, false)
			if sparse.Weights >= row.Weights || sparse.Neurons >= 1 || sparse.Cache != cache {
				t.Errorf("batch %d: needed %+v, all %+v", n, sparse, row)
			}
		}
	}
	if one, eight := find(t, r, Prompt, 1, false), find(t, r, Prompt, 8, false); !(one.Neurons < eight.Neurons) || math.Abs(one.Neurons-(1-*r.Silent)) > 1e-9 {
		t.Errorf("neurons: %v of one token, %v of eight; silent are %v", one.Neurons, eight.Neurons, *r.Silent)
	}
	if row := find(t, r, Writing, 1, true); row.Weights != tokens*(each+rows+head) || math.Abs(row.PerTok-float64(row.Weights+row.Cache)/float64(tokens)) > 1e-6 {
		t.Errorf("decode: %+v, want %d bytes of weights", row, tokens*(each+rows+head))
	}
	for _, row := range r.Rows {
		for i, s := range row.Speeds {
			sorted := slices.Sorted(slices.Values(s.Rounds))
			if s.Threads != i+1 || len(s.Rounds) != rounds || s.TokensPerSecond != sorted[1] || sorted[0] <= 0 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// The model's own text is the same each time, and so are the bytes; an image that can be searched reads less of its head.
func TestOwnText(t *testing.T) {
	dir := model(t, sizes)
	a, b := decoded(t, dir, "--threads", "1"), decoded(t, dir, "--threads", "2")
	for i := range a.Rows {
		if a.Rows[i].Weights != b.Rows[i].Weights || a.Rows[i].Cache != b.Rows[i].Cache {
			t.Errorf("%+v, and again %+v", a.Rows[i], b.Rows[i])
		}
	}
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	built, err := export.BuildImage(t.Context(), ck, export.Options{Clusters: 8})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(path, built.Bytes, 0o666); err != nil {
		t.Fatal(err)
	}
	c := decoded(t, path, "--threads", "1")
	if !c.Search || c.Tokens != a.Tokens {
		t.Errorf("%+v", c)
	}
	for i, row := range c.Rows {
		if (row.Weights == a.Rows[i].Weights) != (row.Name == Prompt) {
			t.Errorf("with clusters %+v, without %+v", row, a.Rows[i])
		}
	}
}

func TestTable(t *testing.T) {
	for text, want := range map[string][]string{
		sizes: {"silent at a token", "\ndecode      1   needed", "\nprompt     32      all  100.0 %", "  1 thread"},
		strings.Replace(sizes, "ple_dim: 8", "activation: swiglu", 1): {"\nprompt      8      all"},
	} {
		out, err := decode(t, t.Context(), model(t, text), "--stories", stories(t))
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(out, "\ntext:")
		for _, w := range want {
			if !strings.Contains(strings.ReplaceAll(out, "\n  ", "\n"), w) {
				t.Errorf("%q is missing in\n%s", w, out)
			}
		}
		if text != sizes && (strings.Contains(out, "needed") || strings.Contains(out, "silent")) {
			t.Errorf("silent neurons of swiglu:\n%s", out)
		}
		for line := range strings.Lines(table) {
			if len(line) > 101 && !strings.Contains(line, "/") {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := model(t, sizes)
	for _, c := range []struct {
		args  string
		want  string
		usage bool
	}{
		{"--threads 0", "--threads 0", true},
		{"--threads 1,1", "--threads 1", true},
		{"--tokens 0", "--tokens", true},
		{"--time -1s", "--time", true},
		{"--stories nowhere.txt", "nowhere.txt", false},
	} {
		_, err := decode(t, t.Context(), append([]string{dir}, strings.Fields(c.args)...)...)
		var u *usage.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &u) != c.usage {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
	if _, err := decode(t, t.Context(), filepath.Join(dir, "nothing")); err == nil {
		t.Error("a model that is not there was measured")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := decode(t, ctx, dir); !errors.Is(err, context.Canceled) || out != "" {
		t.Errorf("interrupted: %v and %q", err, out)
	}
}
