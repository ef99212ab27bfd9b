package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// smallModel has every kind of tensor and stays small, for tests that open thousands of images.
func smallModel(tb testing.TB) *testModel {
	tb.Helper()
	cfg := shape(20, 24, 2, 2, 20, 8, 6, 3)
	bits := 2
	cfg.Quant.Classes = map[configs.TensorClass]configs.ClassRule{configs.ClassPLETable: {Bits: &bits}}
	cfg.TieEmbeddings = false
	cfg.QKNorm = true
	cfg.NgramRows = 7
	m := newTestModel(tb, cfg, 5)
	m.cluster(tb, 4)
	return m
}

func put(b []byte, f field, v uint64) {
	if f.size == 8 {
		le.PutUint64(b[f.offset:], v)
	} else {
		le.PutUint32(b[f.offset:], uint32(v))
	}
}

func get(b []byte, f field) uint64 {
	if f.size == 8 {
		return le.Uint64(b[f.offset:])
	}
	return uint64(le.Uint32(b[f.offset:]))
}

// hostileImages is a fixed list of images, most of them broken, all with right CRCs where those can be right.
func hostileImages(tb testing.TB) [][]byte {
	tb.Helper()
	im := smallModel(tb).image(tb, []int32{1, 2, 3})
	var out [][]byte
	add := func(change func(b []byte)) {
		b := slices.Clone(im.bytes)
		change(b)
		fixCRCs(b)
		out = append(out, b)
	}
	for _, f := range im.fields {
		old := get(im.bytes, f)
		for _, v := range []uint64{0, 1, 32, old + 1, old - 1, old + 64, math.MaxUint32, math.MaxInt32, 1 << 31,
			math.MaxUint64 - 63, 0x7f800000} {
			if v != old {
				add(func(b []byte) { put(b, f, v) })
			}
		}
	}
	for n := 0; n < len(im.bytes); n += 151 { // cut off, also with a header that admits it
		out = append(out, slices.Clone(im.bytes[:n]))
		if n >= 64 {
			b := slices.Clone(im.bytes[:n])
			le.PutUint64(b[16:], uint64(n))
			fixCRCs(b)
			out = append(out, b)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 { // random bits anywhere
		add(func(b []byte) {
			for range 1 + rng.IntN(4) {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		})
	}
	for range 100 { // random bits in front, where the structure is
		add(func(b []byte) {
			for range 1 + rng.IntN(3) {
				b[rng.IntN(2048)] ^= 1 << rng.IntN(8)
			}
		})
	}
	return out
}

// tryImage opens an image and, if it is accepted, runs it. Whatever the bytes, it must return.
func tryImage(tb testing.TB, b []byte) error {
	tb.Helper()
	im, err := NewImage(b)
	if err != nil {
		known := false
		for _, sentinel := range sentinels {
			known = known || errors.Is(err, sentinel)
		}
		if !known {
			tb.Fatalf("an error that wraps no sentinel: %v", err)
		}
		return err
	}
	defer im.Close()
	im.Golden()
	im.Tensors()
	e, err := New(im, Options{Batch: 7})
	if err != nil {
		tb.Fatalf("an accepted image does not start: %v", err)
	}
	defer e.Close()
	m := im.Model()
	logits := make([]float32, m.VocabSize)
	ids := randomIDs(m.ContextLength, m.VocabSize, 1)
	if err := e.ForwardLast(ids, logits); err != nil && !errors.Is(err, ErrNotFinite) {
		tb.Fatalf("an accepted image does not run: %v", err)
	}
	e.Reset()
	if _, err := e.ForwardBest(ids, im.Certified(), 5); err != nil && !errors.Is(err, ErrNotFinite) {
		tb.Fatalf("an accepted image cannot be searched: %v", err)
	}
	return nil
}

func TestHostileImagesNeverCrash(t *testing.T) {
	refused := map[string]int{}
	images := hostileImages(t)
	for _, b := range images {
		if err := tryImage(t, b); err != nil {
			for _, sentinel := range sentinels {
				if errors.Is(err, sentinel) {
					refused[sentinel.Error()]++
				}
			}
		}
	}
	// The mutations reach every check of an image that a wrong value can reach.
	for _, want := range []error{ErrSize, ErrMagic, ErrVersion, ErrHeaderBytes, ErrFlags, ErrFileBytes, ErrReserved,
		ErrSections, ErrModel, ErrTensorName, ErrTensorShape, ErrTensorBits, ErrTensorFloat, ErrTensorRange, ErrCode,
		ErrScale, ErrFloat, ErrRope, ErrTokenizer, ErrGolden, ErrClusters} {
		if refused[want.Error()] == 0 {
			t.Errorf("no image was refused with %q", want)
		}
	}
}

func TestEachFaultHasItsError(t *testing.T) {
	m := smallModel(t)
	im := m.image(t, []int32{1, 2, 3})
	qkv, norm, router := "layers.0.qkv", "layers.0.attention_norm", "layers.1.router"
	modl, tokn, gold := im.sections["MODL"][0], im.sections["TOKN"][0], im.sections["GOLD"][0]
	word := func(at int, v uint32) func([]byte) { return func(b []byte) { le.PutUint32(b[at:], v) } }
	cases := []struct {
		name   string
		want   error
		keep   bool // leave the CRCs as they are
		change func([]byte)
	}{
		{"magic", ErrMagic, false, word(0, 0x464c457f)},
		{"version", ErrVersion, false, word(4, 3)},
		{"header bytes", ErrHeaderBytes, false, word(8, 128)},
		{"flags", ErrFlags, false, word(12, 1)},
		{"file bytes", ErrFileBytes, false, word(16, 64)},
		{"file CRC", ErrFileCRC, true, word(28, 0)},
		{"changed byte", ErrFileCRC, true, func(b []byte) { b[len(b)-200] ^= 1 }},
		{"reserved in header", ErrReserved, false, word(60, 1)},
		{"padding at the end", ErrReserved, false, func(b []byte) { b[len(b)-1] = 1 }},
		{"no sections", ErrSections, false, word(24, 0)},
		{"eight sections", ErrSections, false, word(24, 8)},
		{"unknown section", ErrSections, false, func(b []byte) { copy(b[64+32:], "XXXX") }},
		{"sections out of order", ErrSections, false, func(b []byte) { copy(b[64:], "CONF"); copy(b[96:], "MODL") }},
		{"section on the table", ErrSections, false, word(64+8, 64)},
		{"section not aligned", ErrSections, false, word(64+8, uint32(modl+4))},
		{"section past the end", ErrSections, false, word(64+6*32+16, math.MaxUint32)},
		{"d_model 0", ErrModel, false, word(modl+4, 0)},
		{"heads do not divide", ErrModel, false, word(modl+12, 5)},
		{"odd head width", ErrModel, false, word(modl+12, 8)},
		{"too many layers", ErrModel, false, word(modl+8, 1<<30)},
		{"activation", ErrModel, false, word(modl+32, 2)},
		{"model flags", ErrModel, false, word(modl+36, 4)},
		{"eps NaN", ErrModel, false, word(modl+40, 0x7fc00000)},
		{"eps zero", ErrModel, false, word(modl+40, 0)},
		{"negative score scale", ErrModel, false, word(modl+44, math.Float32bits(-1))},
		{"subnormal c_e", ErrModel, false, word(modl+48, 1)},
		{"number of tensors", ErrModel, false, word(modl+60, 3)},
		{"one layer less", ErrModel, false, word(modl+8, 1)},
		{"more d_ff", ErrTensorShape, false, word(modl+16, 21)},
		{"name", ErrTensorName, false, func(b []byte) { copy(b[im.tensors[qkv]:], "layers.0.qkw") }},
		{"name with a tail", ErrTensorName, false, func(b []byte) { b[im.tensors[qkv]+40] = 'x' }},
		{"rows", ErrTensorShape, false, word(im.tensors[qkv]+48, 71)},
		{"columns", ErrTensorShape, false, word(im.tensors[qkv]+52, 25)},
		{"3 bits", ErrTensorBits, false, word(im.tensors[qkv]+56, 3)},
		{"float matrix", ErrTensorFloat, false, word(im.tensors[qkv]+56, 32)},
		{"4-bit norm", ErrTensorBits, false, word(im.tensors[norm]+56, 4)},
		{"4-bit router", ErrTensorBits, false, word(im.tensors[router]+56, 4)},
		{"group 16", ErrTensorBits, false, word(im.tensors[qkv]+60, 16)},
		{"group of a norm", ErrTensorBits, false, word(im.tensors[norm]+60, 32)},
		{"scale type", ErrTensorBits, false, word(im.tensors[qkv]+64, 3)},
		{"no scales", ErrTensorBits, false, word(im.tensors[qkv]+64, 0)},
		{"tier", ErrTensorBits, false, word(im.tensors[qkv]+68, 3)},
		{"codes not aligned", ErrTensorRange, false, word(im.tensors[qkv]+72, uint32(im.codes[qkv]+16))},
		{"codes before DATA", ErrTensorRange, false, word(im.tensors[qkv]+72, 64)},
		{"codes past DATA", ErrTensorRange, false, word(im.tensors[qkv]+76, 1)},
		{"codes too long", ErrTensorRange, false, word(im.tensors[qkv]+80, 1<<30)},
		{"codes on another tensor", ErrTensorRange, false, word(im.tensors[qkv]+72, uint32(im.codes["layers.0.gate"]))},
		{"codes on their scales", ErrTensorRange, false, word(im.tensors[qkv]+72, uint32(im.scales[qkv]))},
		{"scales past DATA", ErrTensorRange, false, word(im.tensors[qkv]+92, 1)},
		{"scales of a norm", ErrTensorRange, false, word(im.tensors[norm]+88, uint32(im.scales[qkv]))},
		{"bytes of scales", ErrTensorRange, false, word(im.tensors[qkv]+96, 4)},
		{"stride", ErrTensorRange, false, word(im.tensors[qkv]+104, 32)},
		{"reserved in a tensor", ErrReserved, false, word(im.tensors[qkv]+124, 1)},
		{"code -8", ErrCode, false, func(b []byte) { b[im.codes[qkv]] = 0x81 & 0xf0 }},
		{"code past the last column", ErrCode, false, func(b []byte) { b[im.codes[qkv]+15] |= 0x10 }},
		{"2-bit code -2", ErrCode, false, func(b []byte) { b[im.codes["ple_table"]] = 2 }},
		{"scale NaN", ErrScale, false, word(im.scales[qkv], 0x7fc00000)},
		{"scale infinite", ErrScale, false, word(im.scales[qkv], 0x7f800000)},
		{"scale negative", ErrScale, false, word(im.scales[qkv], 0xbf800000)},
		{"scale subnormal", ErrScale, false, word(im.scales[qkv], 1)},
		{"norm NaN", ErrFloat, false, word(im.codes[norm], 0xffc00000)},
		{"router infinite", ErrFloat, false, word(im.codes[router]+4, 0x7f800000)},
		{"cosine above 1", ErrRope, false, word(im.sections["ROPE"][0], 0x3f800001)},
		{"sine NaN", ErrRope, false, word(im.sections["ROPE"][0]+im.sections["ROPE"][1]-4, 0x7fc00000)},
		{"tokenizer kind", ErrTokenizer, false, word(tokn, 2)},
		{"too many entries", ErrTokenizer, false, word(tokn+4, 21)},
		{"many merges", ErrTokenizer, false, word(tokn+8, math.MaxUint32)},
		{"end of text outside", ErrTokenizer, false, word(tokn+12, 20)},
		{"end of text with bytes", ErrTokenizer, false, word(tokn+12, 1)},
		{"entries overlap", ErrTokenizer, false, word(tokn+20+8, 0)},
		{"merge outside", ErrTokenizer, false, word(tokn+20+4*21, 20)},
		{"more clusters than tokens", ErrModel, false, word(modl+128, 21)},
		{"clusters without their tensors", ErrModel, false, word(modl+128, 0)},
		{"too many rows of bigrams", ErrModel, false, word(modl+132, 1<<24+1)},
		{"no rows of bigrams", ErrModel, false, word(modl+132, 0)},
		{"another number of rows of bigrams", ErrTensorShape, false, word(modl+132, 8)},
		{"reserved word in MODL", ErrReserved, false, word(modl+136, 1)},
		{"reserved in MODL", ErrReserved, false, word(modl+188, 1)},
		{"scales of bytes", ErrTensorBits, false, word(im.tensors["head_blocks.0"]+64, 1)},
		{"4-bit bytes", ErrTensorBits, false, word(im.tensors["head_order"]+56, 4)},
		{"rotation too large", ErrClusters, false, word(im.scales["head_rotation"], math.Float32bits(0x1p30))},
		{"negative row norm", ErrClusters, false, word(im.codes["head_bounds"], math.Float32bits(-1))},
		{"unused word of bounds", ErrClusters, false, word(im.codes["head_bounds"]+20, 1)},
		{"infinite weight", ErrClusters, false, word(im.codes["head_bounds"]+32, 0x7f800000)},
		{"lane outside", ErrClusters, false, word(im.codes["head_bounds"]+32+4*24+8, 24)},
		{"tiny step of a lane", ErrClusters, false, word(im.codes["head_bounds"]+32+4*24+8+120, math.Float32bits(0x1p-100))},
		{"cluster before the last", ErrClusters, false, word(im.codes["head_bounds"]+len(m.headBytes("head_bounds"))-8, 99)},
		{"id outside", ErrClusters, false, word(im.codes["head_order"]+8, 20)},
		{"id twice", ErrClusters, false, word(im.codes["head_order"], le.Uint32(im.bytes[im.codes["head_order"]+4:]))},
		{"ids twice, with the same sum and the same sum of squares", ErrClusters, false, func(b []byte) {
			for i := range 20 {
				at := im.codes["head_order"] + 4*i
				if id := slices.Index([]uint32{0, 4, 5}, le.Uint32(b[at:])); id >= 0 {
					le.PutUint32(b[at:], []uint32{1, 2, 6}[id])
				}
			}
		}},
		{"byte between tensors", ErrReserved, false, func(b []byte) { b[im.codes[norm]+4*24] = 1 }},
		{"no prompt", ErrGolden, false, word(gold, 0)},
		{"prompt longer than the context", ErrGolden, false, word(gold, 9)},
		{"no best tokens", ErrGolden, false, word(gold+4, 0)},
		{"prompt id", ErrGolden, false, word(gold+16, 20)},
		{"negative prompt id", ErrGolden, false, word(gold+16, math.MaxUint32)},
		{"best id", ErrGolden, false, word(gold+16+12, 20)},
		{"logit NaN", ErrGolden, false, word(gold+16+12+4, 0x7fc00000)},
		{"best tokens out of order", ErrGolden, false, word(gold+16+12+4, math.Float32bits(-1000))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := slices.Clone(im.bytes)
			c.change(b)
			if !c.keep {
				fixCRCs(b)
			}
			_, err := NewImage(b)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	t.Run("section CRC", func(t *testing.T) {
		b := slices.Clone(im.bytes)
		le.PutUint32(b[64+4:], 0)
		refixFileCRC(b)
		if _, err := NewImage(b); !errors.Is(err, ErrSectionCRC) {
			t.Error(err)
		}
	})
	t.Run("tensor CRC", func(t *testing.T) {
		b := slices.Clone(im.bytes)
		b[im.codes[qkv]] ^= 1
		refixSectionCRCs(b)
		if _, err := NewImage(b); !errors.Is(err, ErrTensorCRC) {
			t.Error(err)
		}
	})
}

// TestGoldenIsCompared changes what the golden claims, and what it is run on.
func TestGoldenIsCompared(t *testing.T) {
	m := smallModel(t)
	im := m.image(t, []int32{1, 2, 3})
	gold := im.sections["GOLD"][0]
	for name, change := range map[string]func([]byte){
		"digest": func(b []byte) { b[gold+8] ^= 1 },
		"prompt": func(b []byte) { le.PutUint32(b[gold+16:], 7) },
		"logit": func(b []byte) {
			at := gold + 16 + 12 + 4
			le.PutUint32(b[at:], math.Float32bits(math.Nextafter32(math.Float32frombits(le.Uint32(b[at:])), 1000)))
		},
		"a best token left out": func(b []byte) { copy(b[gold+28:gold+60], b[gold+36:gold+68]); copy(b[gold+60:], floatless(m, b)) },
		"weight": func(b []byte) { // a code of the head changes a logit
			b[im.codes["head"]] ^= 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := slices.Clone(im.bytes)
			change(b)
			fixCRCs(b)
			image, err := NewImage(b)
			if err != nil {
				t.Fatal(err)
			}
			defer image.Close()
			if err := Verify(image); !errors.Is(err, ErrDigest) {
				t.Errorf("%v, want %v", err, ErrDigest)
			}
		})
	}
}

// floatless is a last entry for the list of best tokens: the sixth best, which is in order but one too far.
func floatless(m *testModel, b []byte) []byte {
	logits := m.forward([]int32{1, 2, 3})
	sixth := referenceTop(logits[2*m.cfg.VocabSize:], 6)[5]
	return append(le.AppendUint32(nil, uint32(sixth.ID)), floatBytes(sixth.Logit)...)
}

func FuzzImage(f *testing.F) {
	for _, cfg := range []configs.Config{shape(3, 4, 1, 1, 2, 2, 0, 0), shape(4, 4, 1, 2, 2, 3, 2, 2)} {
		m := newTestModel(f, cfg, 1)
		f.Add(m.image(f, []int32{1}).bytes)
	}
	f.Add([]byte{})
	f.Add([]byte("CLM\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = tryImage(t, b)
		b = slices.Clone(b)
		if len(b) >= 64 {
			le.PutUint64(b[16:], uint64(len(b)))
		}
		fixCRCs(b)
		_ = tryImage(t, b)
	})
}

func TestSentinelsSayDifferentThings(t *testing.T) {
	seen := map[string]bool{}
	for status, err := range sentinels {
		if err.Error() == "" || seen[err.Error()] {
			t.Errorf("status %d: %q is empty or used twice", int(status), err)
		}
		seen[err.Error()] = true
	}
	if len(sentinels) < 31 {
		t.Errorf("%d sentinels", len(sentinels))
	}
	if err := failure(9999); err == nil || seen[err.Error()] {
		t.Errorf("an unknown status gives %v", err)
	}
}
