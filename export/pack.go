package export

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/qat"
)

// pack quantises a tensor and lays it out as an image stores it.
func pack(t configs.Tensor, w []float32) (image.Tensor, error) {
	out := emptyTensor(t)
	if out.Bits == 32 {
		var err error
		out.Codes, err = packFloats(w, out.Rows, out.Cols)
		return out, err
	}
	m, err := qat.Quantise(t.Quant, w, out.Rows, out.Cols)
	if err != nil {
		return out, err
	}
	packInto(&out, m)
	return out, nil
}

// emptyTensor is a tensor of an image without its codes.
func emptyTensor(t configs.Tensor) image.Tensor {
	out := image.Tensor{
		Name: t.Name, Rows: t.Rows(), Cols: t.Cols(), Bits: t.Quant.Bits, Group: t.Quant.Group,
		ScaleType: image.ScaleTypeOf(t.Quant), Tier: image.SRAM, Block: t.Block,
	}
	if out.Bits == 32 {
		out.Group = 0
	}
	return out
}

// packInto lays codes and scales out as the tensor is stored.
func packInto(t *image.Tensor, m *qat.Matrix) {
	if t.Block > 0 {
		t.Codes, t.Scales = m.PackColumns(t.Block)
	} else {
		t.Codes, t.Scales = m.PackCodes(), m.PackScales()
	}
}

// packFloats stores rows of float32 values, each padded to whole blocks. The format has no place for values that are
// not finite; nor for subnormal ones, which the engine refuses since a chip may flush them.
func packFloats(w []float32, rows, cols int) ([]byte, error) {
	stride := image.Stride(32, cols)
	b := make([]byte, rows*stride)
	for r := range rows {
		for c := range cols {
			v := w[r*cols+c]
			a := math.Abs(float64(v))
			if !(a == 0 || a >= 0x1p-126 && a <= math.MaxFloat32) {
				return nil, fmt.Errorf("row %d, column %d is %v: an image holds no such value; the training went wrong before this checkpoint", r, c, v)
			}
			binary.LittleEndian.PutUint32(b[r*stride+4*c:], math.Float32bits(v))
		}
	}
	return b, nil
}
