package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

func TestForwardErrorsLeaveThePosition(t *testing.T) {
	cfg := testConfigs()["combo in small"]
	m := newTestModel(t, cfg, 3)
	ids := randomIDs(cfg.ContextLength, cfg.VocabSize, 1)
	want := m.forward(ids[:10])
	e := newEngine(t, openTest(t, m.image(t, ids[:2]).bytes), 4)
	run(t, e, ids[:9], []int{9})
	logits := make([]float32, cfg.VocabSize)
	for name, c := range map[string]struct {
		got  error
		want error
		text string
	}{
		"id too large":       {e.Forward([]int32{0, int32(cfg.VocabSize)}, nil), ErrID, "97"},
		"id below 0":         {e.Forward([]int32{-5}, nil), ErrID, "-5"},
		"too long":           {e.Forward(ids[:cfg.ContextLength-8], nil), ErrContext, "41"},
		"too long, last":     {e.ForwardLast(ids, logits), ErrContext, "49"},
		"no ids for last":    {e.ForwardLast(nil, logits), ErrArgument, "ids"},
		"no room":            {e.Forward(ids[:2], logits), ErrArgument, "194"},
		"no room for last":   {e.ForwardLast(ids[:2], logits[1:]), ErrArgument, "97"},
		"no room at all":     {e.ForwardLast(ids[:2], nil), ErrArgument, "97"},
		"empty but not none": {e.Forward(ids[:1], []float32{}), ErrArgument, "97"},
	} {
		if !errors.Is(c.got, c.want) || !strings.Contains(c.got.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", name, c.got, c.want, c.text)
		}
	}
	if err := e.Forward(nil, nil); err != nil {
		t.Error(err)
	}
	if e.Position() != 9 {
		t.Fatalf("position %d after refused calls", e.Position())
	}
	if err := e.ForwardLast(ids[9:10], logits); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "after refused calls", logits, want[9*cfg.VocabSize:])
	if err := e.Forward(ids[10:], nil); err != nil { // to the brim
		t.Fatal(err)
	}
	if err := e.Forward(ids[:1], nil); !errors.Is(err, ErrContext) {
		t.Errorf("past the brim: %v", err)
	}
}

// TestNotFinite overflows in the middle of the model and at its end.
func TestNotFinite(t *testing.T) {
	for name, c := range map[string]struct {
		tensor string
		value  float32
	}{
		"attention": {configs.LayerTensor(0, configs.AttentionNorm), 3e38},
		"router":    {configs.LayerTensor(1, configs.FFNNorm), 3e38},
		"ple":       {configs.LayerTensor(1, configs.PLENorm), 3e38},
		"output":    {configs.OutputNorm, 3e38},
		"logits":    {configs.OutputNorm, 1e36},
	} {
		t.Run(name, func(t *testing.T) {
			m := smallModel(t)
			im := m.image(t, []int32{1})
			for i := range m.cfg.DModel {
				le.PutUint32(im.bytes[im.codes[c.tensor]+4*i:], math.Float32bits(c.value))
			}
			if name == "logits" {
				for i := range m.matrices[configs.Head].Scales {
					le.PutUint32(im.bytes[im.scales[configs.Head]+4*i:], math.Float32bits(1e30))
				}
			}
			fixCRCs(im.bytes)
			e := newEngine(t, openTest(t, im.bytes), 2)
			logits := make([]float32, 3*m.cfg.VocabSize)
			if err := e.Forward([]int32{1, 2, 3}, logits); !errors.Is(err, ErrNotFinite) {
				t.Errorf("%v, want %v", err, ErrNotFinite)
			}
			if e.Position() != 0 {
				t.Errorf("position %d", e.Position())
			}
			if err := Verify(e.Image()); !errors.Is(err, ErrNotFinite) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

func TestImageSaysWhatItHolds(t *testing.T) {
	m := smallModel(t)
	b := m.image(t, []int32{1, 2, 3})
	im := openTest(t, b.bytes)
	got := im.Model()
	if got.VocabSize != 20 || got.DModel != 24 || got.NLayers != 2 || got.NHeads != 2 || got.DFF != 20 ||
		got.ContextLength != 8 || got.PLEDim != 6 || got.Experts != 3 || got.Activation != ReLU || got.TieEmbeddings ||
		!got.QKNorm || got.NormEps != 1e-6 || got.ScoreScale != m.cfg.ScoreScale() || got.Tensors != len(m.tensors)+5 || got.Clusters != 4 {
		t.Errorf("%+v", got)
	}
	if got.TokenizerSHA256[31] != 31 || got.ModelSHA256[0] != 32 {
		t.Errorf("%x %x", got.TokenizerSHA256, got.ModelSHA256)
	}
	tensors := im.Tensors()
	for i, want := range m.tensors {
		g := tensors[i]
		if g.Name != want.Name || g.Rows != want.Rows() || g.Cols != want.Cols() || g.Bits != want.Quant.Bits ||
			g.Group != want.Quant.Group && want.Quant.Bits != 32 || g.Tier != i%3 {
			t.Errorf("tensor %d: %+v, want %+v", i, g, want)
		}
	}
	if string(im.Config()) != "name: test\n" || im.Size() != len(b.bytes) {
		t.Errorf("config %q, size %d", im.Config(), im.Size())
	}
	s := b.sections["TOKN"]
	if !bytes.Equal(im.Tokenizer(), b.bytes[s[0]:s[0]+s[1]]) {
		t.Error("tokenizer section differs")
	}
	if im.EndOfText() != 0 {
		t.Errorf("end-of-text is %d", im.EndOfText())
	}
	for id, want := range map[int32]string{0: "", 1: "\x01", 19: "\x13", 20: "", -1: "", math.MaxInt32: ""} { // as the builder writes them
		if got := im.Token(id); string(got) != want {
			t.Errorf("token %d is %q, want %q", id, got, want)
		}
	}
	g := im.Golden()
	if len(g.IDs) != 3 || g.IDs[2] != 3 || len(g.Top) != 5 {
		t.Errorf("golden %+v", g)
	}
	want := referenceTop(m.forward(g.IDs)[2*20:], 5)
	for i := range want {
		if g.Top[i] != want[i] {
			t.Errorf("best %d: %+v, want %+v", i, g.Top[i], want[i])
		}
	}
}

// An image may have no tokenizer: then no token has text, and a text still starts somewhere.
func TestImageWithoutTokenizer(t *testing.T) {
	m := smallModel(t)
	m.tokn = make([]byte, 24)
	m.tokn[12] = 5 // end-of-text
	b := m.image(t, []int32{1, 2, 3})
	im := openTest(t, b.bytes)
	if im.EndOfText() != 5 {
		t.Errorf("end-of-text is %d", im.EndOfText())
	}
	for id := int32(-1); id <= 20; id++ {
		if got := im.Token(id); len(got) > 0 {
			t.Errorf("token %d is %q", id, got)
		}
	}
	if err := Verify(im); err != nil {
		t.Error(err)
	}
	if ids, err := im.Encode([]byte("a")); !errors.Is(err, ErrTokenizer) {
		t.Errorf("a text has the ids %v, %v", ids, err)
	}
	for word, v := range map[int]uint32{0: 1, 1: 1, 2: 1, 3: 20, 4: 1, 5: 1} {
		bad := bytes.Clone(b.bytes)
		le.PutUint32(bad[b.sections["TOKN"][0]+4*word:], v)
		fixCRCs(bad)
		if im, err := NewImage(bad); !errors.Is(err, ErrTokenizer) {
			t.Errorf("word %d is %d: %v", word, v, err)
			im.Close()
		}
	}
}

func TestOpenImage(t *testing.T) {
	dir := t.TempDir()
	m := smallModel(t)
	good := m.image(t, []int32{1}).bytes
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	im, err := OpenImage(write("good", good))
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(im); err != nil {
		t.Error(err)
	}
	if err := im.Close(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"missing": {filepath.Join(dir, "none"), fs.ErrNotExist},
		"empty":   {write("empty", nil), ErrSize},
		"short":   {write("short", good[:40]), ErrSize},
		"text":    {write("text", bytes.Repeat([]byte("once upon a time "), 20)), ErrMagic},
		"cut":     {write("cut", good[:len(good)-64]), ErrFileBytes},
		"damaged": {write("damaged", append(bytes.Clone(good[:len(good)-1]), 1)), ErrFileCRC},
	} {
		if _, err := OpenImage(c.path); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want %v and the path", name, err, c.want)
		}
	}
	if _, err := OpenImage(dir); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a directory: %v", err)
	}
}

func TestClose(t *testing.T) {
	m := smallModel(t)
	im, err := NewImage(m.image(t, []int32{1}).bytes)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(im, Options{})
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, m.cfg.VocabSize)
	for range 2 { // closing twice is harmless, and the engine keeps the memory
		if err := im.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.ForwardLast([]int32{4}, logits); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "after the image was closed", logits, m.forward([]int32{4}))
	if _, err := New(im, Options{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a new engine over a closed image: %v", err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Forward([]int32{1}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine: %v", err)
	}
	e.Reset()
	if e.Position() != 0 || im.Config() != nil || im.Tokenizer() != nil || im.Tensors() != nil || im.Golden().IDs != nil {
		t.Error("closed, and still giving")
	}
}

func TestOptions(t *testing.T) {
	im := openTest(t, smallModel(t).image(t, []int32{1}).bytes)
	for _, batch := range []int{-1, MaxBatch + 1} {
		if _, err := New(im, Options{Batch: batch}); !errors.Is(err, ErrArgument) {
			t.Errorf("batch %d: %v", batch, err)
		}
	}
	newEngine(t, im, MaxBatch)
}

// TestDroppedEnginesAreCollected makes garbage of engines and images; a sanitizer or the race detector would object to
// a double release, and the count of users must come back to 0.
func TestDroppedEnginesAreCollected(t *testing.T) {
	m := smallModel(t)
	b := m.image(t, []int32{1}).bytes
	var mem *memory
	func() {
		im, err := NewImage(b)
		if err != nil {
			t.Fatal(err)
		}
		mem = im.mem
		for range 3 {
			if _, err := New(im, Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}()
	for range 100 {
		runtime.GC()
		mem.mu.Lock()
		done := mem.closed && mem.users == 0 && mem.release == nil
		mem.mu.Unlock()
		if done {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("after collection: %d users, closed %v", mem.users, mem.closed)
}
