package engine

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
)

// An error says which number the image stores and which one follows from its bytes or from this engine, and what to do.
func TestErrorsTellStoredFromComputed(t *testing.T) {
	im := smallModel(t).image(t, []int32{1})
	at := func(i int) uint64 { return le.Uint64(im.bytes[64+32*i+8:]) }
	for _, c := range []struct {
		name   string
		is     error
		change func(b []byte) []byte
		want   func(b []byte) string
	}{
		{"a flipped byte", ErrFileCRC, func(b []byte) []byte { b[at(6)+5] ^= 4; return b }, func(b []byte) string {
			sum := slices.Clone(b)
			clear(sum[28:32])
			return fmt.Sprintf("header: file CRC: the image stores %08x, its bytes give %08x: the checksum of the file is wrong: its bytes were changed; copy it again",
				le.Uint32(b[28:]), crc32.ChecksumIEEE(sum))
		}},
		{"a section", ErrSectionCRC, func(b []byte) []byte { b[at(1)+5] ^= 4; refixFileCRC(b); return b }, func(b []byte) string {
			return fmt.Sprintf("CONF: the image stores %08x, its bytes give %08x: ", le.Uint32(b[64+32+4:]), crc32.ChecksumIEEE(b[at(1):at(1)+le.Uint64(b[64+32+16:])]))
		}},
		{"cut off", ErrFileBytes, func(b []byte) []byte { return b[:len(b)-1100] }, func(b []byte) string {
			return fmt.Sprintf("the header says %s bytes, the file has %s: ", withCommas(len(b)+1100), withCommas(len(b)))
		}},
		{"only a start", ErrSize, func(b []byte) []byte { return b[:60] }, func([]byte) string { return "the file has 60 bytes, a header 64: " }},
		{"another file", ErrMagic, func(b []byte) []byte { copy(b, "GGUF"); return b },
			func([]byte) string { return `it starts with "GGUF", an image with "CLM\x00": ` }},
		{"version", ErrVersion, func(b []byte) []byte { b[4] = 9; return b }, func([]byte) string { return "header: version: is 9, this engine knows 2: " }},
		{"flags", ErrFlags, func(b []byte) []byte { b[13] = 2; return b }, func([]byte) string { return "header: flags: is 512, this engine knows 0: " }},
		{"section name", ErrSections, func(b []byte) []byte { copy(b[64+32:], "XXXX"); refixFileCRC(b); return b },
			func([]byte) string { return `CONF: the image has "XXXX" in its place: ` }},
		{"norm_eps", ErrModel, func(b []byte) []byte { le.PutUint32(b[at(0)+40:], math.Float32bits(-2.5)); fixCRCs(b); return b },
			func([]byte) string { return "MODL: norm_eps: the image stores -2.5: " }},
		{"a size", ErrModel, func(b []byte) []byte { le.PutUint32(b[at(0)+8:], 3000); fixCRCs(b); return b },
			func([]byte) string {
				return "MODL: n_layers: the image stores 3,000, the limit or right value is 256: "
			}},
		{"a tensor's name", ErrTensorName, func(b []byte) []byte { b[at(2)] = 'X'; fixCRCs(b); return b },
			func([]byte) string { return "token_embedding: entry 0 of the tensor table should have this name: " }},
		{"rotary tables", ErrRope, func(b []byte) []byte { le.PutUint32(b[at(3)+8:], math.Float32bits(2)); fixCRCs(b); return b },
			func([]byte) string { return "ROPE: entry at byte 8: " }},
		{"padding", ErrReserved, func(b []byte) []byte { b[len(b)-1] = 1; fixCRCs(b); return b }, func([]byte) string { return "padding at the end: " }},
	} {
		b := c.change(slices.Clone(im.bytes))
		_, err := NewImage(b)
		if want := c.want(b); !errors.Is(err, c.is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, want)
		}
	}
}

func withCommas(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", withCommas(n/1000), n%1000)
}
