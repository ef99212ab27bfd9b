package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/clusters"
	"github.com/chiplm/chiplm/qat"
)

// testModel is a model of random weights, written as an image from docs/image.md alone.
type testModel struct {
	cfg      configs.Config
	tensors  []configs.Tensor
	matrices map[string]*qat.Matrix // quantised tensors
	floats   map[string][]float32   // norms and routers
	cos, sin []float32              // [context_length, d/2]
	byRows   bool                   // no tensor is stored transposed
	clusters *clusters.Clusters     // of the head; or nil
	tokn     []byte                 // the tokenizer section; nil: one that knows too few bytes to encode
	tracing  *Tracing               // of forward; or nil
}

// shape gives a configuration its fields in the order of the MODL section.
func shape(v, d, l, h, f, t, p, e int) configs.Config {
	return configs.Config{
		Name: "test", VocabSize: v, DModel: d, NLayers: l, NHeads: h, DFF: f, ContextLength: t, PLEDim: p, Experts: e,
		Activation: configs.ReLU, TieEmbeddings: true, AttentionScale: 1, RopeTheta: 10000, NormEps: 1e-6,
		Quant: configs.Quant{Weights: configs.WeightQuant{Bits: 4, Group: 64, Scale: configs.ScaleF32}},
	}
}

func newTestModel(tb testing.TB, cfg configs.Config, seed uint64) *testModel {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &testModel{cfg: cfg, tensors: cfg.Tensors(), matrices: map[string]*qat.Matrix{}, floats: map[string][]float32{}}
	for _, t := range m.tensors {
		w := make([]float32, t.Len())
		for i := range w {
			switch {
			case t.Class == configs.ClassNorm:
				w[i] = float32(1 + 0.2*rng.NormFloat64())
			case rng.IntN(200) == 0: // an outlier
				w[i] = float32(4 * rng.NormFloat64() / math.Sqrt(float64(t.Cols())))
			default:
				w[i] = float32(rng.NormFloat64() / math.Sqrt(float64(t.Cols())))
			}
		}
		if t.Quant.Bits == 32 {
			m.floats[t.Name] = w
			continue
		}
		for i := 0; i < min(t.Cols(), 40) && rng.IntN(2) == 0; i++ { // a zero group
			w[i] = 0
		}
		q, err := qat.Quantise(t.Quant, w, t.Rows(), t.Cols())
		if err != nil {
			tb.Fatal(err)
		}
		m.matrices[t.Name] = q
	}
	half := cfg.DModel / cfg.NHeads / 2
	for t := range cfg.ContextLength {
		for i := range half {
			angle := float64(t) * math.Pow(cfg.RopeTheta, -float64(i)/float64(half))
			m.cos = append(m.cos, float32(math.Cos(angle)))
			m.sin = append(m.sin, float32(math.Sin(angle)))
		}
	}
	return m
}

// transposed says whether the image stores a tensor transposed: down of models with a relu gate, and in the image of
// byRows of none.
func (m *testModel) transposed(t configs.Tensor) bool {
	return strings.HasSuffix(t.Name, ".down") && m.cfg.Activation == configs.ReLU && !m.byRows
}

// transpose lays a matrix out by columns of blocks of rows, from docs/image.md alone: code by code.
func transpose(q *qat.Matrix, block int) (codes, scales []byte, stride int) {
	perBlock := 128 / q.Spec.Bits
	stride = (block + perBlock - 1) / perBlock * 16
	codes = make([]byte, q.Rows/block*q.Cols*stride)
	groups := qat.Groups(q.Spec, q.Cols)
	for b := range q.Rows / block {
		for c := range q.Cols {
			for r := range block {
				code := byte(q.Codes[(b*block+r)*q.Cols+c]) & byte(1<<q.Spec.Bits-1)
				codes[(b*q.Cols+c)*stride+r/perBlock*16+r%16] |= code << (r % perBlock / 16 * q.Spec.Bits)
			}
		}
	}
	all := q.PackScales()
	size := len(all) / (q.Rows * groups)
	for b := range q.Rows / block {
		for g := range groups {
			for r := range block {
				at := ((b*block+r)*groups + g) * size
				scales = append(scales, all[at:at+size]...)
			}
		}
	}
	return codes, scales, stride
}

// cluster makes the image's head one that can be read in part.
func (m *testModel) cluster(tb testing.TB, n int) {
	tb.Helper()
	c, err := clusters.Make(m.head(), clusters.Options{Count: n, Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	m.clusters = c
	m.matrices["head_rotation"] = c.Rotation
}

// head is the quantised head.
func (m *testModel) head() *qat.Matrix {
	if q := m.matrices[configs.Head]; q != nil {
		return q
	}
	return m.matrices[configs.TokenEmbedding]
}

// headTensors are the tensors of the clusters, in their order.
func (m *testModel) headTensors() []configs.Tensor {
	if m.clusters == nil {
		return nil
	}
	v, d := m.cfg.VocabSize, m.cfg.DModel
	rotation := configs.WeightQuant{Bits: 8, Scale: configs.ScaleF32}
	raw := configs.WeightQuant{Bits: 8}
	return []configs.Tensor{
		{Name: "head_rotation", Shape: []int{d, d}, Quant: rotation},
		{Name: "head_bounds", Shape: []int{len(m.headBytes("head_bounds"))}, Quant: raw},
		{Name: "head_blocks.0", Shape: []int{v, 16}, Quant: raw},
		{Name: "head_blocks.1", Shape: []int{v, 16}, Quant: raw},
		{Name: "head_order", Shape: []int{(v + 3) / 4, 16}, Quant: raw},
	}
}

// headBytes is what docs/image.md puts into such a tensor; nil for one that holds numbers.
func (m *testModel) headBytes(name string) []byte {
	c := m.clusters
	if c == nil {
		return nil
	}
	switch name {
	case "head_blocks.0":
		return slices.Clone(c.Levels[0].Blocks)
	case "head_blocks.1":
		return slices.Clone(c.Levels[1].Blocks)
	case "head_order":
		var b []byte
		for _, id := range c.Order {
			b = le.AppendUint32(b, uint32(id))
		}
		return b
	case "head_bounds":
		b := floatBytes(c.RowNorm, c.NormStep, c.BoxSteps[0], c.BoxSteps[1], c.BoxSteps[2], 0, 0, 0)
		b = append(b, floatBytes(c.Weights...)...)
		for _, l := range c.Levels {
			b = append(b, floatBytes(l.NormStep, 0)...)
			for _, d := range l.Dims {
				b = le.AppendUint32(b, uint32(d))
			}
			b = append(append(b, floatBytes(l.Steps[:]...)...), floatBytes(l.Weights...)...)
		}
		for _, x := range c.Boxes {
			b = append(b, byte(x.Low[0]), byte(x.Low[1]), byte(x.Low[2]), byte(x.High[0]), byte(x.High[1]), byte(x.High[2]), x.Norm, 0)
		}
		for _, f := range c.First {
			b = le.AppendUint32(b, uint32(f))
		}
		return b
	}
	return nil
}

// field is a place in an image: where the tests of hostile images strike.
type field struct {
	name   string
	offset int
	size   int
}

// testImage is the bytes of an image and where everything is.
type testImage struct {
	bytes    []byte
	sections map[string][2]int // offset, bytes
	tensors  map[string]int    // offset of the entry in the table
	codes    map[string]int    // offset of the codes
	scales   map[string]int    // offset of the scales
	fields   []field
}

var le = binary.LittleEndian

func align64(n int) int { return (n + 63) / 64 * 64 }

func floatBytes(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = le.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// image writes the model with a golden of the given prompt.
func (m *testModel) image(tb testing.TB, prompt []int32) *testImage {
	tb.Helper()
	cfg := &m.cfg
	out := &testImage{sections: map[string][2]int{}, tensors: map[string]int{}, codes: map[string]int{},
		scales: map[string]int{}}

	// MODL
	var modl []byte
	for _, v := range []int{cfg.VocabSize, cfg.DModel, cfg.NLayers, cfg.NHeads, cfg.DFF, cfg.ContextLength, cfg.PLEDim,
		max(cfg.Experts, 1)} {
		modl = le.AppendUint32(modl, uint32(v))
	}
	var act, flags uint32
	if cfg.Activation == configs.SwiGLU {
		act = 1
	}
	if cfg.TieEmbeddings {
		flags |= 1
	}
	if cfg.QKNorm {
		flags |= 2
	}
	modl = le.AppendUint32(le.AppendUint32(modl, act), flags)
	ce, ct, ch := m.pleScales()
	modl = append(modl, floatBytes(float32(cfg.NormEps), m.cfg.ScoreScale(), ce, ct, ch)...)
	modl = le.AppendUint32(modl, uint32(len(m.tensors)+len(m.headTensors())))
	for i := range 64 {
		modl = append(modl, byte(i))
	}
	if m.clusters != nil {
		modl = le.AppendUint32(modl, uint32(m.clusters.Count()))
	} else {
		modl = le.AppendUint32(modl, 0)
	}
	modl = le.AppendUint32(modl, uint32(cfg.NgramRows))
	modl = append(modl, make([]byte, 56)...)

	// DATA, in an order other than the table's, and the table
	tensors := append(m.tensors[:len(m.tensors):len(m.tensors)], m.headTensors()...)
	data, table := []byte{}, make([]byte, 128*len(tensors))
	for n := range tensors {
		i := len(tensors) - 1 - n
		t := tensors[i]
		entry := table[128*i:]
		copy(entry[:47], t.Name)
		var codes, scales []byte
		var stride, scale int
		if raw := m.headBytes(t.Name); raw != nil {
			stride = (t.Cols() + 15) / 16 * 16
			codes = append(raw, make([]byte, t.Rows()*stride-len(raw))...)
		} else if q := m.matrices[t.Name]; q != nil {
			codes, scales = q.PackCodes(), q.PackScales()
			stride = qat.Stride(t.Quant, t.Cols())
			if m.transposed(t) {
				codes, scales, stride = transpose(q, cfg.DModel)
				le.PutUint32(entry[112:], uint32(cfg.DModel))
			}
			scale = map[configs.ScaleType]int{configs.ScaleF32: 1, configs.ScaleF16: 2}[t.Quant.Scale]
		} else {
			stride = (t.Cols() + 3) / 4 * 16
			for r := range t.Rows() {
				row := floatBytes(m.floats[t.Name][r*t.Cols() : (r+1)*t.Cols()]...)
				codes = append(codes, append(row, make([]byte, stride-len(row))...)...)
			}
		}
		for j, v := range []int{t.Rows(), t.Cols(), t.Quant.Bits, t.Quant.Group, scale, i % 3} {
			le.PutUint32(entry[48+4*j:], uint32(v))
		}
		le.PutUint64(entry[72:], uint64(len(data))) // made absolute below
		le.PutUint64(entry[80:], uint64(len(codes)))
		data = append(data, append(codes, make([]byte, align64(len(codes))-len(codes))...)...)
		if len(scales) > 0 {
			le.PutUint64(entry[88:], uint64(len(data)))
			le.PutUint64(entry[96:], uint64(len(scales)))
			data = append(data, append(scales, make([]byte, align64(len(scales))-len(scales))...)...)
		}
		le.PutUint32(entry[104:], uint32(stride))
	}

	// TOKN: end-of-text, then one entry of a byte or two for each other id
	entries := uint32(cfg.VocabSize)
	offsets, text := le.AppendUint32(nil, 0), []byte{}
	for id := range cfg.VocabSize {
		if id > 0 {
			text = append(text, byte(id))
		}
		if id > 255 {
			text = append(text, byte(id>>8))
		}
		offsets = le.AppendUint32(offsets, uint32(len(text)))
	}
	var tokn []byte
	for _, v := range []uint32{1, entries, 1, 0, uint32(len(text))} {
		tokn = le.AppendUint32(tokn, v)
	}
	tokn = append(tokn, offsets...)
	for range 3 {
		tokn = le.AppendUint32(tokn, entries-1)
	}
	tokn = append(tokn, text...)
	if m.tokn != nil {
		tokn = m.tokn
	}

	// GOLD, from the reference
	logits := m.forward(prompt)
	digest, top := referenceDigest(prompt, logits, cfg.VocabSize), referenceTop(logits[len(logits)-cfg.VocabSize:], 5)
	gold := le.AppendUint32(le.AppendUint32(nil, uint32(len(prompt))), uint32(len(top)))
	gold = le.AppendUint64(gold, digest)
	for _, id := range prompt {
		gold = le.AppendUint32(gold, uint32(id))
	}
	for _, t := range top {
		gold = append(le.AppendUint32(gold, uint32(t.ID)), floatBytes(t.Logit)...)
	}

	sections := []struct {
		name  string
		bytes []byte
	}{
		{"MODL", modl}, {"CONF", []byte("name: test\n")}, {"TENS", table},
		{"ROPE", append(floatBytes(m.cos...), floatBytes(m.sin...)...)}, {"TOKN", tokn}, {"GOLD", gold}, {"DATA", data},
	}
	b := make([]byte, 64+32*len(sections))
	for _, s := range sections {
		b = append(b, make([]byte, align64(len(b))-len(b))...)
		out.sections[s.name] = [2]int{len(b), len(s.bytes)}
		b = append(b, s.bytes...)
	}
	b = append(b, make([]byte, align64(len(b))-len(b)+64)...)
	copy(b, "CLM\x00")
	for off, v := range map[int]uint32{4: 2, 8: 64, 24: uint32(len(sections))} {
		le.PutUint32(b[off:], v)
	}
	le.PutUint64(b[16:], uint64(len(b)))
	for i, s := range sections {
		entry := b[64+32*i:]
		copy(entry, s.name)
		le.PutUint64(entry[8:], uint64(out.sections[s.name][0]))
		le.PutUint64(entry[16:], uint64(len(s.bytes)))
	}
	first, start := out.sections["TENS"][0], uint64(out.sections["DATA"][0])
	for i, t := range tensors {
		at := first + 128*i
		out.tensors[t.Name] = at
		for _, f := range []int{72, 88} {
			if le.Uint64(b[at+f+8:]) > 0 {
				le.PutUint64(b[at+f:], le.Uint64(b[at+f:])+start)
			}
		}
		out.codes[t.Name], out.scales[t.Name] = int(le.Uint64(b[at+72:])), int(le.Uint64(b[at+88:]))
	}
	out.bytes = b
	out.listFields()
	fixCRCs(b)
	return out
}

// listFields names every field of the header, the tables and the small sections.
func (im *testImage) listFields() {
	add := func(name string, offset, size int) { im.fields = append(im.fields, field{name, offset, size}) }
	for i, f := range []struct {
		name string
		size int
	}{{"magic", 4}, {"version", 4}, {"header bytes", 4}, {"flags", 4}, {"file bytes", 8}, {"sections", 4}, {"crc", 4}} {
		add("header "+f.name, []int{0, 4, 8, 12, 16, 24, 28}[i], f.size)
	}
	add("header reserved", 32, 4)
	for i := range 7 {
		for j, size := range []int{4, 4, 8, 8, 8} {
			add(fmt.Sprintf("section %d field %d", i, j), 64+32*i+[]int{0, 4, 8, 16, 24}[j], size)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 47} {
		add(fmt.Sprintf("MODL word %d", i), im.sections["MODL"][0]+4*i, 4)
	}
	for _, name := range []string{"token_embedding", "ngram_table", "ple_projection_norm", "layers.0.qkv", "layers.1.router",
		"layers.1.down", "output_norm", "head", "head_rotation", "head_bounds", "head_blocks.0", "head_order"} {
		at, ok := im.tensors[name]
		if !ok {
			continue
		}
		add(name+" first codes", im.codes[name], 4)
		if im.scales[name] > 0 {
			add(name+" first scale", im.scales[name], 4)
		}
		add(name+" name", at, 4)
		for _, off := range []int{44, 48, 52, 56, 60, 64, 68, 104, 108, 112, 116, 124} {
			add(fmt.Sprintf("%s word at %d", name, off), at+off, 4)
		}
		for _, off := range []int{72, 80, 88, 96} {
			add(fmt.Sprintf("%s word at %d", name, off), at+off, 8)
		}
	}
	if at, ok := im.codes["head_bounds"]; ok {
		for i := range 5150 / 4 {
			if i < 100 || i%17 == 0 {
				add(fmt.Sprintf("head_bounds word %d", i), at+4*i, 4)
			}
		}
	}
	for _, s := range []string{"TOKN", "GOLD", "ROPE"} {
		for i := range min(im.sections[s][1]/4, 24) {
			add(fmt.Sprintf("%s word %d", s, i), im.sections[s][0]+4*i, 4)
		}
	}
}

// fixCRCs makes every CRC right that can be found without trusting the image, so that deeper checks are reached.
func fixCRCs(b []byte) {
	if len(b) < 64 {
		return
	}
	span := func(offset, n uint64) []byte {
		if offset > uint64(len(b)) || n > uint64(len(b))-offset {
			return nil
		}
		return b[offset : offset+n]
	}
	sections := min(uint64(le.Uint32(b[24:])), 7)
	for i := range sections {
		entry := span(64+32*i, 32)
		if entry == nil || !bytes.Equal(entry[:4], []byte("TENS")) {
			continue
		}
		table := span(le.Uint64(entry[8:]), le.Uint64(entry[16:]))
		for ; len(table) >= 128; table = table[128:] {
			crc := crc32.ChecksumIEEE(span(le.Uint64(table[72:]), le.Uint64(table[80:])))
			crc = crc32.Update(crc, crc32.IEEETable, span(le.Uint64(table[88:]), le.Uint64(table[96:])))
			le.PutUint32(table[108:], crc)
		}
	}
	refixSectionCRCs(b)
}

// refixSectionCRCs makes the CRCs of sections and file right, and leaves those of tensors.
func refixSectionCRCs(b []byte) {
	for i := range min(int(le.Uint32(b[24:])), 7) {
		if len(b) < 64+32*(i+1) {
			break
		}
		entry := b[64+32*i:]
		offset, n := le.Uint64(entry[8:]), le.Uint64(entry[16:])
		if offset <= uint64(len(b)) && n <= uint64(len(b))-offset {
			le.PutUint32(entry[4:], crc32.ChecksumIEEE(b[offset:offset+n]))
		}
	}
	refixFileCRC(b)
}

func refixFileCRC(b []byte) {
	le.PutUint32(b[28:], 0)
	le.PutUint32(b[28:], crc32.ChecksumIEEE(b))
}

// randomIDs is n ids below v.
func randomIDs(n, v int, seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 2))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(v))
	}
	return ids
}
