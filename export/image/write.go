package image

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/regular"
)

var le = binary.LittleEndian

// Encode lays a model out as an image file. It refuses, with [ErrModel], a model whose parts do not fit together.
// Offsets and the tensor count are chosen here; those in m are ignored, and m is not changed.
func Encode(m *Model) ([]byte, error) {
	if err := encodable(m); err != nil {
		return nil, err
	}
	s := m.Sizes
	s.TensorCount = len(m.Tensors)
	bodies := [len(sectionNames)][]byte{
		appendSizes(nil, &s), m.Config, nil, floats(m.Rope), m.Tokenizer, appendGolden(nil, &m.Golden), nil,
	}
	const tens, data = 2, 6
	var offsets [len(sectionNames)]int64
	at := roundUp(HeaderBytes + int64(len(sectionNames))*SectionBytes)
	for i := range sectionNames {
		offsets[i] = at
		switch i {
		case tens:
			at += int64(len(m.Tensors)) * TensorBytes
		case data: // the tensors, each part aligned
		default:
			at += int64(len(bodies[i]))
		}
		at = roundUp(at)
	}
	table, end := appendTensors(nil, m.Tensors, offsets[data])
	bodies[tens] = table
	file := make([]byte, roundUp(end)+TailBytes)
	for _, p := range parts(m.Tensors, offsets[data]) {
		copy(file[p.offset:], p.bytes)
	}
	bodies[data] = file[offsets[data]:end]

	h := file[:HeaderBytes]
	copy(h, magic[:])
	le.PutUint32(h[4:], Version)
	le.PutUint32(h[8:], HeaderBytes)
	le.PutUint64(h[16:], uint64(len(file)))
	le.PutUint32(h[24:], uint32(len(sectionNames)))
	for i, name := range sectionNames {
		if i != data {
			copy(file[offsets[i]:], bodies[i])
		}
		e := file[HeaderBytes+i*SectionBytes:]
		copy(e, name)
		le.PutUint32(e[4:], crc32.ChecksumIEEE(bodies[i]))
		le.PutUint64(e[8:], uint64(offsets[i]))
		le.PutUint64(e[16:], uint64(len(bodies[i])))
	}
	le.PutUint32(h[28:], crc32.ChecksumIEEE(file)) // the field is still zero
	return file, nil
}

// Write encodes a model into w.
func Write(w io.Writer, m *Model) error {
	b, err := Encode(m)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

// WriteFile encodes a model and puts it at path, whole or not at all.
func WriteFile(path string, m *Model) error {
	b, err := Encode(m)
	if err != nil {
		return err
	}
	if err := regular.WriteFile(path, b); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

// encodable checks what layout relies on; the reader's checks cover the rest.
func encodable(m *Model) error {
	bad := func(format string, a ...any) error { return fmt.Errorf("%w: %s", ErrModel, fmt.Sprintf(format, a...)) }
	s := &m.Sizes
	if err := s.validate(); err != nil {
		return bad("%v", err)
	}
	want := s.tensors()
	if len(m.Tensors) != len(want) {
		return bad("%d tensors given, the sizes ask for %d", len(m.Tensors), len(want))
	}
	for i := range m.Tensors {
		t := &m.Tensors[i]
		if t.Name != want[i].Name || t.Rows != want[i].Rows() || t.Cols != want[i].Cols() {
			return bad("tensor %d is %s [%d, %d], the sizes ask for %s [%d, %d]",
				i, t.Name, t.Rows, t.Cols, want[i].Name, want[i].Rows(), want[i].Cols())
		}
		if len(t.Name) >= nameBytes {
			return bad("tensor name %q is longer than %d bytes", t.Name, nameBytes-1)
		}
		if err := t.validFormat(IsBytes(want[i])); err != nil {
			return bad("tensor %s: %v", t.Name, err)
		}
		if t.Block != 0 && (t.Block != s.DModel || !strings.HasSuffix(t.Name, "."+configs.Down)) {
			return bad("tensor %s is stored in blocks of %d rows; down alone may be, in blocks of d_model", t.Name, t.Block)
		}
		if int64(len(t.Codes)) != t.codesBytes() || int64(len(t.Scales)) != t.scaleBytes() {
			return bad("tensor %s has %d bytes of codes and %d of scales, its shape asks for %d and %d",
				t.Name, len(t.Codes), len(t.Scales), t.codesBytes(), t.scaleBytes())
		}
	}
	if n := ropeLen(s); len(m.Rope) != n {
		return bad("rotary tables hold %d values, the sizes ask for %d", len(m.Rope), n)
	}
	if len(m.Golden.Prompt) == 0 {
		return bad("the golden has no prompt")
	}
	return nil
}

func ropeLen(s *Sizes) int { return s.ContextLength * (s.DModel / s.NHeads / 2) * 2 }

func roundUp(n int64) int64 { return (n + Align - 1) / Align * Align }

func floats(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = le.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func appendSizes(b []byte, s *Sizes) []byte {
	for _, v := range []int{s.VocabSize, s.DModel, s.NLayers, s.NHeads, s.DFF, s.ContextLength, s.PLEDim, s.Experts} {
		b = le.AppendUint32(b, uint32(v))
	}
	activation, bits := uint32(0), uint32(0)
	if s.Activation == configs.SwiGLU {
		activation = 1
	}
	if s.TiedHead {
		bits |= 1
	}
	if s.QKNorm {
		bits |= 2
	}
	b = le.AppendUint32(b, activation)
	b = le.AppendUint32(b, bits)
	for _, v := range []float32{s.NormEps, s.ScoreScale, s.PLEInput, s.PLETable, s.PLEHalf} {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	b = le.AppendUint32(b, uint32(s.TensorCount))
	b = append(b, s.TokenizerHash[:]...)
	b = append(b, s.ModelHash[:]...)
	b = le.AppendUint32(b, uint32(s.Clusters))
	b = le.AppendUint32(b, uint32(s.NgramRows))
	return append(b, make([]byte, 56)...)
}

func appendGolden(b []byte, g *Golden) []byte {
	b = le.AppendUint32(b, uint32(len(g.Prompt)))
	b = le.AppendUint32(b, uint32(len(g.Top)))
	b = le.AppendUint64(b, g.Digest)
	for _, id := range g.Prompt {
		b = le.AppendUint32(b, id)
	}
	for _, t := range g.Top {
		b = le.AppendUint32(b, t.ID)
		b = le.AppendUint32(b, math.Float32bits(t.Logit))
	}
	return b
}

// part is a run of bytes with its place in the file.
type part struct {
	offset int64
	bytes  []byte
}

// parts places codes and scales of the tensors one after the other, each aligned, from the given offset.
func parts(ts []Tensor, at int64) []part {
	var out []part
	for i := range ts {
		for _, b := range [][]byte{ts[i].Codes, ts[i].Scales} {
			if len(b) == 0 {
				continue
			}
			at = roundUp(at)
			out = append(out, part{at, b})
			at += int64(len(b))
		}
	}
	return out
}

// appendTensors writes the tensor table for data that starts at an offset, and returns where the data ends.
func appendTensors(b []byte, ts []Tensor, at int64) (table []byte, end int64) {
	ps := parts(ts, at)
	end = at
	next := func(n int) uint64 {
		if n == 0 {
			return 0
		}
		p := ps[0]
		ps = ps[1:]
		end = p.offset + int64(n)
		return uint64(p.offset)
	}
	for i := range ts {
		t := &ts[i]
		var name [nameBytes]byte
		copy(name[:], t.Name)
		b = append(b, name[:]...)
		for _, v := range []uint32{uint32(t.Rows), uint32(t.Cols), uint32(t.Bits), uint32(t.Group), t.ScaleType, uint32(t.Tier)} {
			b = le.AppendUint32(b, v)
		}
		b = le.AppendUint64(b, next(len(t.Codes)))
		b = le.AppendUint64(b, uint64(len(t.Codes)))
		b = le.AppendUint64(b, next(len(t.Scales)))
		b = le.AppendUint64(b, uint64(len(t.Scales)))
		b = le.AppendUint32(b, uint32(t.Stride()))
		b = le.AppendUint32(b, crc32.Update(crc32.ChecksumIEEE(t.Codes), crc32.IEEETable, t.Scales))
		b = le.AppendUint32(b, uint32(t.Block))
		b = append(b, make([]byte, 12)...)
	}
	return b, end
}
