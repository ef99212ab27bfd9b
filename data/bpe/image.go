package bpe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// imageKind names byte-level BPE with GPT-2's splitting in an image.
const imageKind = 1

// noneKind names the absence of a tokenizer in an image.
const noneKind = 0

// imageHeader is the bytes before the offsets: kind, entries, merges, end-of-text id, bytes.
const imageHeader = 20

// ErrImage is in the chain of every error of [FromImage].
var ErrImage = errors.New("bad tokenizer section")

// ErrNone is in the chain of errors for a section that says that the model comes without a tokenizer.
var ErrNone = errors.New("the image has no tokenizer: its tokens stand for no text, and only their ids can be used")

// AppendNone appends the tokenizer section of a model whose tokens stand for no text that is known. Texts start and end with
// the token eot all the same.
func AppendNone(dst []byte, eot int32) []byte {
	for _, v := range []uint32{noneKind, 0, 0, uint32(eot), 0, 0} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

// AppendImage appends the tokenizer section of an image (TOKN) to dst.
func (t *Tokenizer) AppendImage(dst []byte) []byte {
	le := binary.LittleEndian
	total := 0
	for _, e := range t.entries {
		total += len(e)
	}
	for _, v := range []int{imageKind, len(t.entries), len(t.merges), int(t.eot), total} {
		dst = le.AppendUint32(dst, uint32(v))
	}
	offset := uint32(0)
	dst = le.AppendUint32(dst, offset)
	for _, e := range t.entries {
		offset += uint32(len(e))
		dst = le.AppendUint32(dst, offset)
	}
	for _, m := range t.merges {
		dst = le.AppendUint32(dst, uint32(m.left))
		dst = le.AppendUint32(dst, uint32(m.right))
		dst = le.AppendUint32(dst, uint32(m.result))
	}
	for _, e := range t.entries {
		dst = append(dst, e...)
	}
	return dst
}

// FromImage reads the tokenizer section of an image. The section must be whole and hold nothing else. The error is
// [ErrNone] for one that [AppendNone] wrote.
func FromImage(b []byte) (*Tokenizer, error) {
	t, err := fromImage(b)
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	return t, err
}

func fromImage(b []byte) (*Tokenizer, error) {
	if len(b) < imageHeader {
		return nil, fmt.Errorf("%d bytes are too few for its header of %d", len(b), imageHeader)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	kind, n, m, eot, size := word(0), uint64(word(1)), uint64(word(2)), word(3), uint64(word(4))
	if kind == noneKind && n == 0 && m == 0 && size == 0 && len(b) == imageHeader+4 && word(5) == 0 {
		return nil, ErrNone
	}
	if kind != imageKind {
		return nil, fmt.Errorf("kind %d is unknown; this program knows kind %d, byte-level BPE", kind, imageKind)
	}
	if want := imageHeader + 4*(n+1) + 12*m + size; uint64(len(b)) != want {
		return nil, fmt.Errorf("it has %d bytes, but its header (%d entries, %d merges, %d bytes of text) makes %d",
			len(b), n, m, size, want)
	}
	if eot > math.MaxInt32 {
		return nil, fmt.Errorf("the end-of-text id %d is not an entry", eot)
	}
	offsets, triples, text := imageHeader/4, imageHeader/4+int(n)+1, b[uint64(len(b))-size:]
	if first, last := word(offsets), word(offsets+int(n)); first != 0 || uint64(last) != size {
		return nil, fmt.Errorf("the offsets run from %d to %d, not from 0 to %d", first, last, size)
	}
	entries := make([][]byte, n)
	for i := range entries {
		from, to := word(offsets+i), word(offsets+i+1)
		if from > to || uint64(to) > size {
			return nil, fmt.Errorf("the offsets of entry %d, %d to %d, do not ascend", i, from, to)
		}
		entries[i] = text[from:to]
	}
	merges := make([]merge, m)
	for i := range merges {
		left, right, result := word(triples+3*i), word(triples+3*i+1), word(triples+3*i+2)
		if max(left, right, result) > math.MaxInt32 {
			return nil, fmt.Errorf("merge %d names entry %d, which does not exist", i, max(left, right, result))
		}
		merges[i] = merge{int32(left), int32(right), int32(result)}
	}
	return newTokenizer(entries, merges, int32(eot))
}
