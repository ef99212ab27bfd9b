package checkpoints

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chiplm/chiplm/configs"
)

func runCommand(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var out, notes bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SetArgs(append([]string{"info"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestInfo(t *testing.T) {
	c := sample(t, 1200)
	c.Tensors["output_norm"] = []float32{3, -4, float32(math.NaN()), float32(math.Inf(-1))}
	c.State.Corpus = "/" + strings.Repeat("a long path/", 20)
	run := t.TempDir()
	dir := mustSave(t, run, c, 1)
	out, _, err := runCommand(t, run)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, out)
	for _, want := range []string{
		"tiny: 1,738 parameters",
		"vocabulary 260, width 4, layers 1, heads 2, feed-forward 6 (relu)",
		"weights of 4 bits, a scale (f32) per 64 columns; activations of 8 bits",
		"step 1,200, 19,200 tokens, 2,400 sequences, 2 workers",
		"last 2.2500, best validation 1.5000",
		"stored: training can be resumed",
		c.ModelSHA256,
	} {
		if !strings.Contains(strings.ReplaceAll(out, "\n            ", ""), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	// mean of 3 and -4 is -0.5, their root mean square sqrt(12.5)
	if line := lineOf(out, "output_norm"); strings.Join(strings.Fields(line), " ") != "output_norm 4 32 -0.5 3.536 4 2" {
		t.Errorf("have %q", line)
	}
	if line := lineOf(out, "layers.0.qkv"); !strings.Contains(line, "12x4       4/64") {
		t.Errorf("have %q", line)
	}

	out, notes, err := runCommand(t, "--json", dir)
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	var got struct {
		A struct {
			Dir        string
			Parameters int
			Config     string
			State      State
			Tensors    []TensorStats
		}
		B any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	back, err := configs.Parse("x.yaml", []byte(got.A.Config))
	if err != nil || back.Hash() != c.Config.Hash() || got.A.State.Step != 1200 || got.A.Parameters != 1738 || len(got.A.Tensors) != len(c.Tensors) || got.B != nil {
		t.Errorf("%v, have %+v", err, got)
	}
}

func lineOf(text, name string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestInfoOfTwo(t *testing.T) {
	a, b := sample(t, 1), sample(t, 1)
	b.Config.Train.LR = 0.25
	b.Tensors["layers.0.down"][5] += 0.5
	b.Tensors["layers.0.up"][0] = float32(math.NaN())
	dirA, dirB := mustSave(t, t.TempDir(), a, 1), mustSave(t, t.TempDir(), b, 1)

	out, _, err := runCommand(t, dirA, dirB)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, out)
	for name, want := range map[string]string{
		"train.lr":      "train.lr 0.005 0.25",
		"layers.0.down": "layers.0.down 4x6 0.5 0.1021 1 no", // 0.5 / sqrt(24)
		"layers.0.up":   "layers.0.up 6x4 0 0 1 no",
		"layers.0.gate": "layers.0.gate 6x4 0 0 0 yes",
	} {
		if got := strings.Join(strings.Fields(lineOf(out, name)), " "); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	if !strings.Contains(out, "The weights differ.") || !strings.Contains(out, "The tokenizers are the same.") {
		t.Errorf("have %s", out)
	}

	out, _, err = runCommand(t, dirA, dirA)
	if err != nil || !strings.Contains(out, "The weights are the same bytes.") || !strings.Contains(out, "The configurations are the same.") {
		t.Errorf("%v, have %s", err, out)
	}

	other := mustSave(t, t.TempDir(), sampleOf(parse(t, tinyModel, "d_ff=8", "tie_embeddings=false", "quant.classes.head.bits=8"), 1), 1)
	out, _, err = runCommand(t, dirA, other)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, out)
	for name, want := range map[string]string{"layers.0.gate": "layers.0.gate 6x4 | 8x4 - - - no", "head": "head - | 260x4 - - - no", "quant.classes.head.bits": "quant.classes.head.bits - 8"} {
		if got := strings.Join(strings.Fields(lineOf(out, name)), " "); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	out, _, err = runCommand(t, "--json", dirA, dirB)
	var got struct{ Differences Comparison }
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Differences.EqualModels || len(got.Differences.Config) != 1 || got.Differences.Config[0].B != "0.25" {
		t.Errorf("%v, have %s", err, out)
	}
}

func TestInfoOfTheNewest(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, _, err := runCommand(t); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "train first") {
		t.Errorf("have %v", err)
	}
	run := filepath.Join(DefaultRoot, "tiny")
	mustSave(t, run, sample(t, 1), 2)
	second := mustSave(t, run, sample(t, 2), 2)
	if out, _, err := runCommand(t); err != nil || !strings.Contains(out, second) {
		t.Errorf("%v, have %s", err, out)
	}
	if err := os.Remove(filepath.Join(second, DoneFile)); err != nil {
		t.Fatal(err)
	}
	out, notes, err := runCommand(t, run)
	if err != nil || !strings.Contains(out, "step-00000001") || !strings.Contains(notes, "note: "+second+" is incomplete") {
		t.Errorf("%v, have %s, %s", err, out, notes)
	}
}

// The largest shapes a model file allows still fit the table.
func TestInfoOfALargeModelFits(t *testing.T) {
	s := summary{Tensors: []TensorStats{
		{Name: "layers.1023.attention_output", Shape: []int{32768, 32768}, Bits: 4, Group: 128, Mean: -1.234e-10, RMS: 1.234e-45, MaxAbs: 1.234e+30, NonFinite: 1 << 30},
		{Name: "ple_table", Shape: []int{1048576, 4194304}, Bits: 4, Group: 128, Mean: -1.2345678e-10, RMS: 1, MaxAbs: 1, NonFinite: 1},
	}}
	var b bytes.Buffer
	if err := printInfo(&b, s); err != nil {
		t.Fatal(err)
	}
	fits(t, b.String())
}
