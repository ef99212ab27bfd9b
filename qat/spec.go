package qat

import (
	"fmt"

	"github.com/chiplm/chiplm/configs"
)

// Spec says how one matrix is quantised: bits (2, 4, 8), columns that share a scale, and the type of the scales.
type Spec = configs.WeightQuant

// tiny is the magnitude below which a group or a vector counts as zero.
const tiny = 0x1p-100

// blockBytes is the unit in which rows of codes are packed.
const blockBytes = 16

// MaxCode is the largest code of weights of so many bits: 1, 7 or 127, and 0 for weights that are not quantised.
func MaxCode(bits int) int {
	switch bits {
	case 2, 4, 8:
		return 1<<(bits-1) - 1
	}
	return 0
}

// Divisor is what the largest magnitude of a group is divided by to give its scale: the largest code over spec.Clip, so that
// with a clip below 1 weights beyond this share of the largest are cut off, and the others lie closer.
func Divisor(spec Spec) float32 {
	q := float64(MaxCode(spec.Bits))
	if spec.Clip > 0 {
		q /= spec.Clip
	}
	return float32(q)
}

// Groups is the number of scales in a row of cols columns.
func Groups(spec Spec, cols int) int {
	if spec.Group <= 0 {
		return 1
	}
	return (cols + spec.Group - 1) / spec.Group
}

// Stride is the number of bytes that a row of cols codes takes in an image: whole blocks of 16 bytes.
func Stride(spec Spec, cols int) int {
	perBlock := blockBytes * 8 / spec.Bits
	return (cols + perBlock - 1) / perBlock * blockBytes
}

// width is the number of columns of a full group.
func width(spec Spec, cols int) int {
	if spec.Group <= 0 || spec.Group > cols {
		return cols
	}
	return spec.Group
}

func check(spec Spec, rows, cols int) error {
	if MaxCode(spec.Bits) == 0 {
		return fmt.Errorf("quantise: %d bits cannot be quantised, use 2, 4 or 8", spec.Bits)
	}
	if spec.Group < 0 {
		return fmt.Errorf("quantise: a group of %d columns is impossible, use 32, 64, 128, or 0 for the row", spec.Group)
	}
	if spec.Scale != configs.ScaleF32 && spec.Scale != configs.ScaleF16 {
		return fmt.Errorf("quantise: scale type %q is unknown, use %q or %q", spec.Scale, configs.ScaleF32, configs.ScaleF16)
	}
	if rows < 1 || cols < 1 {
		return fmt.Errorf("quantise: a matrix of %d rows and %d columns is impossible", rows, cols)
	}
	return nil
}
