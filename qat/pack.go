package qat

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
)

// PackCodes lays the codes out as docs/image.md says: rows of whole 16-byte blocks, two's complement, the columns of a
// block spread over it so that a shift and a mask unpack 16 lanes.
func (m *Matrix) PackCodes() []byte {
	stride := Stride(m.Spec, m.Cols)
	out := make([]byte, m.Rows*stride)
	mask := byte(1<<m.Bits - 1)
	for r := range m.Rows {
		row := out[r*stride : (r+1)*stride]
		for c := range m.Cols {
			at, shift := place(m.Bits, c)
			row[at] |= (byte(m.Codes[r*m.Cols+c]) & mask) << shift
		}
	}
	return out
}

// PackColumns lays codes and scales out transposed, a block of rows at a time: for each block the codes of its columns,
// each packed like a row of [Matrix.PackCodes], and the scales of its groups, one for each row. block divides the rows.
func (m *Matrix) PackColumns(block int) (codes, scales []byte) {
	groups := Groups(m.Spec, m.Cols)
	columns := &Matrix{Spec: m.Spec, Rows: m.Rows / block * m.Cols, Cols: block, Codes: make([]int8, len(m.Codes)),
		Scales: make([]float32, len(m.Scales))}
	for r := range m.Rows {
		first, in := r/block, r%block
		for c := range m.Cols {
			columns.Codes[(first*m.Cols+c)*block+in] = m.Codes[r*m.Cols+c]
		}
		for g := range groups {
			columns.Scales[(first*groups+g)*block+in] = m.Scales[r*groups+g]
		}
	}
	return columns.PackCodes(), columns.PackScales()
}

// place is the byte of a row that holds column c, and the bit at which its code starts.
func place(bits, c int) (at, shift int) {
	perBlock := blockBytes * 8 / bits
	in := c % perBlock
	return c/perBlock*blockBytes + in%blockBytes, in / blockBytes * bits
}

// PackScales lays the scales out, row after row, little endian, in their stored type.
func (m *Matrix) PackScales() []byte {
	if m.Scale == configs.ScaleF16 {
		out := make([]byte, 0, 2*len(m.Scales))
		for _, s := range m.Scales {
			out = binary.LittleEndian.AppendUint16(out, halfBits(s))
		}
		return out
	}
	out := make([]byte, 0, 4*len(m.Scales))
	for _, s := range m.Scales {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(s))
	}
	return out
}

// Unpack reads what [Matrix.PackCodes] and [Matrix.PackScales] wrote. It refuses wrong sizes, codes that quantisation
// never gives, padding that is not zero, and scales that are negative or not finite.
func Unpack(spec Spec, rows, cols int, codes, scales []byte) (*Matrix, error) {
	if err := check(spec, rows, cols); err != nil {
		return nil, err
	}
	groups, stride := Groups(spec, cols), Stride(spec, cols)
	scaleBytes := 4
	if spec.Scale == configs.ScaleF16 {
		scaleBytes = 2
	}
	if len(codes) != rows*stride || len(scales) != rows*groups*scaleBytes {
		return nil, fmt.Errorf("unpack: %d bytes of codes and %d of scales for %d rows of %d, where %d and %d belong",
			len(codes), len(scales), rows, cols, rows*stride, rows*groups*scaleBytes)
	}
	m := &Matrix{Spec: spec, Rows: rows, Cols: cols, Codes: make([]int8, rows*cols), Scales: make([]float32, rows*groups)}
	for r := range rows {
		row := codes[r*stride : (r+1)*stride]
		for c := range stride * 8 / spec.Bits {
			at, shift := place(spec.Bits, c)
			code := int8(row[at]>>shift<<(8-spec.Bits)) >> (8 - spec.Bits)
			switch {
			case c >= cols && code != 0:
				return nil, fmt.Errorf("unpack: row %d: the padding after column %d is not zero", r, cols-1)
			case c < cols && int(code) < -MaxCode(spec.Bits):
				return nil, fmt.Errorf("unpack: row %d, column %d: code %d is outside +-%d", r, c, code, MaxCode(spec.Bits))
			case c < cols:
				m.Codes[r*cols+c] = code
			}
		}
	}
	for i := range m.Scales {
		var s float32
		negative := false
		if scaleBytes == 2 {
			h := binary.LittleEndian.Uint16(scales[2*i:])
			negative, s = h&0x8000 != 0, HalfValue(h&0x7fff)
		} else {
			s = math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:]))
			negative = math.Signbit(float64(s))
		}
		if negative || !(s <= math.MaxFloat32) {
			return nil, fmt.Errorf("unpack: row %d, group %d: scale %v is negative or not finite", i/groups, i%groups, s)
		}
		m.Scales[i] = s
	}
	return m, nil
}
