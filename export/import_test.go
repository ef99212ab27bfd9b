package export

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/esp32ai"
	"github.com/chiplm/chiplm/export/esp32ai/testfile"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/qat"
)

// importShape is small, with the widths of the model that esp32-ai ships.
func importShape() testfile.Shape {
	return testfile.Shape{InVocab: 300, OutVocab: 300, D: 96, Layers: 3, Heads: 4, F: 66, P: 128, Context: 40, Group: 128, Theta: 10000, Tied: true}
}

func imported(t *testing.T, m *testfile.Model, opt Options) *Built {
	t.Helper()
	f, err := esp32ai.Parse(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ImportImage(context.Background(), f, "imported", nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// engineLogits are those of every position.
func engineLogits(t *testing.T, file []byte, ids []int32) [][]float32 {
	t.Helper()
	im, err := engine.NewImage(file)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if err := engine.Verify(im); err != nil {
		t.Errorf("the golden: %v", err)
	}
	e, err := engine.New(im, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var out [][]float32
	for _, id := range ids {
		logits := make([]float32, im.Model().VocabSize)
		if err := e.ForwardLast([]int32{id}, logits); err != nil {
			t.Fatal(err)
		}
		out = append(out, logits)
	}
	return out
}

// distance is the norm of the difference over the norm of the logits, the worst of all positions, and the share of
// positions whose best token is the same, or as good as the same: within the worst difference of a logit.
func distance(got [][]float32, want [][]float64) (worst, agree float64) {
	same := 0
	for p := range want {
		var difference, norm, most float64
		best, bestWant := 0, 0
		for i, w := range want[p] {
			d := float64(got[p][i]) - w
			difference += d * d
			norm += w * w
			most = max(most, math.Abs(d))
			if got[p][i] > got[p][best] {
				best = i
			}
			if w > want[p][bestWant] {
				bestWant = i
			}
		}
		worst = max(worst, math.Sqrt(difference/norm))
		if want[p][best] >= want[p][bestWant]-2*most {
			same++
		}
	}
	return worst, float64(same) / float64(len(want))
}

// swapRows exchanges two runs of rows of a matrix.
func swapRows(q *testfile.Quant, a, b, n int) {
	groups := len(q.Scales) / q.Rows
	for r := range n {
		for c := range q.Cols {
			i, j := (a+r)*q.Cols+c, (b+r)*q.Cols+c
			q.Codes[i], q.Codes[j] = q.Codes[j], q.Codes[i]
		}
		for g := range groups {
			i, j := (a+r)*groups+g, (b+r)*groups+g
			q.Scales[i], q.Scales[j] = q.Scales[j], q.Scales[i]
		}
	}
}

// tolerance bounds the distance from a float model. An activation of 8 bits is off by up to half a step, 1/254 of the largest
// of its vector: 0.7 % of the vector's norm where that is 3 times the root mean square, and 1.8 % where the vector holds
// products and it is 8 times that. A layer has five products of the one kind and two of the other, and errors that know
// nothing of each other add up as squares: 5.2 % after three layers, for a position like most.
//
// With the same roundings and the same gelu in float64, what is left is float32, exactTolerance, until a value falls to the
// other side of a rounding; from there on flipTolerance, since other positions attend to it.
const (
	tolerance      = 0.08
	exactTolerance = 1e-5
	flipTolerance  = 0.05
	exactPositions = 4 // at least, from the first on
)

func TestImportAgainstFloat(t *testing.T) {
	for name, change := range map[string]func(*testfile.Shape){
		"as it is shipped":   func(s *testfile.Shape) {},
		"untied":             func(s *testfile.Shape) { s.Tied = false },
		"older":              func(s *testfile.Shape) { s.Older = true },
		"short last groups":  func(s *testfile.Shape) { s.D, s.F, s.P, s.Group = 88, 75, 45, 32 },
		"groups that repeat": func(s *testfile.Shape) { s.D, s.F, s.P, s.Group = 128, 100, 70, 96 },
		"another theta":      func(s *testfile.Shape) { s.Theta = 500; s.Heads = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			s := importShape()
			change(&s)
			m := testfile.Random(s, 3)
			m.Layer[0].Up.Codes[5] = -8
			var ids []int32
			for i := range int32(s.Context) {
				ids = append(ids, i*i*7%300)
			}
			got := engineLogits(t, imported(t, m, Options{}).Bytes, ids)
			worst, agree := distance(got, m.Forward(ids))
			if worst > tolerance || agree < 1 {
				t.Errorf("the logits are off by %.4f of their norm, allowed are %.2f; %.0f %% agree on the best token", worst, tolerance, 100*agree)
			}
			rounded := m.ForwardRounded(ids)
			exact := true
			for p := range ids {
				d, _ := distance(got[p:p+1], rounded[p:p+1])
				exact = exact && d <= exactTolerance
				if !exact && (p < exactPositions || d > flipTolerance) {
					t.Errorf("position %d: with activations rounded, the logits are off by %.2g of their norm", p, d)
				}
			}
			t.Logf("distance %.4f, to the last float32 rounding: %v", worst, exact)
		})
	}
}

// The comparison sees every formula: a float model that differs in one is further away than any rounding.
func TestImportWouldSeeAnotherFormula(t *testing.T) {
	s, ids := importShape(), []int32{5, 9, 200, 17}
	got := engineLogits(t, imported(t, testfile.Random(s, 3), Options{}).Bytes, ids)
	for name, change := range map[string]func(*testfile.Model){
		"theta":                     func(m *testfile.Model) { m.Theta = 100 },
		"heads":                     func(m *testfile.Model) { m.Heads = 2 },
		"keys for queries":          func(m *testfile.Model) { swapRows(m.Layer[0].QKV, 0, 96, 96) },
		"values for keys":           func(m *testfile.Model) { swapRows(m.Layer[0].QKV, 96, 192, 96) },
		"one head for another":      func(m *testfile.Model) { swapRows(m.Layer[0].QKV, 192, 216, 24) },
		"up for gate":               func(m *testfile.Model) { l := &m.Layer[1]; l.Gate, l.Up = l.Up, l.Gate },
		"another layer's table":     func(m *testfile.Model) { swapColumns(m.PLETable, 128, 256, 128) },
		"another layer's embedding": func(m *testfile.Model) { swapRows(m.PLEModelProj, 0, 128, 128) },
		"norms": func(m *testfile.Model) {
			l := &m.Layer[2]
			l.AttnNorm, l.FFNNorm = l.FFNNorm, l.AttnNorm
		},
		"the table's scale":      func(m *testfile.Model) { halve(m.PLETable.Scales) },
		"the projection's norm":  func(m *testfile.Model) { m.PLEProjNorm[0] *= 4 },
		"the norm of the output": func(m *testfile.Model) { m.OutNorm[3] *= 3 },
	} {
		m := testfile.Random(s, 3)
		change(m)
		if worst, _ := distance(got, m.ForwardRounded(ids)); worst < 2*flipTolerance {
			t.Errorf("%s: the distance is %.4f, which rounding alone may give", name, worst)
		}
	}
}

func swapColumns(q *testfile.Quant, a, b, n int) {
	groups := len(q.Scales) / q.Rows
	for r := range q.Rows {
		for c := range n {
			i, j := r*q.Cols+a+c, r*q.Cols+b+c
			q.Codes[i], q.Codes[j] = q.Codes[j], q.Codes[i]
		}
		i, j := r*groups+a/q.Group, r*groups+b/q.Group
		q.Scales[i], q.Scales[j] = q.Scales[j], q.Scales[i]
	}
}

func halve(scales []uint16) {
	for i := range scales {
		scales[i] -= 1 << 10 // one less in the exponent
	}
}

// The golden comes from the plain reference. Where the training graph quantises the weights to what they are already, it
// must say the same.
func TestImportedGoldenIsTheTrainingGraphs(t *testing.T) {
	m := testfile.Random(importShape(), 4)
	for _, q := range []*testfile.Quant{m.TokEmb, m.PLEModelProj, m.PLETable} {
		reachSeven(q)
	}
	for _, l := range m.Layer {
		for _, q := range []*testfile.Quant{l.QKV, l.AttnProj, l.Gate, l.Up, l.Down, l.PLEGate, l.PLEProj} {
			reachSeven(q)
		}
	}
	f, err := esp32ai.Parse(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	model, err := f.Model("it", 0)
	if err != nil {
		t.Fatal(err)
	}
	tensors := map[string][]float32{}
	for name, v := range model.Floats {
		tensors[name] = v
	}
	for name, x := range model.Matrices {
		w := make([]float32, len(x.Codes))
		x.Dequantise(w)
		again, err := qat.Quantise(x.Spec, w, x.Rows, x.Cols)
		if err != nil || string(again.PackCodes()) != string(x.PackCodes()) || string(again.PackScales()) != string(x.PackScales()) {
			t.Fatalf("%s changes when it is quantised again: %v", name, err)
		}
		tensors[name] = w
	}
	b, err := ImportImage(context.Background(), f, "it", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := b.Model.Golden
	var ids []int32
	for _, id := range want.Prompt {
		ids = append(ids, int32(id))
	}
	w, err := arch.WeightsOf(b.Config, tensors)
	if err != nil {
		t.Fatal(err)
	}
	g, err := arch.Build(b.Config, w, arch.Options{Batch: 1, Seq: len(ids), Exact: true, Logits: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	none := make([]int32, len(ids))
	for i := range none {
		none[i] = -1
	}
	if _, err := g.Run(ids, none); err != nil {
		t.Fatal(err)
	}
	if got := goldenOf(ids, g.Logits()); got.Digest != want.Digest {
		t.Errorf("the graph's digest is %016x, the golden's %016x", got.Digest, want.Digest)
	}
}

// reachSeven lets the largest code of each group be 7, as a quantiser does.
func reachSeven(q *testfile.Quant) {
	for r := range q.Rows {
		for c := 0; c < q.Cols; c += q.Group {
			q.Codes[r*q.Cols+c] = 7
		}
	}
}

// What the image holds, read back from its bytes, is what the file held.
func TestImportedWeightsReadBack(t *testing.T) {
	s := importShape()
	s.Tied, s.Layers = false, 1
	m := testfile.Random(s, 5)
	m.PLETable.Codes[100] = -8
	copy(m.TokEmb.Scales, []uint16{0, 1, 0x3ff, 0x400})
	dir := filepath.Join(t.TempDir(), "out")
	b := imported(t, m, Options{Clusters: 16, Measure: true})
	if _, err := write(context.Background(), dir, b, Manifest{Imported: "esp32-ai"}); err != nil {
		t.Fatal(err)
	}
	r, err := checkFile(filepath.Join(dir, ImageFile))
	if err != nil || !r.Verified {
		t.Fatalf("%v, %+v", err, r)
	}
	f, err := image.Open(filepath.Join(dir, ImageFile))
	if err != nil {
		t.Fatal(err)
	}
	if f.Sizes.Clusters != 16 {
		t.Errorf("%d clusters", f.Sizes.Clusters)
	}
	for name, q := range map[string]*testfile.Quant{
		"token_embedding": m.TokEmb, "ple_table": m.PLETable, "head": m.Head, "layers.0.qkv": m.Layer[0].QKV, "layers.0.down": m.Layer[0].Down,
	} {
		x := f.Tensor(name)
		if want := map[bool]int{true: 8, false: 4}[name == "ple_table"]; x.Bits != want || x.ScaleType != image.ScaleF16 {
			t.Errorf("%s has %d bits, scale type %d", name, x.Bits, x.ScaleType)
		}
		for i, code := range q.Codes {
			row, col := i/q.Cols, i%q.Cols
			if got := x.Code(row, col); got != int(code) || float64(x.Value(row, col)) != q.Value(row, col) {
				t.Fatalf("%s, row %d, column %d: code %d, value %v; the file has %d, %v", name, row, col, got, x.Value(row, col), code, q.Value(row, col))
			}
		}
	}
}

func TestImportCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	s := importShape()
	s.Layers, s.P = 1, 16
	put := func(name string, seed uint64) {
		if err := os.WriteFile(name, testfile.Random(s, seed).Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("model.bin", 1)
	put("other.bin", 2)
	text, notes, err := run(t, ImportCommand(), "esp32-ai", "model.bin")
	if err != nil || !strings.Contains(text, "verified: the C engine and the reference agree") || !strings.Contains(notes, "no tokenizer was given") {
		t.Fatalf("%v\n%s\n%s", err, text, notes)
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 100 {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	if _, notes, err := run(t, ImportCommand(), "esp32-ai", "model.bin"); err != nil || !strings.Contains(notes, "replaced the import of the same file") {
		t.Errorf("again: %v, %s", err, notes)
	}
	if _, _, err := run(t, ImportCommand(), "esp32-ai", "other.bin"); !errors.Is(err, ErrOther) {
		t.Errorf("another model: %v", err)
	}
	if err := os.WriteFile("tokenizer.json", tokenizer(t).JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	text, notes, err = run(t, ImportCommand(), "esp32-ai", "other.bin", "--tokenizer", "tokenizer.json", "--name", "other", "--target", "host", "--json")
	var r importReport
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || notes != "" {
		t.Fatalf("%v\n%s\n%s", err, text, notes)
	}
	if r.Out != filepath.Join("exports", "other-host") || r.Manifest.Imported != "esp32-ai" || r.Manifest.TokenizerHash != tokenizer(t).Hash() ||
		!r.Manifest.Verified || r.Manifest.Run != "" {
		t.Errorf("%+v", r.Manifest)
	}
	for path, want := range map[string]string{
		filepath.Join("exports", "esp32-ai-esp32s3"): "tokenizer: none; tokens stand for no text",
		filepath.Join("exports", "other-host"):       `prompt: "Once upon a time`,
	} {
		if text, _, err := run(t, ImageCommand(), "info", path); err != nil || !strings.Contains(text, want) {
			t.Errorf("info %s: %v\n%s", path, err, text)
		}
		if text, _, err := run(t, ImageCommand(), "check", path); err != nil || !strings.Contains(text, "verified") {
			t.Errorf("check %s: %v\n%s", path, err, text)
		}
	}
	for _, args := range [][]string{
		{"none.bin"}, {"tokenizer.json"}, {"model.bin", "--tokenizer", "model.bin"}, {"model.bin", "--tokenizer", "none.json"},
		{"model.bin", "--target", "none"}, {"model.bin", "--clusters", "301"}, {"model.bin", "--name", "no name"}, {"."}, {""},
	} {
		if _, _, err := run(t, ImportCommand(), append([]string{"esp32-ai", "--out", "refused"}, args...)...); err == nil {
			t.Errorf("%v was accepted", args)
		}
		if _, err := os.Stat("refused"); err == nil {
			t.Fatalf("%v left a folder", args)
		}
	}
}

// Clusters that nobody asked for by number are left out where there is no room for them.
func TestClustersGiveWayToThePartition(t *testing.T) {
	s := importShape()
	s.InVocab, s.OutVocab, s.Layers, s.P, s.D, s.Heads = LeastRows, LeastRows, 1, 4, 16, 2
	m := testfile.Random(s, 6)
	loaded, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	chip := *loaded
	whole := imported(t, m, Options{Target: &chip, Clusters: NoClusters})
	with := imported(t, m, Options{Target: &chip, Clusters: AutoClusters})
	if with.Model.Sizes.Clusters == 0 || len(with.Notes) > 0 {
		t.Fatalf("%d clusters, notes %q", with.Model.Sizes.Clusters, with.Notes)
	}
	flash := *chip.Flash
	chip.Flash = &flash
	flash.ModelBytes = int64(len(with.Bytes) - 1)
	b := imported(t, m, Options{Target: &chip, Clusters: AutoClusters})
	if b.Model.Sizes.Clusters != 0 || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "the head is read whole") || len(b.Bytes) != len(whole.Bytes) {
		t.Errorf("%d clusters, %d bytes, notes %q", b.Model.Sizes.Clusters, len(b.Bytes), b.Notes)
	}
}
