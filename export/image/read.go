package image

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/regular"
)

// File is an image that was read: the model and the facts of its layout.
type File struct {
	Model
	Bytes    int64
	CRC      uint32
	Sections []Section

	data []byte
}

// Section is an entry of the section table.
type Section struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	CRC    uint32 `json:"crc32"`
}

// Raw returns the bytes of a section, or nil for a name that is none. The bytes alias the file.
func (f *File) Raw(name string) []byte {
	for _, s := range f.Sections {
		if s.Name == name {
			return f.data[s.Offset : s.Offset+s.Bytes]
		}
	}
	return nil
}

// Tensor finds a tensor by name; nil if there is none.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// step is one check of a file; later steps rely on earlier ones.
type step struct {
	name string
	run  func(f *File) error
}

// readSteps are the checks of every reader, in the order of docs/image.md.
var readSteps = []step{
	{"size", readSize}, {"magic", readMagic}, {"version", readVersion}, {"header bytes", readHeaderBytes},
	{"flags", readFlags}, {"file bytes", readFileBytes}, {"file checksum", readFileCRC},
	{"section table", readSections}, {"section checksums", readSectionCRCs}, {"model sizes", readSizes},
	{"tensor table", readTensors}, {"tensor checksums", readTensorCRCs},
	{"golden's form", readGolden}, {"rotary tables' form", readRope},
}

// Read reads an image of the given size and refuses what docs/image.md refuses. The error wraps one of the package's
// errors and names the place.
func Read(r io.ReaderAt, size int64) (*File, error) {
	f, err := load(r, size)
	if err != nil {
		return nil, err
	}
	for _, s := range readSteps {
		if err := s.run(f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Open reads the image at path. Its errors are those of [Read], with the path and [Advice].
func Open(path string) (*File, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	im, err := Read(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", path, err, Advice(err))
	}
	return im, nil
}

// openFile opens the file of an image and tells its size.
func openFile(path string) (*os.File, int64, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("the model.clm of an export folder is wanted: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// load reads the bytes. A file with a wrong magic is not read whole.
func load(r io.ReaderAt, size int64) (*File, error) {
	if size < 0 {
		return nil, fmt.Errorf("read image: negative size %d", size)
	}
	n := min(size, HeaderBytes)
	head := make([]byte, n)
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if n < HeaderBytes || !bytes.Equal(head[:4], magic[:]) {
		return &File{data: head, Bytes: size}, nil
	}
	data := make([]byte, size)
	if _, err := r.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return &File{data: data, Bytes: size}, nil
}

func readSize(f *File) error {
	if f.Bytes < HeaderBytes {
		return fmt.Errorf("%w: %d bytes, a header has %d", ErrShort, f.Bytes, HeaderBytes)
	}
	return nil
}

func readMagic(f *File) error {
	if !bytes.Equal(f.data[:4], magic[:]) {
		return fmt.Errorf("%w: it starts with % x, an image with % x", ErrMagic, f.data[:4], magic[:])
	}
	return nil
}

func readVersion(f *File) error {
	if v := le.Uint32(f.data[4:]); v != Version {
		return fmt.Errorf("%w: %d, this chiplm reads version %d", ErrVersion, v, Version)
	}
	return nil
}

func readHeaderBytes(f *File) error {
	if v := le.Uint32(f.data[8:]); v != HeaderBytes {
		return fmt.Errorf("%w: %d, version %d has %d", ErrHeaderBytes, v, Version, HeaderBytes)
	}
	return nil
}

func readFlags(f *File) error {
	if v := le.Uint32(f.data[12:]); v != 0 {
		return fmt.Errorf("%w: flags are %#x, this chiplm knows none", ErrFlags, v)
	}
	if !zero(f.data[32:HeaderBytes]) {
		return fmt.Errorf("%w: header, bytes 32 to 63", ErrReserved)
	}
	return nil
}

func readFileBytes(f *File) error {
	if v := le.Uint64(f.data[16:]); v != uint64(f.Bytes) {
		return fmt.Errorf("%w: the header says %s bytes, the file has %s", ErrFileBytes, digits.Comma(v), digits.Comma(f.Bytes))
	}
	return nil
}

func readFileCRC(f *File) error {
	f.CRC = le.Uint32(f.data[28:])
	c := crc32.ChecksumIEEE(f.data[:28])
	c = crc32.Update(c, crc32.IEEETable, make([]byte, 4))
	c = crc32.Update(c, crc32.IEEETable, f.data[32:])
	if c != f.CRC {
		return fmt.Errorf("%w: the header says %08x, the bytes give %08x; the file is damaged",
			ErrFileCRC, f.CRC, c)
	}
	return nil
}

func readSections(f *File) error {
	n := le.Uint32(f.data[24:])
	if n != uint32(len(sectionNames)) {
		return fmt.Errorf("%w: %d sections, version %d has %d", ErrSections, n, Version, len(sectionNames))
	}
	end := int64(HeaderBytes + len(sectionNames)*SectionBytes)
	if f.Bytes < end {
		return fmt.Errorf("%w: the file ends inside the table", ErrSections)
	}
	for i, name := range sectionNames {
		e := f.data[HeaderBytes+i*SectionBytes:][:SectionBytes]
		if got := string(e[:4]); got != name {
			return fmt.Errorf("%w: section %d is %q, not %s", ErrSections, i, got, name)
		}
		off, size := le.Uint64(e[8:]), le.Uint64(e[16:])
		switch {
		case off%Align != 0:
			return fmt.Errorf("%w: %s starts at %d, not a multiple of %d", ErrSections, name, off, Align)
		case off > uint64(f.Bytes) || size > uint64(f.Bytes)-off:
			return fmt.Errorf("%w: %s at %d with %d bytes runs past the file's %d", ErrSections, name, off, size, f.Bytes)
		case int64(off) < end:
			return fmt.Errorf("%w: %s starts at %d, inside what ends at %d", ErrSections, name, off, end)
		case !zero(e[24:]):
			return fmt.Errorf("%w: section %s", ErrReserved, name)
		}
		end = int64(off + size)
		f.Sections = append(f.Sections, Section{name, int64(off), int64(size), le.Uint32(e[4:])})
	}
	if f.Bytes-end < TailBytes {
		return fmt.Errorf("%w: %d bytes after the last section, at least %d must follow", ErrSections, f.Bytes-end, TailBytes)
	}
	return nil
}

func readSectionCRCs(f *File) error {
	for _, s := range f.Sections {
		if c := crc32.ChecksumIEEE(f.Raw(s.Name)); c != s.CRC {
			return fmt.Errorf("%w: %s says %08x, its bytes give %08x", ErrSectionCRC, s.Name, s.CRC, c)
		}
	}
	f.Config = f.Raw("CONF")
	f.Tokenizer = f.Raw("TOKN")
	return nil
}

func readSizes(f *File) error {
	b := f.Raw("MODL")
	if len(b) != sizesBytes {
		return fmt.Errorf("%w: MODL has %d bytes, not %d", ErrSizes, len(b), sizesBytes)
	}
	s := &f.Sizes
	for i, p := range []*int{&s.VocabSize, &s.DModel, &s.NLayers, &s.NHeads, &s.DFF, &s.ContextLength, &s.PLEDim, &s.Experts} {
		*p = int(le.Uint32(b[4*i:]))
	}
	switch v := le.Uint32(b[32:]); v {
	case 0:
		s.Activation = configs.ReLU
	case 1:
		s.Activation = configs.SwiGLU
	default:
		return fmt.Errorf("%w: activation %d is unknown", ErrSizes, v)
	}
	bits := le.Uint32(b[36:])
	if bits&^3 != 0 {
		return fmt.Errorf("%w: model bits %#x are unknown", ErrSizes, bits&^3)
	}
	s.TiedHead, s.QKNorm = bits&1 != 0, bits&2 != 0
	for i, p := range []*float32{&s.NormEps, &s.ScoreScale, &s.PLEInput, &s.PLETable, &s.PLEHalf} {
		*p = math.Float32frombits(le.Uint32(b[40+4*i:]))
	}
	s.TensorCount = int(le.Uint32(b[60:]))
	copy(s.TokenizerHash[:], b[64:])
	copy(s.ModelHash[:], b[96:])
	s.Clusters = int(le.Uint32(b[128:]))
	s.NgramRows = int(le.Uint32(b[132:]))
	if !zero(b[136:]) {
		return fmt.Errorf("%w: MODL, bytes 136 to 191", ErrReserved)
	}
	return s.validate()
}

func readTensors(f *File) error {
	s := &f.Sizes
	want := s.tensors()
	table := f.Raw("TENS")
	if s.TensorCount != len(want) || len(table) != len(want)*TensorBytes {
		return fmt.Errorf("%w: %d tensors in %d bytes, the sizes ask for %d in %d",
			ErrTensors, s.TensorCount, len(table), len(want), len(want)*TensorBytes)
	}
	data := f.Sections[len(f.Sections)-1]
	for i, w := range want {
		e := table[i*TensorBytes:][:TensorBytes]
		name, rest, _ := bytes.Cut(e[:nameBytes], []byte{0})
		t := Tensor{
			Name: string(name), Rows: int(le.Uint32(e[48:])), Cols: int(le.Uint32(e[52:])), Bits: int(le.Uint32(e[56:])),
			Group: int(le.Uint32(e[60:])), ScaleType: le.Uint32(e[64:]), Tier: Tier(le.Uint32(e[68:])),
			Block: int(le.Uint32(e[112:])),
		}
		bad := func(format string, a ...any) error {
			return fmt.Errorf("%w: entry %d (%s): %s", ErrTensors, i, w.Name, fmt.Sprintf(format, a...))
		}
		switch {
		case t.Name != w.Name || !zero(rest):
			return bad("the name is %q", t.Name)
		case t.Rows != w.Rows() || t.Cols != w.Cols():
			return bad("shape [%d, %d], the sizes ask for [%d, %d]", t.Rows, t.Cols, w.Rows(), w.Cols())
		case t.Block != 0 && (t.Block != s.DModel || !strings.HasSuffix(w.Name, "."+configs.Down)):
			return bad("stored in blocks of %d rows; down alone may be, in blocks of d_model", t.Block)
		case !zero(e[116:]):
			return fmt.Errorf("%w: tensor %s", ErrReserved, w.Name)
		}
		if err := t.validFormat(IsBytes(w)); err != nil {
			return bad("%v", err)
		}
		// Norms and routers are float32 always; the C engine reads them as such.
		if w.Quant.Bits == 32 && t.Bits != 32 {
			return bad("%d bits, must be float32", t.Bits)
		}
		if stride := le.Uint32(e[104:]); int64(stride) != int64(t.Stride()) {
			return bad("stride %d, the columns ask for %d", stride, t.Stride())
		}
		var err error
		if t.CodesOffset, t.Codes, err = f.slice(data, e[72:], t.codesBytes()); err != nil {
			return bad("codes: %v", err)
		}
		if t.ScalesOffset, t.Scales, err = f.slice(data, e[88:], t.scaleBytes()); err != nil {
			return bad("scales: %v", err)
		}
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// slice follows an (offset, bytes) pair into the data section.
func (f *File) slice(data Section, e []byte, want int64) (int64, []byte, error) {
	off, size := le.Uint64(e), le.Uint64(e[8:])
	switch {
	case size != uint64(want):
		return 0, nil, fmt.Errorf("%d bytes, the shape asks for %d", size, want)
	case want == 0 && off != 0:
		return 0, nil, fmt.Errorf("offset %d without bytes", off)
	case want == 0:
		return 0, nil, nil
	case off%Align != 0:
		return 0, nil, fmt.Errorf("offset %d is not a multiple of %d", off, Align)
	case off < uint64(data.Offset) || off > uint64(data.Offset+data.Bytes) || size > uint64(data.Offset+data.Bytes)-off:
		return 0, nil, fmt.Errorf("offset %d with %d bytes lies outside DATA (%d to %d)", off, size, data.Offset, data.Offset+data.Bytes)
	}
	return int64(off), f.data[off : off+size : off+size], nil
}

func readTensorCRCs(f *File) error {
	table := f.Raw("TENS")
	for i := range f.Tensors {
		t := &f.Tensors[i]
		want := le.Uint32(table[i*TensorBytes+108:])
		if c := crc32.Update(crc32.ChecksumIEEE(t.Codes), crc32.IEEETable, t.Scales); c != want {
			return fmt.Errorf("%w: %s says %08x, its bytes give %08x", ErrTensorCRC, t.Name, want, c)
		}
	}
	return nil
}

func readGolden(f *File) error {
	b := f.Raw("GOLD")
	if len(b) < 16 {
		return fmt.Errorf("%w: %d bytes", ErrGolden, len(b))
	}
	p, k := int64(le.Uint32(b)), int64(le.Uint32(b[4:]))
	if int64(len(b)) != 16+4*p+8*k {
		return fmt.Errorf("%w: %d bytes for a prompt of %d and a top %d", ErrGolden, len(b), p, k)
	}
	g := &f.Golden
	g.Digest = le.Uint64(b[8:])
	b = b[16:]
	for range p {
		g.Prompt = append(g.Prompt, le.Uint32(b))
		b = b[4:]
	}
	for range k {
		g.Top = append(g.Top, Scored{le.Uint32(b), math.Float32frombits(le.Uint32(b[4:]))})
		b = b[8:]
	}
	return nil
}

func readRope(f *File) error {
	b, n := f.Raw("ROPE"), ropeLen(&f.Sizes)
	if len(b) != 4*n {
		return fmt.Errorf("%w: %d bytes, the sizes ask for %d", ErrRope, len(b), 4*n)
	}
	f.Rope = make([]float32, n)
	for i := range f.Rope {
		f.Rope[i] = math.Float32frombits(le.Uint32(b[4*i:]))
	}
	return nil
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
