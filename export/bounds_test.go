package export

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
)

// The reader in Go and the C engine were written apart from docs/image.md; they accept and refuse the same values.
func TestReadersAgreeOnBounds(t *testing.T) {
	b := build(t, checkpoint(t, config(t, "context_length=64", "train.batch_tokens=128")), Options{}).Bytes
	le := binary.LittleEndian
	f, err := image.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	start := map[string]int64{}
	for _, s := range f.Sections {
		start[s.Name] = s.Offset
	}
	norm := f.Tensor("output_norm")
	float := math.Float32bits
	put := func(section string, at int64, v uint32) func(b []byte) {
		return func(b []byte) { le.PutUint32(b[start[section]+at:], v) }
	}
	for _, c := range []struct {
		name   string
		change func(b []byte)
		good   bool
	}{
		{"nothing", func([]byte) {}, true},
		{"norm_eps 0", put("MODL", 40, 0), false},
		{"norm_eps 2^-65", put("MODL", 40, float(0x1p-65)), false},
		{"c infinite", put("MODL", 44, float(float32(math.Inf(1)))), false},
		{"c 2^65", put("MODL", 44, float(0x1p65)), false},
		{"c negative", put("MODL", 44, float(-1)), false},
		{"c_e 0", put("MODL", 48, 0), false},
		{"c_h NaN", put("MODL", 56, 0x7fc00000), false},
		{"vocabulary", put("MODL", 0, 1<<24+1), false},
		{"257 layers", put("MODL", 8, 257), false},
		{"context 131,073", put("MODL", 20, 131073), false},
		{"1,025 experts", put("MODL", 28, 1025), false},
		{"2^24 + 1 rows of bigrams", put("MODL", 132, 1<<24+1), false},
		{"rope above 1", put("ROPE", 0, float(1)+1), false},
		{"rope subnormal", put("ROPE", 4*24*10, 1), false},
		{"golden without best tokens", func(b []byte) {
			// One id more takes the room of half a best token: keep the length by trading two ids for the one.
			n := le.Uint32(b[start["GOLD"]:]) + 2*le.Uint32(b[start["GOLD"]+4:])
			le.PutUint32(b[start["GOLD"]:], n)
			le.PutUint32(b[start["GOLD"]+4:], 0)
			for i := range int64(n) {
				le.PutUint32(b[start["GOLD"]+16+4*i:], 0)
			}
		}, false},
		{"norm subnormal", func(b []byte) { le.PutUint32(b[norm.CodesOffset:], 1) }, false},
	} {
		x := slices.Clone(b)
		c.change(x)
		rechecksum(x, norm, start["TENS"], len(f.Tensors))
		_, results, err := image.Check(bytes.NewReader(x), int64(len(x)))
		if err != nil {
			t.Fatal(err)
		}
		ours := true
		for _, r := range results {
			// The configuration inside says the same sizes, so only it would notice; the bound itself is wanted.
			ours = ours && (r.Err == nil || r.Name == "configuration")
		}
		im, engineErr := engine.NewImage(x)
		if engineErr == nil {
			im.Close()
		}
		if ours != c.good || (engineErr == nil) != c.good {
			t.Errorf("%s: want %v; reader %v (%v), engine %v", c.name, c.good, ours, results[len(results)-1], engineErr)
		}
	}
}

// rechecksum makes the checksums of one tensor, the sections and the file right again.
func rechecksum(b []byte, x *image.Tensor, table int64, tensors int) {
	le := binary.LittleEndian
	for i := range int64(tensors) {
		e := b[table+128*i:]
		if int64(le.Uint64(e[72:])) == x.CodesOffset {
			le.PutUint32(e[108:], crc32.ChecksumIEEE(b[x.CodesOffset:x.CodesOffset+int64(len(x.Codes))]))
		}
	}
	for i := range image.SectionNames() {
		e := b[64+32*i:]
		le.PutUint32(e[4:], crc32.ChecksumIEEE(b[le.Uint64(e[8:]):le.Uint64(e[8:])+le.Uint64(e[16:])]))
	}
	le.PutUint32(b[28:], 0)
	le.PutUint32(b[28:], crc32.ChecksumIEEE(b))
}
