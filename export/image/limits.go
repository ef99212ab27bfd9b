package image

import (
	"fmt"
	"math"
)

// Largest sizes a reader accepts, as docs/image.md lists them and the C engine has them: far above what a chip holds, far
// below where arithmetic overflows.
const (
	maxVocab  = 1 << 24
	maxWidth  = 1 << 17 // d_model, n_heads, d_ff, ple_dim, context_length: 127 * 127 * 2^17 still fits 31 bits
	maxLayers = 1 << 8
	maxExpert = 1 << 10
	maxNgram  = 1 << 24
)

// validate checks the sizes alone and together; the error wraps [ErrSizes].
func (s *Sizes) validate() error {
	for _, c := range []struct {
		name          string
		v, least, top int
	}{
		{"vocab_size", s.VocabSize, 1, maxVocab}, {"d_model", s.DModel, 2, maxWidth}, {"n_layers", s.NLayers, 1, maxLayers},
		{"n_heads", s.NHeads, 1, maxWidth}, {"d_ff", s.DFF, 1, maxWidth}, {"context_length", s.ContextLength, 1, maxWidth},
		{"ple_dim", s.PLEDim, 0, maxWidth}, {"experts", s.Experts, 1, maxExpert},
		{"ngram_rows", s.NgramRows, 0, maxNgram},
		{"clusters", s.Clusters, 0, min(s.VocabSize, maxClusters)},
	} {
		if c.v < c.least || c.v > c.top {
			return fmt.Errorf("%w: %s is %d, must lie in %d to %d", ErrSizes, c.name, c.v, c.least, c.top)
		}
	}
	if s.DModel%s.NHeads != 0 || s.DModel/s.NHeads%2 != 0 {
		return fmt.Errorf("%w: d_model %d does not split into %d heads of even width", ErrSizes, s.DModel, s.NHeads)
	}
	for _, c := range []struct {
		name   string
		v      float32
		wanted bool
	}{
		{"norm_eps", s.NormEps, true}, {"score scale", s.ScoreScale, true}, {"c_e", s.PLEInput, s.PLEDim > 0},
		{"c_t", s.PLETable, s.PLEDim > 0}, {"c_h", s.PLEHalf, s.PLEDim > 0},
	} {
		switch {
		case c.wanted && !(c.v >= 0x1p-64 && c.v <= 0x1p64):
			return fmt.Errorf("%w: %s is %v, must lie in 2^-64 to 2^64", ErrSizes, c.name, c.v)
		case !c.wanted && math.Float32bits(c.v) != 0:
			return fmt.Errorf("%w: %s is %v with ple_dim 0, must be 0", ErrSizes, c.name, c.v)
		}
	}
	return nil
}

// validFormat checks bits, group, scale type and tier of a tensor, which holds bytes or numbers.
func (t *Tensor) validFormat(isBytes bool) error {
	if isBytes {
		if t.Bits != 8 || t.ScaleType != ScaleNone || t.Group != 0 || t.Tier >= Tiers {
			return fmt.Errorf("%d bits, scale type %d, group %d, tier %d; bytes have 8, 0, 0 and a tier of 0 to 2",
				t.Bits, t.ScaleType, t.Group, uint32(t.Tier))
		}
		return nil
	}
	switch t.Bits {
	case 2, 4, 8:
		if t.ScaleType != ScaleF32 && t.ScaleType != ScaleF16 {
			return fmt.Errorf("scale type %d with %d bits", t.ScaleType, t.Bits)
		}
	case 32:
		if t.ScaleType != ScaleNone || t.Group != 0 {
			return fmt.Errorf("scale type %d and group %d with 32 bits, which have none", t.ScaleType, t.Group)
		}
	default:
		return fmt.Errorf("%d bits; 2, 4, 8 and 32 are known", t.Bits)
	}
	switch t.Group {
	case 0, 32, 64, 128:
	default:
		return fmt.Errorf("group %d; 32, 64, 128 and 0 for the row are known", t.Group)
	}
	if t.Tier >= Tiers {
		return fmt.Errorf("tier %d; 0 sram, 1 psram and 2 flash are known", uint32(t.Tier))
	}
	return nil
}
