package image

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// tiny is a model with every kind of tensor: 2, 4, 8 and 32 bits, both scale types, short last groups, experts.
func tiny() *configs.Config {
	c, err := configs.Parse("tiny.yaml", []byte(`name: tiny
vocab_size: 257
d_model: 36
n_layers: 2
n_heads: 2
d_ff: 70
context_length: 5
ple_dim: 6
tie_embeddings: false
activation: relu
experts: 2
qk_norm: true
quant:
  weights: {bits: 4, group: 32, scale: f32}
  classes:
    ple_table: {bits: 2, scale: f16}
    embedding: {bits: 8, group: 0}
train: {batch_tokens: 20, micro_batch: 4}
`))
	if err != nil {
		panic(err)
	}
	return c
}

// setCode packs one code; written from the table of docs/image.md.
func setCode(codes []byte, stride, bits, row, col, code int) {
	perBlock := 128 / bits
	at := row*stride + col/perBlock*16 + col%16
	shift := col % perBlock / 16 * bits
	codes[at] |= byte(code&(1<<bits-1)) << shift
}

// testModel fills a model with random codes, and returns the codes it chose by tensor name.
func testModel(cfg *configs.Config, seed uint64) (*Model, map[string][]int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	text, err := cfg.YAML()
	if err != nil {
		panic(err)
	}
	m := &Model{Sizes: SizesOf(cfg), Config: text, Rope: Rope(cfg)}
	chosen := map[string][]int{}
	for i, w := range cfg.Tensors() {
		t := Tensor{
			Name: w.Name, Rows: w.Rows(), Cols: w.Cols(), Bits: w.Quant.Bits, Group: w.Quant.Group,
			ScaleType: ScaleTypeOf(w.Quant), Tier: Tier(i % Tiers), Block: w.Block,
		}
		if t.Bits == 32 {
			row := make([]float32, t.Stride()/4)
			for range t.Rows {
				for c := range t.Cols {
					row[c] = rng.Float32()
				}
				t.Codes = append(t.Codes, floats(row)...)
			}
		} else {
			t.Codes = make([]byte, t.codesBytes())
			top := 1<<(t.Bits-1) - 1
			for r := range t.Rows {
				for c := range t.Cols {
					q := rng.IntN(2*top+1) - top
					chosen[t.Name] = append(chosen[t.Name], q)
					if t.Block > 0 { // column c of its block
						setCode(t.Codes, t.Stride(), t.Bits, r/t.Block*t.Cols+c, r%t.Block, q)
					} else {
						setCode(t.Codes, t.Stride(), t.Bits, r, c, q)
					}
				}
			}
			for range t.Rows * t.Groups() {
				if t.ScaleType == ScaleF16 {
					t.Scales = le.AppendUint16(t.Scales, uint16(rng.IntN(0x7c00)))
				} else {
					t.Scales = le.AppendUint32(t.Scales, math.Float32bits(rng.Float32()))
				}
			}
		}
		m.Tensors = append(m.Tensors, t)
	}
	m.Sizes.TokenizerHash[3], m.Sizes.ModelHash[5] = 9, 8
	m.Tokenizer = testTokenizer()
	m.Golden = Golden{Prompt: []uint32{0, 1, 2}, Digest: 0x1122334455667788, Top: []Scored{{4, 2}, {1, 1.5}, {2, 1.5}}}
	return m, chosen
}

// testTokenizer: end-of-text, a, b, ab, aba.
func testTokenizer() []byte {
	var b []byte
	for _, v := range []uint32{1, 5, 2, 0, 7, 0, 0, 1, 2, 4, 7, 1, 2, 3, 3, 1, 4} {
		b = le.AppendUint32(b, v)
	}
	return append(b, "abababa"...)
}

func encode(t testing.TB, m *Model) []byte {
	t.Helper()
	b, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// firstFailure is the first check that fails, nil if all pass.
func firstFailure(b []byte) error {
	_, results, err := Check(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// reseal computes all checksums of a changed image anew, as far as its tables can be followed.
func reseal(b []byte) {
	if len(b) < HeaderBytes+len(sectionNames)*SectionBytes {
		return
	}
	section := func(i int) []byte {
		e := b[HeaderBytes+i*SectionBytes:]
		off, n := le.Uint64(e[8:]), le.Uint64(e[16:])
		if off > uint64(len(b)) || n > uint64(len(b))-off {
			return nil
		}
		return b[off : off+n]
	}
	for e := section(2); len(e) >= TensorBytes; e = e[TensorBytes:] {
		var c uint32
		for _, at := range []int{72, 88} {
			off, n := le.Uint64(e[at:]), le.Uint64(e[at+8:])
			if off > uint64(len(b)) || n > uint64(len(b))-off {
				continue
			}
			c = crc32.Update(c, crc32.IEEETable, b[off:off+n])
		}
		le.PutUint32(e[108:], c)
	}
	for i := range sectionNames {
		le.PutUint32(b[HeaderBytes+i*SectionBytes+4:], crc32.ChecksumIEEE(section(i)))
	}
	le.PutUint32(b[28:], 0)
	le.PutUint32(b[28:], crc32.ChecksumIEEE(b))
}

func TestRoundTrip(t *testing.T) {
	cfg := tiny()
	m, chosen := testModel(cfg, 1)
	b := encode(t, m)
	if err := firstFailure(b); err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want := m.Sizes
	if !reflect.DeepEqual(f.Sizes, want) {
		t.Errorf("sizes\n%+v\n%+v", f.Sizes, want)
	}
	if !reflect.DeepEqual(f.Golden, m.Golden) || !reflect.DeepEqual(f.Rope, m.Rope) ||
		!bytes.Equal(f.Config, m.Config) || !bytes.Equal(f.Tokenizer, m.Tokenizer) {
		t.Error("golden, rope, config or tokenizer changed")
	}
	for i := range m.Tensors {
		in, out := m.Tensors[i], f.Tensors[i]
		if !bytes.Equal(in.Codes, out.Codes) || !bytes.Equal(in.Scales, out.Scales) || in.Tier != out.Tier {
			t.Errorf("%s changed", in.Name)
		}
		if out.CodesOffset%Align != 0 || out.ScalesOffset%Align != 0 {
			t.Errorf("%s at %d and %d: not aligned", in.Name, out.CodesOffset, out.ScalesOffset)
		}
		for n, q := range chosen[in.Name] {
			if got := out.Code(n/out.Cols, n%out.Cols); got != q {
				t.Fatalf("%s[%d] = %d, packed %d", in.Name, n, got, q)
			}
		}
	}
	if again := encode(t, &f.Model); !bytes.Equal(again, b) {
		t.Error("encoding what was read gives other bytes")
	}
}

// Value must be code times the scale of its group.
func TestValue(t *testing.T) {
	m, chosen := testModel(tiny(), 2)
	for i := range m.Tensors {
		x := &m.Tensors[i]
		row := make([]float32, x.Cols)
		for r := range x.Rows {
			x.Row(row, r)
			for c, v := range row {
				if x.Bits == 32 {
					if v < 0 || v >= 1 {
						t.Fatalf("%s: %v was not written", x.Name, v)
					}
					continue
				}
				g := 0
				if x.Group > 0 {
					g = c / x.Group
				}
				if want := float32(chosen[x.Name][r*x.Cols+c]) * x.Scale(r, g); v != want {
					t.Fatalf("%s[%d,%d] = %v, want %v", x.Name, r, c, v, want)
				}
			}
		}
	}
}

func TestHalfToFloat(t *testing.T) {
	for h, want := range map[uint16]float32{
		0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3c00: 1, 0x3555: 0.33325195, 0x7bff: 65504, 0xc000: -2,
		0x7c00: float32(math.Inf(1)),
	} {
		if got := halfToFloat(h); got != want {
			t.Errorf("%#04x = %v, want %v", h, got, want)
		}
	}
	if v := halfToFloat(0x7e00); v == v {
		t.Error("0x7e00 is not a NaN")
	}
}

func TestRefusals(t *testing.T) {
	m, _ := testModel(tiny(), 3)
	good := encode(t, m)
	f, err := Read(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{}
	for _, s := range f.Sections {
		at[s.Name] = s.Offset
	}
	put := func(off int64, v uint32) func([]byte) { return func(b []byte) { le.PutUint32(b[off:], v) } }
	entry := func(name string, field int64) int64 {
		for i := range f.Tensors {
			if f.Tensors[i].Name == name {
				return at["TENS"] + int64(i)*TensorBytes + field
			}
		}
		t.Fatalf("no tensor %s", name)
		return 0
	}
	emb, ple, gate := f.Tensor("token_embedding"), f.Tensor("ple_table"), f.Tensor("layers.0.gate")
	cases := []struct {
		name   string
		want   error
		sealed bool // checksums are made right again, so that the change itself must be seen
		change func(b []byte)
	}{
		{"magic", ErrMagic, true, func(b []byte) { b[3] = 1 }},
		{"version", ErrVersion, true, put(4, Version+1)},
		{"header bytes", ErrHeaderBytes, true, put(8, 128)},
		{"flags", ErrFlags, true, put(12, 1)},
		{"header reserve", ErrReserved, true, put(60, 1)},
		{"file bytes", ErrFileBytes, true, put(16, 1)},
		{"bit in data", ErrFileCRC, false, func(b []byte) { b[emb.CodesOffset] ^= 1 }},
		{"bit in padding", ErrFileCRC, false, func(b []byte) { b[len(b)-1] ^= 1 }},
		{"sections", ErrSections, true, put(24, 6)},
		{"section name", ErrSections, true, func(b []byte) { b[64] = 'X' }},
		{"section order", ErrSections, true, func(b []byte) { copy(b[64:], good[96:128]); copy(b[96:], good[64:96]) }},
		{"section offset", ErrSections, true, put(64+8, 321)},
		{"section overlap", ErrSections, true, put(96+8, uint32(at["MODL"]))},
		{"section past end", ErrSections, true, put(64+6*32+20, 1)},
		{"no tail", ErrSections, true, put(64+6*32+16, uint32(int64(len(good))-at["DATA"]))},
		{"section reserve", ErrReserved, true, put(64+24, 1)},
		{"activation", ErrSizes, true, put(at["MODL"]+32, 2)},
		{"model bits", ErrSizes, true, put(at["MODL"]+36, 4)},
		{"vocabulary 0", ErrSizes, true, put(at["MODL"], 0)},
		{"huge d_model", ErrSizes, true, put(at["MODL"]+4, 1<<31)},
		{"heads", ErrSizes, true, put(at["MODL"]+12, 5)},
		{"eps NaN", ErrSizes, true, put(at["MODL"]+40, 0x7fc00000)},
		{"scale 0", ErrSizes, true, put(at["MODL"]+44, 0)},
		{"no c_t", ErrSizes, true, put(at["MODL"]+52, 0)},
		{"another vocabulary", ErrTensors, true, put(at["MODL"], 258)},
		{"tensor count", ErrTensors, true, put(at["MODL"]+60, 3)},
		{"tensor name", ErrTensors, true, func(b []byte) { b[entry("ple_table", 0)] = 'q' }},
		{"tensor name tail", ErrTensors, true, func(b []byte) { b[entry("ple_table", 40)] = 'q' }},
		{"bits", ErrTensors, true, put(entry("ple_table", 56), 3)},
		{"norm in 8 bits", ErrTensors, true, func(b []byte) {
			e := entry("output_norm", 0)
			le.PutUint32(b[e+56:], 8)
			le.PutUint32(b[e+64:], 1)
		}},
		{"group", ErrTensors, true, put(entry("ple_table", 60), 16)},
		{"scale type", ErrTensors, true, put(entry("ple_table", 64), 0)},
		{"tier", ErrTensors, true, put(entry("ple_table", 68), 3)},
		{"stride", ErrTensors, true, put(entry("ple_table", 104), 32)},
		{"codes offset", ErrTensors, true, put(entry("ple_table", 72), uint32(ple.CodesOffset+16))},
		{"codes before data", ErrTensors, true, put(entry("ple_table", 72), 0)},
		{"codes past data", ErrTensors, true, put(entry("ple_table", 76), 1)},
		{"scales bytes", ErrTensors, true, put(entry("ple_table", 96), 2)},
		{"tensor reserve", ErrReserved, true, put(entry("ple_table", 124), 1)},
		{"overlap", ErrTensors, true, put(entry("ple_table", 72), uint32(emb.CodesOffset))},
		{"padding", ErrPadding, true, func(b []byte) { b[len(b)-1] = 1 }},
		{"code -2", ErrCodes, true, func(b []byte) { b[ple.CodesOffset] = b[ple.CodesOffset]&^3 | 2 }},
		{"code -8", ErrCodes, true, func(b []byte) { b[gate.CodesOffset+1] = b[gate.CodesOffset+1]&15 | 0x80 }},
		{"code -128", ErrCodes, true, func(b []byte) { b[emb.CodesOffset] = 0x80 }},
		{"code past the row", ErrCodes, true, func(b []byte) { b[emb.CodesOffset+47] = 1 }},
		{"norm infinite", ErrCodes, true, put(f.Tensor("output_norm").CodesOffset, 0x7f800000)},
		{"scale infinite", ErrScales, true, func(b []byte) { le.PutUint16(b[ple.ScalesOffset:], 0x7c00) }},
		{"scale negative", ErrScales, true, put(emb.ScalesOffset, 0x80000000)},
		{"rope", ErrRope, true, put(at["ROPE"], 0)},
		{"tokenizer kind", ErrTokenizer, true, put(at["TOKN"], 9)},
		{"tokenizer entries", ErrTokenizer, true, put(at["TOKN"]+4, 6)},
		{"tokenizer offset", ErrTokenizer, true, put(at["TOKN"]+24, 3)},
		{"tokenizer merge", ErrTokenizer, true, put(at["TOKN"]+20+24+8, 4)},
		{"tokenizer merge id", ErrTokenizer, true, put(at["TOKN"]+20+24+8, 4000)},
		{"golden length", ErrGolden, true, put(at["GOLD"], 4)},
		{"golden id", ErrGolden, true, put(at["GOLD"]+16, 257)},
		{"golden order", ErrGolden, true, put(at["GOLD"]+16+12+12, 0x40400000)},
		{"configuration", ErrConfig, true, func(b []byte) { b[at["CONF"]] = 0xff }},
		{"configuration of another model", ErrConfig, true, put(at["MODL"]+40, 0x3f800000)},
		{"configuration of other bits", ErrConfig, true, put(entry("token_embedding", 60), 64)},
		{"norm subnormal", ErrCodes, true, put(f.Tensor("output_norm").CodesOffset, 1)},
	}
	for _, c := range cases {
		b := bytes.Clone(good)
		c.change(b)
		if c.sealed {
			reseal(b)
		}
		if err := firstFailure(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for _, n := range []int{0, 1, 63} {
		if err := firstFailure(good[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := firstFailure(good[:len(good)-64]); !errors.Is(err, ErrFileBytes) {
		t.Errorf("cut file: %v", err)
	}
}

// An image may say that it has no tokenizer; then nothing else may stand in the section.
func TestNoTokenizer(t *testing.T) {
	m, _ := testModel(tiny(), 4)
	for _, c := range []struct {
		words [6]uint32 // kind, entries, merges, end-of-text, bytes, the offset
		good  bool
	}{
		{[6]uint32{0, 0, 0, 256, 0, 0}, true}, {[6]uint32{0, 0, 0, 257, 0, 0}, false}, {[6]uint32{0, 1, 0, 0, 0, 0}, false},
		{[6]uint32{0, 0, 1, 0, 0, 0}, false}, {[6]uint32{0, 0, 0, 0, 1, 0}, false}, {[6]uint32{0, 0, 0, 0, 0, 1}, false},
		{[6]uint32{1, 0, 0, 0, 0, 0}, false}, {[6]uint32{2, 0, 0, 0, 0, 0}, false},
	} {
		m.Tokenizer = nil
		for _, v := range c.words {
			m.Tokenizer = le.AppendUint32(m.Tokenizer, v)
		}
		if err := firstFailure(encode(t, m)); c.good && err != nil || !c.good && !errors.Is(err, ErrTokenizer) {
			t.Errorf("%v: %v", c.words, err)
		}
	}
}

// A wrong checksum further in is reported as such once those around it are right.
func TestInnerChecksums(t *testing.T) {
	m, _ := testModel(tiny(), 4)
	good := encode(t, m)
	b := bytes.Clone(good)
	b[HeaderBytes+4] ^= 1
	sealFile(b)
	if err := firstFailure(b); !errors.Is(err, ErrSectionCRC) {
		t.Errorf("section: %v", err)
	}
	b = bytes.Clone(good)
	data := HeaderBytes + 6*SectionBytes
	from := le.Uint64(b[data+8:])
	n := le.Uint64(b[data+16:])
	b[from] ^= 1
	le.PutUint32(b[data+4:], crc32.ChecksumIEEE(b[from:from+n]))
	sealFile(b)
	if err := firstFailure(b); !errors.Is(err, ErrTensorCRC) {
		t.Errorf("tensor: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(m *Model){
		"missing tensor":  func(m *Model) { m.Tensors = m.Tensors[1:] },
		"short codes":     func(m *Model) { m.Tensors[0].Codes = m.Tensors[0].Codes[1:] },
		"short scales":    func(m *Model) { m.Tensors[0].Scales = nil },
		"wrong bits":      func(m *Model) { m.Tensors[0].Bits = 5 },
		"wrong tier":      func(m *Model) { m.Tensors[0].Tier = 7 },
		"wrong sizes":     func(m *Model) { m.Sizes.NHeads = 0 },
		"no golden":       func(m *Model) { m.Golden.Prompt = nil },
		"no rotary table": func(m *Model) { m.Rope = nil },
	} {
		m, _ := testModel(tiny(), 5)
		change(m)
		if _, err := Encode(m); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	m, _ := testModel(tiny(), 6)
	dir := t.TempDir()
	path := filepath.Join(dir, "model.clm")
	if err := WriteFile(path, m); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err != nil {
		t.Fatal(err)
	}
	m.Golden.Prompt = nil
	if err := WriteFile(path, m); err == nil {
		t.Fatal("a bad model was written")
	}
	if _, err := Open(path); err != nil {
		t.Errorf("a failed write harmed the old file: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a folder was opened")
	}
}

// The tables at position 0, and one angle worked by hand: position 3, pair 1 of a head of 18 has 3 * 10000^(-2/18).
func TestRope(t *testing.T) {
	cfg := tiny()
	r := Rope(cfg)
	if r[0] != 1 || r[len(r)/2] != 0 {
		t.Errorf("position 0: %v %v", r[0], r[len(r)/2])
	}
	const angle = 3 * 0.35938136638046276 // 10000^(-1/9)
	if got := float64(r[3*9+1]); math.Abs(got-math.Cos(angle)) > 1e-7 {
		t.Errorf("cosine %v, want %v", got, math.Cos(angle))
	}
}

func FuzzRead(f *testing.F) {
	m, _ := testModel(tiny(), 7)
	addHead(m, 2)
	b, err := Encode(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:70])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Read(bytes.NewReader(b), int64(len(b)))
		reseal(b)
		_ = firstFailure(b)
	})
}

// FuzzSealed changes a good image and seals it again, so that the changes reach past the checksums.
func FuzzSealed(f *testing.F) {
	m, _ := testModel(tiny(), 8)
	addHead(m, 5)
	good, err := Encode(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), uint32(1), uint32(16), uint64(1))
	f.Add(uint32(320), uint32(0xffffffff), uint32(340), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, at1, v1, at2 uint32, v2 uint64) {
		b := bytes.Clone(good)
		le.PutUint32(b[at1%uint32(len(b)-8):], v1)
		le.PutUint64(b[at2%uint32(len(b)-8):], v2)
		reseal(b)
		if file, err := Read(bytes.NewReader(b), int64(len(b))); err == nil {
			for i := range file.Tensors {
				file.Tensors[i].Row(make([]float32, file.Tensors[i].Cols), 0)
			}
		}
		_ = firstFailure(b)
	})
}
