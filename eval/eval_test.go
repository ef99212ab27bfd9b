package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
)

const tinyModel = `
vocab_size: 300
d_model: 32
n_layers: 2
n_heads: 2
d_ff: 40
context_length: 24
ple_dim: 8
quant: {weights: {bits: 4, group: 32}}
train: {tokens: 1000, batch_tokens: 24, micro_batch: 1}
`

// tinyRun saves a model that was not trained, with its tokenizer and held-out stories, and returns its folder.
// change may alter the weights first.
func tinyRun(t *testing.T, change func(*arch.Weights)) (dir, storiesPath string) {
	t.Helper()
	return tinyRunOf(t, tinyModel, change)
}

// tinyRunOf is tinyRun with another model file.
func tinyRunOf(t *testing.T, model string, change func(*arch.Weights)) (dir, storiesPath string) {
	t.Helper()
	cfg, err := configs.Parse("tiny.yaml", []byte(model))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	storiesPath = filepath.Join(root, "valid.txt")
	text := "Tom had a red ball. He ran.\n<|endoftext|>\nAnna \xff saw zw\u00f6lf birds and a " + strings.Repeat("very ", 40) + "big tree.\n<|endoftext|>\nThe end.\n"
	if err := os.WriteFile(storiesPath, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	corpus := data.Builtin(1, 50)
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		return corpus.Stories(context.Background(), yield)
	}, cfg.VocabSize)
	if err != nil {
		t.Fatal(err)
	}
	valid, err := data.Open(storiesPath)
	if err != nil {
		t.Fatal(err)
	}
	w := arch.InitWeights(cfg, 7)
	if change != nil {
		change(w)
	}
	tensors := map[string][]float32{}
	for i, spec := range w.Tensors {
		tensors[spec.Name] = w.Data[i]
	}
	info := valid.Info()
	dir, err = checkpoints.Save(filepath.Join(root, "runs", "tiny"), &checkpoints.Checkpoint{Config: cfg, Tokenizer: tok.JSON(),
		Tensors: tensors, State: checkpoints.State{Step: 1, Valid: info.Path, ValidHash: info.SHA256}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return dir, storiesPath
}

// call runs a command and returns what it prints on standard output.
func call(t *testing.T, cmd *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func report(t *testing.T, args ...string) Report {
	t.Helper()
	out, err := call(t, Command(), append([]string{"bpb", "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// The engine and the exact mode of the training graph score alike, on any number of workers.
func TestEngineAndTrainerScoreAlike(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	one := report(t, dir, "--reference", "trainer", "--workers", "1")
	row := one.Models[0]
	if math.Abs(row.Reference.NatsDifference) > 1e-6 {
		t.Errorf("engine minus exact trainer is %g nats per token", row.Reference.NatsDifference)
	}
	if row.Reference.Float.NatsPerToken == row.Reference.FakeQuant.NatsPerToken {
		t.Error("the float and the fake-quant column are the same: nothing was quantised")
	}
	if one.Stories.Count != 3 {
		t.Errorf("%d stories were scored, the file has 3", one.Stories.Count)
	}
	if three := report(t, dir, "--workers", "3"); three.Models[0].Score != row.Score {
		t.Errorf("1 worker scores %+v, 3 workers %+v", row.Score, three.Models[0].Score)
	}
}

// A model that knows nothing gives every token ln(vocab_size) nats, so its score is known without any model.
func TestIgnorantModelScoresAsUniform(t *testing.T) {
	dir, storiesPath := tinyRun(t, func(w *arch.Weights) { clear(w.Get(configs.OutputNorm)) })
	r := report(t, dir)
	row := r.Models[0]
	corpus, err := data.Open(storiesPath)
	if err != nil {
		t.Fatal(err)
	}
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Parse(ck.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	var tokens, storyBytes, stories float64
	err = corpus.Stories(context.Background(), func(story []byte) error {
		tokens += float64(len(tok.Encode(nil, story)))
		storyBytes += float64(len(story))
		stories++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	bits := math.Log2(300)
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-5*want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("nats per token", row.NatsPerToken, math.Log(300))
	near("bits per byte", row.BitsPerByte, tokens*bits/storyBytes)
	near("bits per byte with end", row.BitsPerByteWithEnd, (tokens+stories)*bits/storyBytes)
	near("bytes per token", row.TextBytesPerToken, storyBytes/tokens)
	near("stories' bytes", float64(r.Stories.Bytes), storyBytes)
	if row.Parameters != ck.Config.Parameters() || row.Tokens != int64(tokens) {
		t.Errorf("%d parameters and %d tokens, want %d and %v", row.Parameters, row.Tokens, ck.Config.Parameters(), tokens)
	}
}

func TestTableFits100Columns(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	out, err := call(t, Command(), "bpb", dir, "--reference", "trainer", "--n", "1")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "bits/byte") || !strings.Contains(out, "the first 1,") {
		t.Errorf("the table says too little:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "/") && len(line) > 101 { // a path may be any length
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// The recorded held-out stories must be the ones that are there.
func TestChangedStoriesAreRefused(t *testing.T) {
	dir, storiesPath := tinyRun(t, nil)
	if err := os.WriteFile(storiesPath, []byte("Another story.\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, Command(), "bpb", dir); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("changed stories: %v", err)
	}
	if _, err := call(t, Command(), "bpb", dir, "--stories", storiesPath); err != nil {
		t.Errorf("the same file named on purpose: %v", err)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	for _, args := range [][]string{
		{"bpb", dir, "--n", "-1"},
		{"bpb", dir, "--workers", "0"},
		{"bpb", dir, "--reference", "oracle"},
		{"bpb", filepath.Join(dir, "nothing-here")},
		{"bpb", filepath.Join(dir, "config.yaml")}, // not an image
		{"bpb", dir, "--stories", dir},
	} {
		if _, err := call(t, Command(), args...); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	for _, args := range [][]string{
		{dir, "--temperature", "NaN"}, {dir, "--temperature", "-1"}, {dir, "--top-k", "-1"}, {dir, "--tokens", "-1"},
		{dir, "--prompt", strings.Repeat("story ", 40)},
	} {
		if _, err := call(t, SampleCommand(), args...); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

// A checkpoint and the image exported from it write the same; the seed decides, and the prompt leads.
func TestSampleRepeats(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	built, err := export.BuildImage(context.Background(), ck, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(image, built.Bytes, 0o666); err != nil {
		t.Fatal(err)
	}
	write := func(model, seed string) string {
		out, err := call(t, SampleCommand(), model, "--prompt", "Tom", "--seed", seed, "--temperature", "2")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out, "Tom") || !strings.HasSuffix(out, "\n") {
			t.Errorf("%q does not start with the prompt or does not end its line", out)
		}
		return out
	}
	first := write(dir, "1")
	if again := write(image, "1"); again != first {
		t.Errorf("checkpoint and image wrote %q and %q", first, again)
	}
	if other := write(dir, "2"); other == first {
		t.Errorf("seeds 1 and 2 both wrote %q", first)
	}
}

// Among all tokens means the same whoever writes, also where the best few would be searched for, and in both spellings.
func TestSampleAmongAll(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	built, err := export.BuildImage(context.Background(), ck, export.Options{Clusters: 24})
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(image, built.Bytes, 0o666); err != nil {
		t.Fatal(err)
	}
	vocabulary := strconv.Itoa(ck.Config.VocabSize)
	for _, temperature := range []string{"0", "1.5"} {
		var want string
		for i, args := range [][]string{{dir, "--top-k", vocabulary}, {dir, "--top-k", "0"}, {dir, "--topk", "0"}, {image, "--top-k", "0"}, {image, "--topk", vocabulary}} {
			got, err := call(t, SampleCommand(), append(args, "--prompt", "Tom", "--seed", "3", "--temperature", temperature)...)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = got
			}
			if got != want {
				t.Errorf("%v, temperature %s: %q, want %q", args, temperature, got, want)
			}
		}
	}
}

// The number of tokens is what was asked for, or what the context holds.
func TestSampleStops(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	s, err := openSubject(context.Background(), dir, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for seed := range uint64(20) {
		opt := SampleOptions{Temperature: 1, TopK: 300, Seed: seed}
		text, err := sample(context.Background(), s, opt, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if text.Stopped == "context" && text.Tokens != s.config.ContextLength {
			t.Errorf("the context of %d ended after %d tokens", s.config.ContextLength, text.Tokens)
		}
		opt.Tokens = 3
		if text, err = sample(context.Background(), s, opt, io.Discard); err != nil {
			t.Fatal(err)
		}
		if text.Tokens > 3 || text.Stopped == "tokens" && text.Tokens != 3 {
			t.Errorf("3 tokens were asked for, %d came (%s)", text.Tokens, text.Stopped)
		}
	}
}
