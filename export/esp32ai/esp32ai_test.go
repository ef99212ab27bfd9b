package esp32ai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/esp32ai/testfile"
	"github.com/chiplm/chiplm/qat"
)

// small is a model with short last groups and rows of an odd number of columns.
func small() testfile.Shape {
	return testfile.Shape{InVocab: 260, OutVocab: 260, D: 20, Layers: 2, Heads: 2, F: 33, P: 5, Context: 12, Group: 32, Theta: 10000, Tied: true}
}

// shapes are the forms of a file; the image's group follows for the trunk, the embedding and the table.
func shapes() map[string]struct {
	testfile.Shape
	groups [3]int
} {
	with := func(change func(*testfile.Shape)) testfile.Shape {
		s := small()
		change(&s)
		return s
	}
	type shape = struct {
		testfile.Shape
		groups [3]int
	}
	return map[string]shape{
		"groups of 32":               {small(), [3]int{32, 0, 0}},
		"untied":                     {with(func(s *testfile.Shape) { s.Tied = false }), [3]int{32, 0, 0}},
		"older":                      {with(func(s *testfile.Shape) { s.Older = true }), [3]int{32, 0, 0}},
		"a group wider than any row": {with(func(s *testfile.Shape) { s.Group = math.MaxInt32 }), [3]int{0, 0, 0}},
		"groups of a row":            {with(func(s *testfile.Shape) { s.D, s.F, s.P, s.Group = 96, 96, 48, 96 }), [3]int{0, 0, 0}},
		"groups of 64":               {with(func(s *testfile.Shape) { s.D, s.P, s.Group = 80, 70, 64 }), [3]int{64, 64, 64}},
		"groups of 128":              {with(func(s *testfile.Shape) { s.D, s.P, s.Group = 24, 130, 128 }), [3]int{128, 0, 128}},
		"groups of 96 repeat":        {with(func(s *testfile.Shape) { s.D, s.P, s.Group = 100, 50, 96 }), [3]int{32, 32, 32}},
		"groups of 256 repeat":       {with(func(s *testfile.Shape) { s.D, s.P, s.Group = 24, 150, 256 }), [3]int{0, 0, 128}},
		"a group for each tensor": {with(func(s *testfile.Shape) {
			s.D, s.P, s.Group, s.Groups = 140, 140, 128, map[string]int{"gate": 64, "qkv": 192, "ple_table": 1000}
		}), [3]int{64, 128, 0}},
	}
}

// extremes puts every code and all kinds of scales that are allowed into a tensor.
func extremes(q *testfile.Quant) {
	for i := range min(len(q.Codes), 60) {
		q.Codes[i] = int8(i%15 - 7)
	}
	copy(q.Scales, []uint16{0, 1, 0x3ff, 0x400, 0x7bff, 0x3c00})
}

// same fails when a matrix is not what was written: all codes, and the scale of every column.
func same(t *testing.T, name string, got *qat.Matrix, want *testfile.Quant) {
	t.Helper()
	if got == nil || got.Rows != want.Rows || got.Cols != want.Cols || got.Scale != configs.ScaleF16 {
		t.Errorf("%s: %+v", name, got)
		return
	}
	wide := got.Cols
	if got.Group > 0 {
		wide = got.Group
	}
	perRow, from := qat.Groups(got.Spec, got.Cols), len(want.Scales)/want.Rows
	for r := range want.Rows {
		for c := range want.Cols {
			code, scale := got.Codes[r*got.Cols+c], got.Scales[r*perRow+c/wide]
			if code != want.Codes[r*want.Cols+c] || float64(scale) != testfile.HalfValue(want.Scales[r*from+c/want.Group]) {
				t.Errorf("%s, row %d, column %d: code %d with scale %v, not %d with %v", name, r, c, code, scale,
					want.Codes[r*want.Cols+c], testfile.HalfValue(want.Scales[r*from+c/want.Group]))
				return
			}
		}
	}
}

func sameFloats(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, not %d", name, len(got), len(want))
		return
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s, value %d: %v, not %v", name, i, got[i], want[i])
			return
		}
	}
}

// sameModel compares every tensor by the names that docs/import.md gives.
func sameModel(t *testing.T, got *Model, want *testfile.Model) {
	t.Helper()
	quants := map[string]*testfile.Quant{"token_embedding": want.TokEmb, "ple_projection": want.PLEModelProj, "ple_table": want.PLETable}
	floats := map[string][]float32{"ple_projection_norm": want.PLEProjNorm, "output_norm": want.OutNorm}
	if want.Head != nil {
		quants["head"] = want.Head
	}
	for i, l := range want.Layer {
		p := "layers." + string(rune('0'+i)) + "."
		quants[p+"qkv"], quants[p+"attention_output"] = l.QKV, l.AttnProj
		quants[p+"gate"], quants[p+"up"], quants[p+"down"] = l.Gate, l.Up, l.Down
		quants[p+"ple_gate"], quants[p+"ple_output"] = l.PLEGate, l.PLEProj
		floats[p+"attention_norm"], floats[p+"ffn_norm"], floats[p+"ple_norm"] = l.AttnNorm, l.FFNNorm, l.PLENorm
	}
	if len(got.Matrices) != len(quants) || len(got.Floats) != len(floats) {
		t.Errorf("%d matrices and %d norms, not %d and %d", len(got.Matrices), len(got.Floats), len(quants), len(floats))
	}
	for name, q := range quants {
		same(t, name, got.Matrices[name], q)
	}
	for name, v := range floats {
		sameFloats(t, name, got.Floats[name], v)
	}
}

func TestCodesAndScalesAreKept(t *testing.T) {
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) {
			want := testfile.Random(s.Shape, 1)
			extremes(want.TokEmb)
			extremes(want.PLETable)
			extremes(want.Layer[1].Down)
			f, err := Parse(want.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			m, err := f.Model("it", 0)
			if err != nil {
				t.Fatal(err)
			}
			sameModel(t, m, want)
			c := m.Config
			if f.Older != s.Older || c.Name != "it" || c.VocabSize != s.InVocab || c.DModel != s.D || c.NLayers != s.Layers || c.NHeads != s.Heads ||
				c.DFF != s.F || c.PLEDim != s.P || c.ContextLength != s.Context || c.RopeTheta != 10000 || c.NormEps != 1e-6 || c.QKNorm ||
				c.Activation != configs.SwiGLU || c.TieEmbeddings != (s.Tied || s.Older) || c.Experts != 0 {
				t.Errorf("configuration %+v", c)
			}
			got := [3]int{c.WeightQuant(configs.ClassTrunk).Group, c.WeightQuant(configs.ClassEmbedding).Group, c.WeightQuant(configs.ClassPLETable).Group}
			if got != s.groups {
				t.Errorf("groups of trunk, embedding and table: %v, not %v", got, s.groups)
			}
			if repeats := strings.Contains(strings.Join(m.Notes, "\n"), "repeat"); repeats != (strings.Contains(name, "repeat") || strings.Contains(name, "each")) {
				t.Errorf("notes: %q", m.Notes)
			}
		})
	}
}

// The code -8 has a place in 8 bits only: the class gets them, and nothing else changes.
func TestTheLowestCode(t *testing.T) {
	want := testfile.Random(small(), 1)
	want.Layer[1].Up.Codes[19] = -8 // the last column of a row
	f, err := Parse(want.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model("it", 0)
	if err != nil {
		t.Fatal(err)
	}
	sameModel(t, m, want)
	if b := m.Config.WeightQuant(configs.ClassTrunk).Bits; b != 8 {
		t.Errorf("the trunk has %d bits", b)
	}
	if b := m.Config.WeightQuant(configs.ClassPLETable).Bits; b != 4 {
		t.Errorf("the table has %d bits", b)
	}
	if !strings.Contains(strings.Join(m.Notes, "\n"), "layers.1.up holds the code -8") {
		t.Errorf("notes: %q", m.Notes)
	}
	// The nibble that pads a row of an odd number of columns is no code: 0 there means nothing.
	odd := small()
	odd.D, odd.Heads = 18, 1
	if f, err = Parse(testfile.Random(odd, 1).Bytes()); err != nil {
		t.Fatal(err)
	}
	if m, err = f.Model("it", 0); err != nil || m.Config.Quant.Weights.Bits != 4 {
		t.Errorf("a padded row: %v", err)
	}
}

// A tensor written by hand, byte for byte: the low nibble comes first, 8 stands for 0.
func TestNibbles(t *testing.T) {
	x := Tensor{Tensor: configs.Tensor{Name: "gate", Shape: []int{2, 3}}, Group: 2,
		Codes: []byte{0x98, 0x0f, 0x21, 0x0a}, Scales: []byte{0, 0x3c, 0, 0x40, 1, 0, 0xff, 0x7b}}
	m, err := x.matrix(configs.WeightQuant{Bits: 4, Group: 0, Scale: configs.ScaleF16}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int8{0, 1, 7, -7, -6, 2} {
		if m.Codes[i] != want || x.Code(i/3, i%3) != int(want) {
			t.Errorf("code %d is %d and %d, not %d", i, m.Codes[i], x.Code(i/3, i%3), want)
		}
	}
	if x.holdsLowest(2) {
		t.Error("padding was taken for a code")
	}
}

func TestVocabularies(t *testing.T) {
	cut := small()
	cut.OutVocab = 258
	own := cut
	own.Tied = false
	more := small()
	more.OutVocab = 261
	for _, c := range []struct {
		name    string
		shape   testfile.Shape
		entries int
		want    error
		text    string
	}{
		{"equal", small(), 260, nil, ""},
		{"fewer entries than rows", small(), 258, nil, ""},
		{"more entries than rows", small(), 261, ErrVocabulary, "261 entries"},
		{"padding above the tokenizer", cut, 258, nil, ""},
		{"tokens that are only read", cut, 259, ErrVocabulary, "the tokenizer has 259"},
		{"nobody knows", cut, 0, ErrVocabulary, "give its tokenizer"},
		{"an output vocabulary of its own", own, 258, ErrVocabulary, "a vocabulary of its own"},
		{"more is written than read", more, 260, ErrVocabulary, "writes 261"},
	} {
		want := testfile.Random(c.shape, 1)
		f, err := Parse(want.Bytes())
		var m *Model
		if err == nil {
			m, err = f.Model("it", c.entries)
		}
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && m.Config.VocabSize != c.shape.OutVocab {
			t.Errorf("%s: a vocabulary of %d", c.name, m.Config.VocabSize)
		}
		if err == nil && c.shape.OutVocab < c.shape.InVocab { // the rows that are left are those of the tokens that are left
			for _, q := range []*testfile.Quant{want.TokEmb, want.PLETable} {
				q.Scales = q.Scales[:len(q.Scales)/q.Rows*c.shape.OutVocab]
				q.Rows = c.shape.OutVocab
				q.Codes = q.Codes[:q.Rows*q.Cols]
			}
			sameModel(t, m, want)
		}
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	good := testfile.Random(small(), 1).Bytes()
	older := small()
	older.Older = true
	old := testfile.Random(older, 1).Bytes()
	const embedding = 56 + 4 + 260*10 // where its scales are
	projection := embedding + 260*2
	norm := projection + 4 + 10*10 + 10*2
	word := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[at:], v)
			return b
		}
	}
	half := func(v uint16) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint16(b[embedding+2*7:], v)
			return b
		}
	}
	for _, c := range []struct {
		name   string
		file   []byte
		change func([]byte) []byte
		want   error
		text   string
	}{
		{"nothing", good, func(b []byte) []byte { return nil }, ErrMagic, "0 bytes"},
		{"another file", good, word(0, 0x46554747), ErrMagic, "47 47 55 46"},
		{"version 0", good, word(4, 0), ErrVersion, "version 0"},
		{"version 2", good, word(4, 2), ErrVersion, "version 2"},
		{"longer header", good, word(8, 60), ErrVersion, "60 bytes"},
		{"unknown flag", good, word(12, 3), ErrVersion, "0x3"},
		{"no tokens", good, word(16, 0), ErrSizes, "vocab_size"},
		{"few tokens", good, word(16, 256), ErrSizes, "vocab_size"},
		{"too many tokens", good, word(16, math.MaxUint32), ErrSizes, "vocab_size"},
		{"no output", good, word(20, 0), ErrSizes, "output vocabulary"},
		{"d_model 0", good, word(24, 0), ErrSizes, "d_model"},
		{"d_model below 0", good, word(24, 0xffffffec), ErrSizes, "have -20"},
		{"layers", good, word(28, 1<<31-1), ErrSizes, "n_layers"},
		{"heads", good, word(32, 3), ErrSizes, "3 heads"},
		{"odd heads", good, word(32, 4), ErrSizes, "odd"},
		{"ffn", good, word(36, 1<<20), ErrSizes, "d_ff"},
		{"no per-layer embeddings", good, word(40, 0), ErrSizes, "per-layer"},
		{"context", good, word(44, 0), ErrSizes, "context_length"},
		{"group 0", good, word(48, 0), ErrSizes, "group is 0"},
		{"theta not a number", good, word(52, 0x7fc00000), ErrSizes, "rope_theta"},
		{"theta infinite", good, word(52, 0x7f800000), ErrSizes, "rope_theta"},
		{"as large as it gets", good, func(b []byte) []byte {
			for at, v := range map[int]uint32{16: 1 << 20, 20: 1 << 20, 24: 1 << 14, 28: 256, 32: 1, 40: 4096} {
				binary.LittleEndian.PutUint32(b[at:], v)
			}
			return b
		}, ErrSizes, "parameters"},
		{"more rows than the file has", good, func(b []byte) []byte { return word(20, 1<<20)(word(16, 1<<20)(b)) }, ErrLength, "at least"},
		{"fewer layers than the file has", good, word(28, 1), ErrTensor, "ple_table"},
		{"older: negative", old, word(4, 0xffffffff), ErrSizes, "vocab_size"},
		{"older: group", old, word(32, 0), ErrSizes, "group"},
		{"older: theta", old, word(36, 0), ErrSizes, "rope_theta"},
		{"group of a tensor 0", good, word(56, 0), ErrTensor, "token_embedding"},
		{"group of a tensor below 0", good, word(56, 0x80000000), ErrTensor, "token_embedding"},
		{"group of a tensor too small", good, word(56, 1), ErrLength, "scales of"},
		{"group of the next tensor", good, word(projection, 0), ErrTensor, "ple_projection"},
		{"scale negative", good, half(0xbc00), ErrTensor, "token_embedding, row 7"},
		{"scale negative 0", good, half(0x8000), ErrTensor, "token_embedding, row 7"},
		{"scale infinite", good, half(0x7c00), ErrTensor, "token_embedding, row 7"},
		{"scale not a number", good, half(0x7e01), ErrTensor, "token_embedding, row 7"},
		{"norm not a number", good, word(norm+4, 0x7fc00000), ErrTensor, "ple_projection_norm, value 1"},
		{"norm infinite", good, word(norm, 0xff800000), ErrTensor, "ple_projection_norm, value 0"},
		{"norm subnormal", good, word(norm, 1), ErrTensor, "ple_projection_norm, value 0"},
		{"a byte more", good, func(b []byte) []byte { return append(b, 0) }, ErrLength, "1 bytes follow"},
		{"much more", good, func(b []byte) []byte { return append(b, make([]byte, 1<<17)...) }, ErrLength, "at most"},
	} {
		b := c.change(bytes.Clone(c.file))
		f, err := Parse(b)
		if err == nil {
			_, err = f.Model("it", 0)
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		path := filepath.Join(t.TempDir(), "model.bin")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, again := Open(path)
		if again == nil {
			_, again = f.Model("it", 0)
		}
		if !errors.Is(again, c.want) {
			t.Errorf("%s, as a file: %v", c.name, again)
		}
	}
	// Groups that no image has: small ones, and ones that are no multiple of 32.
	for _, group := range []int{1, 8, 16, 31, 33, 48} {
		s := small()
		s.P, s.Group = 100, group
		f, err := Parse(testfile.Random(s, 1).Bytes())
		if err == nil {
			_, err = f.Model("it", 0)
		}
		if !errors.Is(err, ErrTensor) || !strings.Contains(err.Error(), "groups of") {
			t.Errorf("group %d: %v", group, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

// A file that is cut anywhere is refused, and so is a header alone that promises much: nothing is read by it.
func TestCutFiles(t *testing.T) {
	older := small()
	older.Older = true
	for _, s := range []testfile.Shape{small(), older} {
		good := testfile.Random(s, 1).Bytes()
		for n := range good {
			if _, err := Parse(good[:n]); !errors.Is(err, ErrLength) && !(n < 4 && errors.Is(err, ErrMagic)) {
				t.Fatalf("%d of %d bytes: %v", n, len(good), err)
			}
		}
	}
	header := testfile.Random(small(), 1).Bytes()[:56]
	for at, v := range map[int]uint32{16: 1 << 17, 20: 1 << 17, 24: 64, 28: 200, 40: 64} { // 1.7 thousand million parameters
		binary.LittleEndian.PutUint32(header[at:], v)
	}
	path := filepath.Join(t.TempDir(), "model.bin")
	if err := os.WriteFile(path, header, 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if n := testing.AllocsPerRun(1, func() { _, err = Open(path) }); !errors.Is(err, ErrLength) || n > 10_000 {
		t.Errorf("%v, %v allocations", err, n)
	}
}

// gelu differs: erf there, tanh here. docs/import.md says by how much at most.
func TestGELUDifference(t *testing.T) {
	most := 0.0
	for x := -8.0; x <= 8; x += 1e-3 {
		most = max(most, math.Abs(float64(qat.GELU(float32(x)))-x*(1+math.Erf(x/math.Sqrt2))/2))
	}
	if most < 4e-4 || most > 5e-4 {
		t.Errorf("the forms differ by %v at most", most)
	}
}

func FuzzParse(f *testing.F) {
	for _, change := range []func(*testfile.Shape){
		func(s *testfile.Shape) {}, func(s *testfile.Shape) { s.Tied = false }, func(s *testfile.Shape) { s.Older = true },
		func(s *testfile.Shape) { s.D, s.F, s.P, s.Group = 6, 1, 2, 1 },
	} {
		s := testfile.Shape{InVocab: 257, OutVocab: 257, D: 4, Layers: 1, Heads: 2, F: 3, P: 1, Context: 2, Group: 32, Theta: 10000, Tied: true}
		change(&s)
		b := testfile.Random(s, 1).Bytes()
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if err != nil {
			return
		}
		m, err := file.Model("fuzz", 0)
		if err != nil {
			if !errors.Is(err, ErrTensor) && !errors.Is(err, ErrVocabulary) {
				t.Errorf("a file that was read is refused with %v", err)
			}
			return
		}
		for i, x := range m.Config.Tensors() {
			if q := m.Matrices[x.Name]; q != nil {
				for _, at := range []int{0, len(q.Codes) - 1} {
					if int(q.Codes[at]) != file.Tensors[i].Code(at/q.Cols, at%q.Cols) {
						t.Errorf("%s: code %d changed", x.Name, at)
					}
				}
			} else if len(m.Floats[x.Name]) != x.Len() {
				t.Errorf("%s is missing", x.Name)
			}
		}
	})
}
