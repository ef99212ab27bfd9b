package image

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"sort"
	"unicode/utf8"

	"github.com/chiplm/chiplm/configs"
)

// Result is the outcome of one check.
type Result struct {
	Name string
	Err  error // nil: passed
}

// contentSteps look inside an image that can be read.
var contentSteps = []step{
	{"padding", checkPadding}, {"codes", checkCodes}, {"scales", checkScales}, {"configuration", checkConfig},
	{"rotary tables", checkRope}, {"clusters", checkClusterData}, {"tokenizer", checkTokenizer}, {"golden", checkGolden},
}

// Check runs every check on an image and returns their outcomes in order. Checks of the form stop at the first that
// fails, since later ones rely on it; checks of the content all run. The file is nil if its form is broken.
// An error is returned only when the bytes cannot be read.
func Check(r io.ReaderAt, size int64) (*File, []Result, error) {
	f, err := load(r, size)
	if err != nil {
		return nil, nil, err
	}
	var out []Result
	for _, s := range readSteps {
		err := s.run(f)
		out = append(out, Result{s.name, err})
		if err != nil {
			return nil, out, nil
		}
	}
	for _, s := range contentSteps {
		out = append(out, Result{s.name, s.run(f)})
	}
	return f, out, nil
}

// CheckFile runs every check on the file of an image; size is that of the file. See [Check].
func CheckFile(path string) (im *File, results []Result, size int64, err error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	im, results, err = Check(f, size)
	return im, results, size, err
}

// checkPadding wants parts that do not overlap, and zeros wherever no part lies.
func checkPadding(f *File) error {
	type span struct {
		from, to int64
		what     string
	}
	spans := []span{{0, HeaderBytes + int64(len(f.Sections))*SectionBytes, "header"}}
	for _, s := range f.Sections {
		if s.Name != "DATA" {
			spans = append(spans, span{s.Offset, s.Offset + s.Bytes, s.Name})
		}
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		spans = append(spans, span{t.CodesOffset, t.CodesOffset + int64(len(t.Codes)), t.Name + " codes"})
		if len(t.Scales) > 0 {
			spans = append(spans, span{t.ScalesOffset, t.ScalesOffset + int64(len(t.Scales)), t.Name + " scales"})
		}
	}
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	at, before := int64(0), ""
	for _, s := range append(spans, span{f.Bytes, f.Bytes, "end"}) {
		if s.from < at {
			return fmt.Errorf("%w: %s overlaps %s", ErrTensors, s.what, before)
		}
		if !zero(f.data[at:s.from]) {
			return fmt.Errorf("%w: between %s and %s (bytes %d to %d)", ErrPadding, before, s.what, at, s.from)
		}
		at, before = s.to, s.what
	}
	return nil
}

func checkCodes(f *File) error {
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Raw() {
			continue // any byte may stand there
		}
		width := t.Stride() * 8 / t.Bits // columns with the padding
		for r := range t.StoredRows() {
			for c := range width {
				var bad bool
				if t.Bits == 32 {
					v := float64(math.Float32frombits(le.Uint32(t.Codes[r*t.Stride()+4*c:])))
					bad = !ordinary(v) || c >= t.StoredCols() && math.Float32bits(float32(v)) != 0
				} else {
					v := t.stored(r, c)
					bad = v == MinCode(t.Bits) || c >= t.StoredCols() && v != 0
				}
				if bad {
					return fmt.Errorf("%w: %s, stored row %d, column %d of %d", ErrCodes, t.Name, r, c, t.StoredCols())
				}
			}
		}
	}
	return nil
}

// ordinary reports whether a float32 is finite and not subnormal: results may not depend on flushing.
func ordinary(v float64) bool {
	return v == 0 || math.Abs(v) >= 0x1p-126 && math.Abs(v) <= math.MaxFloat32
}

func checkScales(f *File) error {
	for i := range f.Tensors {
		t := &f.Tensors[i]
		for r := range t.Rows {
			for g := range t.Groups() {
				v := t.Scale(r, g)
				if !ordinary(float64(v)) || math.Signbit(float64(v)) {
					return fmt.Errorf("%w: %s, row %d, group %d is %v", ErrScales, t.Name, r, g, v)
				}
			}
		}
	}
	return nil
}

// checkConfig wants the resolved text, and that sizes and quantisation follow from it.
func checkConfig(f *File) error {
	if len(f.Config) == 0 || !utf8.Valid(f.Config) {
		return fmt.Errorf("%w: %d bytes that are no text", ErrConfig, len(f.Config))
	}
	if bytes.HasPrefix(f.Config, []byte("extends:")) || bytes.Contains(f.Config, []byte("\nextends:")) {
		return fmt.Errorf("%w: it extends another file, so it is not the resolved text", ErrConfig)
	}
	c, err := configs.Parse("CONF", f.Config)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if text, err := c.YAML(); err != nil || !bytes.Equal(text, f.Config) {
		return fmt.Errorf("%w: it is not in its canonical form", ErrConfig)
	}
	want := SizesOf(c)
	want.TokenizerHash, want.ModelHash = f.Sizes.TokenizerHash, f.Sizes.ModelHash
	want.Clusters, want.TensorCount = f.Sizes.Clusters, len(f.Tensors)
	if want != f.Sizes {
		return fmt.Errorf("%w: it implies %+v, the image has %+v", ErrConfig, want, f.Sizes)
	}
	for i, t := range c.Tensors() {
		got := f.Tensors[i]
		if t.Quant.Bits != got.Bits || t.Quant.Bits != 32 && (t.Quant.Group != got.Group || ScaleTypeOf(t.Quant) != got.ScaleType) {
			return fmt.Errorf("%w: it gives %s %d bits in groups of %d, the image %d in groups of %d",
				ErrConfig, t.Name, t.Quant.Bits, t.Quant.Group, got.Bits, got.Group)
		}
	}
	return nil
}

// checkRope wants pairs on the unit circle, and the angle 0 at position 0.
func checkRope(f *File) error {
	n := len(f.Rope) / 2
	half := f.Sizes.DModel / f.Sizes.NHeads / 2
	for i := range n {
		c, s := float64(f.Rope[i]), float64(f.Rope[n+i])
		if !ordinary(c) || !ordinary(s) || max(math.Abs(c), math.Abs(s)) > 1 || !(math.Abs(c*c+s*s-1) < 1e-5) || i < half && (c != 1 || s != 0) {
			return fmt.Errorf("%w: position %d, pair %d: cosine %v, sine %v", ErrRope, i/half, i%half, c, s)
		}
	}
	return nil
}

// maxEntry is the longest entry of a tokenizer, in bytes; it bounds the work that a hostile file can ask for.
const maxEntry = 1 << 16

// NoTokenizer is the kind of a section that says that the tokens stand for no text that is known.
const NoTokenizer = "none"

// TokenizerFacts is what the tokenizer section says of itself.
type TokenizerFacts struct {
	Kind    string `json:"kind"`
	Entries int    `json:"entries"`
	Merges  int    `json:"merges"`
	EOT     int    `json:"end_of_text"`
	Bytes   int    `json:"text_bytes"`
}

// TokenizerFacts reads the head of the tokenizer section.
func (f *File) TokenizerFacts() (TokenizerFacts, error) {
	b := f.Tokenizer
	if len(b) < 20 {
		return TokenizerFacts{}, fmt.Errorf("%w: %d bytes", ErrTokenizer, len(b))
	}
	v := func(i int) int { return int(le.Uint32(b[4*i:])) }
	if v(0) > 1 {
		return TokenizerFacts{}, fmt.Errorf("%w: kind %d is unknown", ErrTokenizer, v(0))
	}
	t := TokenizerFacts{[]string{NoTokenizer, "byte-level BPE"}[v(0)], v(1), v(2), v(3), v(4)}
	if want := 20 + 4*(int64(t.Entries)+1) + 12*int64(t.Merges) + int64(t.Bytes); int64(len(b)) != want {
		return t, fmt.Errorf("%w: %d bytes for %d entries, %d merges and %d bytes of text: must be %d",
			ErrTokenizer, len(b), t.Entries, t.Merges, t.Bytes, want)
	}
	return t, nil
}

func checkTokenizer(f *File) error {
	t, err := f.TokenizerFacts()
	if err != nil {
		return err
	}
	if t.Kind == NoTokenizer {
		if t.Entries != 0 || t.Merges != 0 || t.Bytes != 0 || t.EOT >= f.Sizes.VocabSize || !zero(f.Tokenizer[20:]) {
			return fmt.Errorf("%w: %+v where the image has no tokenizer and a vocabulary of %d", ErrTokenizer, t, f.Sizes.VocabSize)
		}
		return nil
	}
	if t.Entries > f.Sizes.VocabSize || t.EOT >= t.Entries {
		return fmt.Errorf("%w: %d entries and end-of-text %d with a vocabulary of %d", ErrTokenizer, t.Entries, t.EOT, f.Sizes.VocabSize)
	}
	b := f.Tokenizer[20:]
	offset := func(i int) int { return int(le.Uint32(b[4*i:])) }
	if offset(0) != 0 || offset(t.Entries) != t.Bytes {
		return fmt.Errorf("%w: entries span %d to %d of %d bytes", ErrTokenizer, offset(0), offset(t.Entries), t.Bytes)
	}
	for i := range t.Entries {
		from, to := offset(i), offset(i+1)
		if to < from || to > t.Bytes || to-from > maxEntry || (to == from) != (i == t.EOT) {
			return fmt.Errorf("%w: entry %d spans %d to %d of %d bytes", ErrTokenizer, i, from, to, t.Bytes)
		}
	}
	merges := b[4*(t.Entries+1):]
	text := merges[12*t.Merges:]
	entry := func(i int) []byte { return text[offset(i):offset(i+1)] }
	for m := range t.Merges {
		e := merges[12*m:]
		l, r, y := int(le.Uint32(e)), int(le.Uint32(e[4:])), int(le.Uint32(e[8:]))
		if max(l, r, y) >= t.Entries {
			return fmt.Errorf("%w: merge %d names entry %d of %d", ErrTokenizer, m, max(l, r, y), t.Entries)
		}
		if res := entry(y); !bytes.HasPrefix(res, entry(l)) || !bytes.Equal(res[len(entry(l)):], entry(r)) {
			return fmt.Errorf("%w: merge %d: %q and %q do not make %q", ErrTokenizer, m, entry(l), entry(r), res)
		}
	}
	return nil
}

func checkGolden(f *File) error {
	g, s := &f.Golden, &f.Sizes
	if n := len(g.Prompt); n < 1 || n > s.ContextLength {
		return fmt.Errorf("%w: a prompt of %d with a context of %d", ErrGolden, n, s.ContextLength)
	}
	for i, id := range g.Prompt {
		if int64(id) >= int64(s.VocabSize) {
			return fmt.Errorf("%w: prompt id %d at %d with a vocabulary of %d", ErrGolden, id, i, s.VocabSize)
		}
	}
	if len(g.Top) < 1 || len(g.Top) > s.VocabSize {
		return fmt.Errorf("%w: a top %d with a vocabulary of %d", ErrGolden, len(g.Top), s.VocabSize)
	}
	for i, t := range g.Top {
		v := float64(t.Logit)
		if int64(t.ID) >= int64(s.VocabSize) || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: place %d holds id %d with logit %v", ErrGolden, i+1, t.ID, v)
		}
		if i > 0 {
			if p := g.Top[i-1]; p.Logit < t.Logit || p.Logit == t.Logit && p.ID >= t.ID {
				return fmt.Errorf("%w: places %d and %d are not in order", ErrGolden, i, i+1)
			}
		}
	}
	return nil
}
