package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// tiny is a shape with more than one of everything.
var tiny = Shape{Name: "tiny", DModel: 64, DFF: 96, Layers: 2, Heads: 4, Vocab: 300, Context: 40, Group: 32}

// contents is a model file, read as the public description of the format says. Matrices are dequantised.
type contents struct {
	dim, hidden, layers, heads, kvHeads, vocab, context, group int

	attentionNorm, ffnNorm   [][]float64
	outputNorm, embedding    []float64
	q, k, v, o               [][]float64
	gate, down, up           [][]float64
	scales                   int // read in all
	magic, version, tiedHead int
}

// readContents reads a model file of a tied head to its last byte.
func readContents(b []byte) (*contents, error) {
	if len(b) < headerBytes {
		return nil, io.ErrUnexpectedEOF
	}
	var c contents
	for i, field := range []*int{&c.magic, &c.version, &c.dim, &c.hidden, &c.layers, &c.heads, &c.kvHeads, &c.vocab, &c.context} {
		*field = int(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	c.tiedHead = int(b[36])
	c.group = int(int32(binary.LittleEndian.Uint32(b[37:])))
	rest := b[headerBytes:]
	var err error
	take := func(n int) []byte {
		if n > len(rest) {
			err = io.ErrUnexpectedEOF
			return make([]byte, n)
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}
	floats := func(n int) []float64 {
		out := make([]float64, n)
		for i, raw := 0, take(4*n); i < n; i++ {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
		return out
	}
	matrix := func(n int) []float64 {
		codes := take(n)
		scales := floats(n / c.group)
		c.scales += len(scales)
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(int8(codes[i])) * scales[i/c.group]
		}
		return out
	}
	each := func(read func(int) []float64, n int) (all [][]float64) {
		for range c.layers {
			all = append(all, read(n))
		}
		return all
	}
	c.attentionNorm, c.ffnNorm, c.outputNorm = each(floats, c.dim), each(floats, c.dim), floats(c.dim)
	c.embedding = matrix(c.vocab * c.dim)
	c.q, c.k, c.v, c.o = each(matrix, c.dim*c.dim), each(matrix, c.dim*c.dim), each(matrix, c.dim*c.dim), each(matrix, c.dim*c.dim)
	c.gate, c.down, c.up = each(matrix, c.hidden*c.dim), each(matrix, c.dim*c.hidden), each(matrix, c.hidden*c.dim)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	return &c, err
}

// testWeights are weights in which no two values of a tensor's groups are alike by accident, norms included.
func testWeights(t *testing.T, s Shape) map[string][]float32 {
	t.Helper()
	c, err := s.config(8)
	if err != nil {
		t.Fatal(err)
	}
	w := randomWeights(c)
	for _, x := range c.Tensors() {
		if x.Class == configs.ClassNorm {
			for i := range w[x.Name] {
				w[x.Name][i] = 1 + float32(i)/256
			}
		}
	}
	return w
}

func modelBytes(t *testing.T, s Shape, w map[string][]float32) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeModel(&b, s, w); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestModelFile reads what was written: sizes, and every tensor in its place to half a step of its scale.
func TestModelFile(t *testing.T) {
	w := testWeights(t, tiny)
	c, err := readContents(modelBytes(t, tiny, w))
	if err != nil {
		t.Fatal(err)
	}
	if c.magic != 0x616b3432 || c.version != 2 || c.tiedHead != 1 || c.kvHeads != c.heads {
		t.Errorf("magic %#x, version %d, tied %d, heads %d and %d", c.magic, c.version, c.tiedHead, c.heads, c.kvHeads)
	}
	if got := (Shape{"tiny", c.dim, c.hidden, c.layers, c.heads, c.vocab, c.context, c.group}); got != tiny {
		t.Errorf("sizes %+v, want %+v", got, tiny)
	}
	compare := func(name string, got []float64, want []float32, group int) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
		}
		for at := 0; at < len(want); at += group {
			largest := 0.0
			for _, x := range want[at : at+group] {
				largest = max(largest, math.Abs(float64(x)))
			}
			step := largest / 127
			if group == 1 {
				step = 0
			}
			for i := at; i < at+group; i++ {
				if diff := math.Abs(got[i] - float64(want[i])); diff > step*0.50001 {
					t.Fatalf("%s: value %d is %v, want %v to %v", name, i, got[i], want[i], step/2)
				}
			}
		}
	}
	d, square := tiny.DModel/tiny.Heads, tiny.DModel*tiny.DModel
	compare("output norm", c.outputNorm, w[configs.OutputNorm], 1)
	compare("embedding", c.embedding, w[configs.TokenEmbedding], tiny.Group)
	for l := range tiny.Layers {
		part := func(name string) []float32 { return w[configs.LayerTensor(l, name)] }
		compare("attention norm", c.attentionNorm[l], part(configs.AttentionNorm), 1)
		compare("feed-forward norm", c.ffnNorm[l], part(configs.FFNNorm), 1)
		compare("values", c.v[l], part(configs.QKV)[2*square:], tiny.Group)
		compare("attention output", c.o[l], part(configs.AttentionOutput), tiny.Group)
		compare("gate", c.gate[l], part(configs.Gate), tiny.Group)
		compare("down", c.down[l], part(configs.Down), tiny.Group)
		compare("up", c.up[l], part(configs.Up), tiny.Group)
		for row := range tiny.DModel { // element i of a head stands at 2i, or at 2(i-d/2)+1 in the second half
			i := row % d
			to := row - i + 2*i
			if i >= d/2 {
				to = row - i + 2*(i-d/2) + 1
			}
			from, at := part(configs.QKV)[row*tiny.DModel:], to*tiny.DModel
			compare("queries", c.q[l][at:at+tiny.DModel], from[:tiny.DModel], tiny.Group)
			compare("keys", c.k[l][at:at+tiny.DModel], from[square:square+tiny.DModel], tiny.Group)
		}
	}
}

// TestQuantised packs values by hand: the largest of a group becomes 127, halves go away from zero, a group of zeros stays.
func TestQuantised(t *testing.T) {
	s := Shape{DModel: 4, DFF: 4, Layers: 0, Heads: 1, Vocab: 3, Context: 2, Group: 4}
	b := modelBytes(t, s, map[string][]float32{
		configs.OutputNorm:     {1, 2, 3, 4},
		configs.TokenEmbedding: {1.5, -127, 2.5, 0.25, 0, 0, 0, 0, -254, 254, 3, 253},
	})[headerBytes+4*4:]
	want := []int8{2, -127, 3, 0, 0, 0, 0, 0, -127, 127, 2, 127}
	for i, code := range want {
		if int8(b[i]) != code {
			t.Errorf("code %d is %d, want %d", i, int8(b[i]), code)
		}
	}
	for g, scale := range []float32{1, 0, 2} {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[len(want)+4*g:])); got != scale {
			t.Errorf("scale %d is %v, want %v", g, got, scale)
		}
	}
}

// TestTokenizerFile reads the entries as the opponent does, and ids from their texts.
func TestTokenizerFile(t *testing.T) {
	var file bytes.Buffer
	const vocab = 70000
	if err := writeTokenizer(&file, vocab); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	longest := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	var text string
	for range vocab {
		n := int(binary.LittleEndian.Uint32(b[4:]))
		if n > longest {
			t.Fatalf("an entry of %d bytes, the longest has %d", n, longest)
		}
		if len(text) < 100 {
			text += string(b[8 : 8+n])
		}
		b = b[8+n:]
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
	ids, err := readIDs(text)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if int(id) != i {
			t.Errorf("entry %d reads as id %d", i, id)
		}
	}
	if ids, err := readIDs(piece(69999) + piece(0)); err != nil || len(ids) != 2 || ids[0] != 69999 || ids[1] != 0 {
		t.Errorf("ids %v, %v", ids, err)
	}
	for _, bad := range []string{"00001", piece(1) + "x", "Once upon a time"} {
		if ids, err := readIDs(bad); err == nil {
			t.Errorf("%q reads as %v", bad, ids)
		}
	}
}

// TestMACs counts what is counted, one position after the other.
func TestMACs(t *testing.T) {
	for _, s := range append(builtin, tiny) {
		c, err := s.config(4)
		if err != nil {
			t.Fatal(err)
		}
		products := s.Vocab*s.DModel + s.Layers*(4*s.DModel*s.DModel+3*s.DModel*s.DFF)
		sum := 0
		for position := 1; position < s.Context; position++ {
			sum += products + s.Layers*2*s.DModel*(position+1)
		}
		if got, want := macs(c)*int64(s.Context-1), int64(sum); got != want {
			t.Errorf("%s: %d MACs over all positions, want %d", s.Name, got, want)
		}
	}
}

// TestShapeOf takes groups that rows divide into, and refuses what has none.
func TestShapeOf(t *testing.T) {
	combo, err := configs.Load("combo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := shapeOf(combo); err != nil || !got.sameSizes(builtin[0]) {
		t.Errorf("combo: %+v, %v; the built-in shape is %+v", got, err, builtin[0])
	}
	for sizes, group := range map[[2]int]int{{128, 320}: 64, {96, 320}: 32, {128, 352}: 32, {128, 172}: 0, {40, 320}: 0} {
		c := *combo
		c.DModel, c.DFF = sizes[0], sizes[1]
		s, err := shapeOf(&c)
		if group == 0 && err == nil || group > 0 && (err != nil || s.Group != group) {
			t.Errorf("%v: group %d, %v, want %d", sizes, s.Group, err, group)
		}
	}
	c := *combo
	c.ContextLength = 1
	if _, err := shapeOf(&c); err == nil {
		t.Error("a context of one position")
	}
}
