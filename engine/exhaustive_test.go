package engine

import (
	"errors"
	"slices"
	"testing"
)

// TestEveryTruncationIsRefused cuts an image at every byte, as it stands and with a header that admits it.
func TestEveryTruncationIsRefused(t *testing.T) {
	b := seedImages(t)["relu"].bytes
	for n := range b {
		want := ErrFileBytes
		if n < 64 {
			want = ErrSize
		}
		if _, err := NewImage(b[:n]); !errors.Is(err, want) {
			t.Fatalf("%d of %d bytes: %v, want %v", n, len(b), err, want)
		}
		if n < 64 {
			continue
		}
		cut := slices.Clone(b[:n])
		le.PutUint64(cut[16:], uint64(n))
		refixFileCRC(cut)
		if _, err := NewImage(cut); !errors.Is(err, ErrSections) {
			t.Fatalf("%d of %d bytes, admitted: %v, want %v", n, len(b), err, ErrSections)
		}
	}
}

// TestEveryBitIsCaught flips every bit of an image: with its CRCs as they are, with that of the file made right, and, in
// the tensors, with those of the sections too. Each time the next CRC inwards finds it.
func TestEveryBitIsCaught(t *testing.T) {
	im := seedImages(t)["relu"]
	b := slices.Clone(im.bytes)
	inside := make([]bool, len(b)) // a section
	for _, s := range im.sections {
		for i := range s[1] {
			inside[s[0]+i] = true
		}
	}
	tensor := make([]bool, len(b))
	for _, at := range im.tensors {
		for _, f := range []int{72, 88} {
			for i := range le.Uint64(b[at+f+8:]) {
				tensor[le.Uint64(b[at+f:])+i] = true
			}
		}
	}
	header := []struct {
		end       int
		kept, fix error
	}{{4, ErrMagic, ErrMagic}, {8, ErrVersion, ErrVersion}, {12, ErrHeaderBytes, ErrHeaderBytes}, {16, ErrFlags, ErrFlags},
		{24, ErrFileBytes, ErrFileBytes}, {28, ErrFileCRC, ErrSections}, {32, ErrFileCRC, nil}, {64, ErrFileCRC, ErrReserved},
		{64 + 7*32, ErrFileCRC, nil}}
	for i := range 8 * len(b) {
		at := i / 8
		kept, fixed := ErrFileCRC, ErrReserved // padding
		if inside[at] {
			fixed = ErrSectionCRC
		}
		for _, h := range header {
			if at < h.end {
				kept, fixed = h.kept, h.fix
				break
			}
		}
		flip := func() { b[at] ^= 1 << (i % 8) }
		flip()
		if _, err := NewImage(b); !errors.Is(err, kept) {
			t.Fatalf("bit %d of byte %d: %v, want %v", i%8, at, err, kept)
		}
		if at < 28 || at >= 32 { // what is left is the file's CRC
			refixFileCRC(b)
			_, err := NewImage(b)
			if fixed != nil && !errors.Is(err, fixed) || err == nil {
				t.Fatalf("bit %d of byte %d, the file's CRC made right: %v, want %v", i%8, at, err, fixed)
			}
		}
		if tensor[at] {
			refixSectionCRCs(b)
			if _, err := NewImage(b); !errors.Is(err, ErrTensorCRC) {
				t.Fatalf("bit %d of byte %d, the CRCs of file and section made right: %v, want %v", i%8, at, err, ErrTensorCRC)
			}
		}
		flip()
		refixSectionCRCs(b)
	}
	if !slices.Equal(b, im.bytes) {
		t.Error("the image was not restored")
	}
}
