package eval

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/image"
)

// wholeModel is tinyModel with no projection that starts at zero, so that everything in it counts.
var wholeModel = strings.Replace(tinyModel, "micro_batch: 1", "micro_batch: 1, zero_init_proj: false", 1)

// verification runs `chiplm verify --json` and returns what it prints, and its error.
func verification(t *testing.T, args ...string) (*Verification, error) {
	t.Helper()
	out, failed := call(t, VerifyCommand(), append([]string{"--json"}, args...)...)
	var v Verification
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v in %q (the command: %v)", err, out, failed)
	}
	return &v, failed
}

// faultyImage writes the image of a checkpoint with a change to one of its tensors.
func faultyImage(t *testing.T, checkpoint, tensor string, change func(*image.Tensor)) string {
	t.Helper()
	ck, err := checkpoints.LoadModel(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	built, err := export.BuildImage(context.Background(), ck, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range built.Model.Tensors {
		if built.Model.Tensors[i].Name == tensor {
			change(&built.Model.Tensors[i])
		}
	}
	path := filepath.Join(t.TempDir(), "faulty.clm")
	if err := image.WriteFile(path, built.Model); err != nil {
		t.Fatal(err)
	}
	return path
}

// plant changes the first weight of a row: its code by 1, or a float by half.
func plant(row int) func(*image.Tensor) {
	return func(w *image.Tensor) {
		at := w.Codes[row*w.Stride():]
		if w.Bits == 32 {
			binary.LittleEndian.PutUint32(at, math.Float32bits(1.5*math.Float32frombits(binary.LittleEndian.Uint32(at))))
			return
		}
		code := byte(1)
		if w.Code(row, 0) >= 0 {
			code = 0x0f // minus 1
		}
		at[0] = at[0]&0xf0 | (at[0]+code)&0x0f
	}
}

// Engine and graph agree to the bit on every position and every value on the way, whatever the number of workers.
func TestVerify(t *testing.T) {
	for name, model := range map[string]string{
		"dense":   wholeModel,
		"swiglu":  wholeModel + "activation: swiglu\ntie_embeddings: false\nattention_scale: 3\n",
		"no ple":  strings.Replace(wholeModel, "ple_dim: 8", "ple_dim: 0", 1),
		"bigrams": wholeModel + "ngram_rows: 1000\nattention_scale: 2\n",
		"experts": wholeModel + "experts: 4\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir, storiesPath := tinyRunOf(t, model, nil)
			v, err := verification(t, dir, "--workers", "1")
			if err != nil || !v.Passed {
				t.Fatalf("%v: %+v", err, v.Targets)
			}
			stories, positions := positionsOf(t, dir, storiesPath)
			if v.Stories.Count != stories || v.Tokens != positions {
				t.Errorf("%d stories and %d positions, want %d and %d", v.Stories.Count, v.Tokens, stories, positions)
			}
			if v.Agreement != 1 || v.EqualShare != 1 || v.EqualPositions != positions || v.LargestLogit != 0 || len(v.Disagreements) != 0 {
				t.Errorf("agreement %v, %d positions equal, largest difference %v", v.Agreement, v.EqualPositions, v.LargestLogit)
			}
			if v.LossDifference > 1e-6 || v.EngineNats == 0 || v.EngineDigest != v.GraphDigest {
				t.Errorf("nats %v and %v, digests %s and %s", v.EngineNats, v.GraphNats, v.EngineDigest, v.GraphDigest)
			}
			checkStepCounts(t, v)
			more, err := verification(t, "--model", dir, "--stories", storiesPath, "--workers", "3")
			v.Seconds, more.Seconds = 0, 0
			if err != nil || !reflect.DeepEqual(v, more) {
				t.Errorf("3 workers: %v, %+v; 1 worker: %+v", err, more, v)
			}
		})
	}
}

// positionsOf counts stories and their tokens with the closing end-of-text.
func positionsOf(t *testing.T, dir, storiesPath string) (stories int, positions int64) {
	t.Helper()
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Parse(ck.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := data.Open(storiesPath)
	if err != nil {
		t.Fatal(err)
	}
	err = corpus.Stories(context.Background(), func(story []byte) error {
		stories++
		positions += int64(len(tok.Encode(nil, story))) + 1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return stories, positions
}

// checkStepCounts holds the number of compared values to the sizes of the model: all positions are in traced windows.
func checkStepCounts(t *testing.T, v *Verification) {
	t.Helper()
	ck, err := checkpoints.LoadModel(v.Path)
	if err != nil {
		t.Fatal(err)
	}
	c := ck.Config
	linear := c.NLayers*(3*c.DModel+c.DModel+2*c.DFF+c.DModel) + c.VocabSize
	other := c.DModel + c.NLayers*(c.DModel+c.DModel) + c.DModel
	if p := c.PLEDim; p > 0 {
		linear += c.NLayers*p + c.NLayers*(p+c.DModel)
		other += c.NLayers*p + c.NLayers*p
	}
	if c.Experts > 1 {
		linear += c.NLayers * c.Experts
	}
	s := v.Steps
	if s.Windows != v.Windows || int64(s.Positions) != v.Tokens || s.First != nil {
		t.Errorf("%d windows and %d positions were compared step by step, want %d and %d; first difference %v", s.Windows, s.Positions, v.Windows,
			v.Tokens, s.First)
	}
	if n := v.Tokens; s.LinearValues != n*int64(linear) || s.LinearEqual != s.LinearValues || s.OtherValues != n*int64(other) || s.OtherEqual != s.OtherValues {
		t.Errorf("%d of %d values of linear layers and %d of %d others are equal, want all of %d and %d", s.LinearEqual, s.LinearValues,
			s.OtherEqual, s.OtherValues, n*int64(linear), n*int64(other))
	}
}

// A single wrong weight in the image is found, wherever it is, and the first step that differs is one that reads it.
func TestPlantedFaultsAreNamed(t *testing.T) {
	for name, model := range map[string]string{"dense": wholeModel, "untied experts": wholeModel + "experts: 2\ntie_embeddings: false\n"} {
		dir, _ := tinyRunOf(t, model, nil)
		ck, err := checkpoints.LoadModel(dir)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := bpe.Parse(ck.Tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range ck.Config.Tensors() {
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				row := 0
				if w.Name == configs.TokenEmbedding || w.Name == configs.PLETable {
					row = int(tok.EOT()) // which every window reads
				}
				v, err := verification(t, dir, "--image", faultyImage(t, dir, w.Name, plant(row)))
				if err == nil || v.Passed {
					t.Fatalf("the model passed: %+v", v.Targets)
				}
				d := v.Steps.First
				if d == nil || !slices.Contains(d.Tensors, w.Name) {
					t.Fatalf("the first difference is %+v", d)
				}
				if v.EqualShare == 1 || v.EngineDigest == v.GraphDigest || v.LargestLogit == 0 {
					t.Errorf("equal share %v, digests %s and %s", v.EqualShare, v.EngineDigest, v.GraphDigest)
				}
				if !strings.Contains(err.Error(), "linear layers") {
					t.Errorf("the error does not say what was missed: %v", err)
				}
			})
		}
	}
}

// A gross fault is told apart from a near-tie; the result is the same for any number of workers, and the text is readable.
func TestDisagreements(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	path := faultyImage(t, dir, configs.OutputNorm, func(w *image.Tensor) {
		for i := range w.Cols / 2 {
			binary.LittleEndian.PutUint32(w.Codes[4*i:], math.Float32bits(-9))
		}
	})
	v, failed := verification(t, dir, "--image", path, "--workers", "1")
	if failed == nil || v.LossDifference <= MaxLossDifference || v.Agreement >= MinAgreement || len(v.Disagreements) == 0 {
		t.Fatalf("%v: loss differs by %v, agreement %v", failed, v.LossDifference, v.Agreement)
	}
	for _, want := range []string{"loss", "chosen token", "near-tie", "linear layers"} {
		if !strings.Contains(failed.Error(), want) {
			t.Errorf("%q is not in %v", want, failed)
		}
	}
	if got := 1 - float64(len(v.Disagreements))/float64(v.Tokens); got != v.Agreement {
		t.Errorf("agreement %v, the disagreements say %v", v.Agreement, got)
	}
	ties := 0
	for i, d := range v.Disagreements {
		if d.Engine.ID == d.Graph.ID || d.EngineGap < 0 || d.GraphGap < 0 || d.NearTie != (d.EngineGap <= NearTie && d.GraphGap <= NearTie) {
			t.Errorf("disagreement %+v", d)
		}
		if d.NearTie {
			ties++
		}
		if i > 0 {
			if p := v.Disagreements[i-1]; d.Story < p.Story || d.Story == p.Story && d.Token <= p.Token {
				t.Errorf("%+v stands behind %+v", d.Place, p.Place)
			}
		}
	}
	if ties != v.NearTies {
		t.Errorf("%d near-ties, %d are marked", v.NearTies, ties)
	}
	more, _ := verification(t, dir, "--image", path, "--workers", "4")
	v.Seconds, more.Seconds = 0, 0
	if !reflect.DeepEqual(v, more) {
		t.Error("4 workers find something else than 1")
	}
	out, _ := call(t, VerifyCommand(), dir, "--image", path)
	if strings.Count(out, "MISSED") != 4 || !strings.Contains(out, "Other tokens chosen") || !strings.Contains(out, "see --json") {
		t.Errorf("the text says too little:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "/") && len(line) > 101 { // a path may be any length
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// Whole stories are taken, as many as are needed.
func TestVerifyTakesWholeStories(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	v, err := verification(t, dir, "--tokens", "1")
	if err != nil || v.Stories.Count != 1 || v.Stories.Bytes != int64(len("Tom had a red ball. He ran.")) {
		t.Errorf("%v: %+v", err, v.Stories)
	}
}

// An image has no weights for the graph, and only the one that was made from the checkpoint can be compared with it.
func TestVerifyRefuses(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	other, _ := tinyRun(t, func(w *arch.Weights) { w.Data[0][0] = 0.5 })
	path := faultyImage(t, dir, "", nil)
	for want, args := range map[string][]string{
		"--image":       {path},
		"two models":    {dir, "--model", other},
		"exported from": {other, "--image", path},
		"is no image":   {dir, "--image", other},
		"no such path":  {filepath.Join(dir, "nothing")},
		"must be 1":     {dir, "--workers", "0"},
		"must be 1 or":  {dir, "--tokens", "-3"},
		"is empty":      {dir, "--stories", emptyFile(t)},
	} {
		out, err := call(t, VerifyCommand(), args...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v, want %q; it printed %q", args, err, want, out)
		}
	}
	if v, err := verification(t, dir, "--image", path); err != nil || v.Image != path || !v.Passed {
		t.Errorf("the checkpoint's own image: %v", err)
	}
}

func emptyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerifyStops(t *testing.T) {
	dir, _ := tinyRun(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := openTwins(ctx, dir, "", "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	corpus := data.Builtin(1, 100_000)
	_, err = verify(ctx, s, corpus, 1e9, 2, func(done int64) {
		if done > 1000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
}

// The targets at their bounds.
func TestJudge(t *testing.T) {
	good := Verification{LossDifference: MaxLossDifference, Agreement: MinAgreement, NearTies: 1, Disagreements: make([]Disagreement, 1),
		Steps: Steps{LinearValues: 7, LinearEqual: 7}}
	if good.judge(); !good.Passed || good.err() != nil {
		t.Errorf("%+v", good.Targets)
	}
	for want, change := range map[string]func(v *Verification){
		"loss":          func(v *Verification) { v.LossDifference = math.Nextafter(MaxLossDifference, 1) },
		"loss, nats":    func(v *Verification) { v.LossDifference = math.NaN() },
		"chosen token":  func(v *Verification) { v.Agreement = math.Nextafter(MinAgreement, 0) },
		"near-ties":     func(v *Verification) { v.NearTies = 0 },
		"linear layers": func(v *Verification) { v.Steps.LinearEqual = 6 },
	} {
		v := good
		change(&v)
		v.judge()
		missed := 0
		for _, target := range v.Targets {
			if !target.Met {
				missed++
			}
		}
		if err := v.err(); err == nil || missed != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d missed, %v", want, missed, v.err())
		}
	}
}

func TestCompareLogits(t *testing.T) {
	zero, inf := float32(math.Copysign(0, -1)), float32(math.Inf(-1))
	for _, c := range []struct {
		ours, theirs []float32
		want         rowComparison
	}{
		{[]float32{1, 3, 3, 2}, []float32{1, 3, 3, 2}, rowComparison{equal: true, finite: true, best: 1}},
		{[]float32{9, 0}, []float32{1, 1}, rowComparison{finite: true, largest: 8}},
		{[]float32{0, 1}, []float32{zero, 1}, rowComparison{finite: true, best: 1}},
		{[]float32{1, inf}, []float32{1, inf}, rowComparison{equal: true}},
		{[]float32{1, -2}, []float32{1.5, 2}, rowComparison{finite: true, largest: 4, best: 1}},
	} {
		if got := compareLogits(c.ours, c.theirs); got != c.want {
			t.Errorf("%v and %v: %+v, want %+v", c.ours, c.theirs, got, c.want)
		}
	}
}

// A hundred percent is all.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100 %", 0.99999999: "99.9999 %", 0.995: "99.5 %", 0: "0 %", 0.5: "50 %"} {
		if got := percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

func TestTokensAreCut(t *testing.T) {
	for text, want := range map[string]string{" and": `7 " and"`, "\xff\n": `7 "\xff\n"`, "abcdefghijklmnop": `7 "abcdefghijklmnop"`,
		"abcdefghijklmnöpq": `7 "abcdefghijklmnöp…`, strings.Repeat("\xff", 9): `7 "\xff\xff\xff\xff…`} {
		if got := (TokenText{7, text}).quoted(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
