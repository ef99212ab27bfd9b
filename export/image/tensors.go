package image

import "github.com/chiplm/chiplm/configs"

// ClassClusters is the class of the tensors that let the head be read in part. They follow those of [configs.Config.Tensors]
// in an image with clusters; checkpoints have none of them.
const ClassClusters configs.TensorClass = "clusters"

// The names of these tensors. All but the rotation hold bytes: 8 bits without scales.
const (
	HeadRotation = "head_rotation"
	HeadBounds   = "head_bounds"
	HeadBlocks0  = "head_blocks.0"
	HeadBlocks1  = "head_blocks.1"
	HeadOrder    = "head_order"
)

// Sizes of the clustered head's data, which docs/image.md describes.
const (
	BlockLanes   = 30 // codes of a block
	blockLevels  = 2
	boxBytes     = 8
	idsPerRow    = 4
	boundsHeader = 32
	maxClusters  = 1 << 16
)

// BoundsBytes is the length of head_bounds.
func BoundsBytes(d, clusters int) int {
	return boundsHeader + 4*d + blockLevels*(8+8*BlockLanes+4*d) + boxBytes*clusters + 4*(clusters+1)
}

// HeadTensors lists the tensors of a head of v rows and d columns with clusters; none without.
func HeadTensors(v, d, clusters int) []configs.Tensor {
	if clusters == 0 {
		return nil
	}
	raw := configs.WeightQuant{Bits: 8}
	t := func(name string, q configs.WeightQuant, shape ...int) configs.Tensor {
		return configs.Tensor{Name: name, Shape: shape, Class: ClassClusters, Quant: q}
	}
	return []configs.Tensor{
		t(HeadRotation, configs.WeightQuant{Bits: 8, Scale: configs.ScaleF32}, d, d),
		t(HeadBounds, raw, BoundsBytes(d, clusters)),
		t(HeadBlocks0, raw, v, BlockBytes),
		t(HeadBlocks1, raw, v, BlockBytes),
		t(HeadOrder, raw, (v+idsPerRow-1)/idsPerRow, 4*idsPerRow),
	}
}

// tensors lists what an image of these sizes holds.
func (s *Sizes) tensors() []configs.Tensor {
	return append(s.config().Tensors(), HeadTensors(s.VocabSize, s.DModel, s.Clusters)...)
}

// OfClusters says whether a tensor of that name belongs to a clustered head, and so was made at export.
func OfClusters(name string) bool {
	switch name {
	case HeadRotation, HeadBounds, HeadBlocks0, HeadBlocks1, HeadOrder:
		return true
	}
	return false
}

// IsBytes says whether a tensor of an image holds bytes rather than numbers.
func IsBytes(t configs.Tensor) bool { return t.Class == ClassClusters && t.Name != HeadRotation }

// Raw says whether the tensor holds bytes rather than numbers.
func (t *Tensor) Raw() bool { return t.Bits == 8 && t.ScaleType == ScaleNone }
