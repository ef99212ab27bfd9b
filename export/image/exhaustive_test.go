package image

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// least is an image of a few kilobytes.
func least(t *testing.T, seed uint64) []byte {
	t.Helper()
	c, err := configs.Parse("least.yaml", []byte(`name: least
vocab_size: 257
d_model: 2
n_layers: 1
n_heads: 1
d_ff: 3
context_length: 4
ple_dim: 0
activation: relu
train: {batch_tokens: 16, micro_batch: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := testModel(c, seed)
	return encode(t, m)
}

// sealFile makes the checksum of the file right, and leaves all others.
func sealFile(b []byte) {
	le.PutUint32(b[28:], 0)
	le.PutUint32(b[28:], crc32.ChecksumIEEE(b))
}

// TestEveryTruncationIsRefused cuts an image at every byte, as it stands and with a header that admits it.
func TestEveryTruncationIsRefused(t *testing.T) {
	good := least(t, 10)
	end := len(bytes.TrimRight(good, "\x00")) // at least the last section's last code or scale
	for n := range good {
		want := ErrFileBytes
		if n < HeaderBytes {
			want = ErrShort
		}
		if _, err := Read(bytes.NewReader(good[:n]), int64(n)); !errors.Is(err, want) {
			t.Fatalf("%d of %d bytes: %v, want %v", n, len(good), err, want)
		}
		if n < HeaderBytes {
			continue
		}
		b := bytes.Clone(good[:n])
		le.PutUint64(b[16:], uint64(n))
		sealFile(b)
		_, err := Read(bytes.NewReader(b), int64(n))
		if n < end+TailBytes && !errors.Is(err, ErrSections) {
			t.Fatalf("%d of %d bytes, admitted: %v, want %v", n, len(good), err, ErrSections)
		}
	}
}

// TestEveryBitIsCaught flips every bit of an image, with the checksum of the file as it is and made right: then the checks
// of header and padding or the checksum of a section find it.
func TestEveryBitIsCaught(t *testing.T) {
	good := least(t, 11)
	f, err := Read(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	section := make([]bool, len(good))
	for _, s := range f.Sections {
		for i := range s.Bytes {
			section[s.Offset+i] = true
		}
	}
	b := bytes.Clone(good)
	for i := range 8 * len(b) {
		at := i / 8
		b[at] ^= 1 << (i % 8)
		_, err := Read(bytes.NewReader(b), int64(len(b)))
		if err == nil || at >= HeaderBytes && !errors.Is(err, ErrFileCRC) {
			t.Fatalf("bit %d of byte %d: %v", i%8, at, err)
		}
		if at < 28 || at >= 32 { // what is left is the file's checksum
			sealFile(b)
			err := firstFailure(b)
			if err == nil || section[at] && !errors.Is(err, ErrSectionCRC) {
				t.Fatalf("bit %d of byte %d, the file's checksum made right: %v", i%8, at, err)
			}
		}
		b[at] ^= 1 << (i % 8)
		copy(b[28:32], good[28:])
	}
	if !bytes.Equal(b, good) {
		t.Error("the image was not restored")
	}
}
