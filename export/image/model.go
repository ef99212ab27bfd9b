package image

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// Format constants.
const (
	Version      = 2
	HeaderBytes  = 64
	Align        = 64  // of sections, codes and scales
	BlockBytes   = 16  // of packed codes
	TailBytes    = 64  // padding after the last section, so that vector loads may run past the end
	SectionBytes = 32  // of an entry of the section table
	TensorBytes  = 128 // of an entry of the tensor table
	sizesBytes   = 192
	nameBytes    = 48
)

var magic = [4]byte{'C', 'L', 'M', 0}

// sectionNames are the sections of an image, in order.
var sectionNames = [...]string{"MODL", "CONF", "TENS", "ROPE", "TOKN", "GOLD", "DATA"}

// SectionNames lists the sections of an image in file order.
func SectionNames() []string { return append([]string(nil), sectionNames[:]...) }

// Tier is the kind of memory a tensor is read from on the chip.
type Tier uint32

// The tiers, fastest first.
const (
	SRAM  Tier = 0
	PSRAM Tier = 1
	Flash Tier = 2
)

// Tiers is the number of tiers.
const Tiers = 3

// String is the tier's name: sram, psram or flash.
func (t Tier) String() string {
	switch t {
	case SRAM:
		return "sram"
	case PSRAM:
		return "psram"
	case Flash:
		return "flash"
	}
	return fmt.Sprintf("tier %d", uint32(t))
}

// MarshalText writes the tier's name, for JSON.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a tier's name.
func (t *Tier) UnmarshalText(b []byte) error {
	for c := range Tier(Tiers) {
		if string(b) == c.String() {
			*t = c
			return nil
		}
	}
	return fmt.Errorf("unknown tier %q: sram, psram or flash", b)
}

// Scale types of the tensor table.
const (
	ScaleNone uint32 = 0 // 32-bit tensors, and bytes
	ScaleF32  uint32 = 1
	ScaleF16  uint32 = 2
)

// Model is everything an image holds.
type Model struct {
	Sizes     Sizes
	Config    []byte    // the resolved configuration, YAML
	Tensors   []Tensor  // in the order of configs.Tensors, then of HeadTensors
	Rope      []float32 // cosines [context_length, d/2], then sines
	Tokenizer []byte    // the TOKN section
	Golden    Golden
}

// Sizes is the MODL section.
type Sizes struct {
	VocabSize     int                `json:"vocab_size"`
	DModel        int                `json:"d_model"`
	NLayers       int                `json:"n_layers"`
	NHeads        int                `json:"n_heads"`
	DFF           int                `json:"d_ff"`
	ContextLength int                `json:"context_length"`
	PLEDim        int                `json:"ple_dim"`
	Experts       int                `json:"experts"`    // 1 when dense
	NgramRows     int                `json:"ngram_rows"` // of the hashed bigram table; 0: none
	Activation    configs.Activation `json:"activation"`
	TiedHead      bool               `json:"tied_head"`
	QKNorm        bool               `json:"qk_norm"`
	NormEps       float32            `json:"norm_eps"`
	ScoreScale    float32            `json:"score_scale"`
	PLEInput      float32            `json:"ple_c_e"` // c_e of numerics.md
	PLETable      float32            `json:"ple_c_t"` // c_t
	PLEHalf       float32            `json:"ple_c_h"` // c_h
	TensorCount   int                `json:"tensors"`
	Clusters      int                `json:"clusters"` // of the head's rows; 0: it is read in full
	TokenizerHash [32]byte           `json:"-"`        // SHA-256 of tokenizer.json
	ModelHash     [32]byte           `json:"-"`        // SHA-256 of model.safetensors
}

// SizesOf derives the sizes and constants of a model from its configuration; the hashes are left zero.
func SizesOf(c *configs.Config) Sizes {
	s := Sizes{
		VocabSize: c.VocabSize, DModel: c.DModel, NLayers: c.NLayers, NHeads: c.NHeads, DFF: c.DFF,
		ContextLength: c.ContextLength, PLEDim: c.PLEDim, NgramRows: c.NgramRows, Experts: max(c.Experts, 1), Activation: c.Activation,
		TiedHead: c.TieEmbeddings, QKNorm: c.QKNorm, NormEps: float32(c.NormEps), TensorCount: len(c.Tensors()),
	}
	// Each constant is computed in double and rounded once, as numerics.md says.
	s.ScoreScale = c.ScoreScale()
	if c.PLEDim > 0 {
		s.PLEInput = float32(1 / math.Sqrt(float64(c.DModel)))
		s.PLETable = float32(math.Sqrt(float64(c.PLEDim)))
		s.PLEHalf = float32(1 / math.Sqrt2)
	}
	return s
}

// config is a configuration with these sizes, for the names and shapes that follow from them.
func (s *Sizes) config() *configs.Config {
	return &configs.Config{
		VocabSize: s.VocabSize, DModel: s.DModel, NLayers: s.NLayers, NHeads: s.NHeads, DFF: s.DFF,
		ContextLength: s.ContextLength, PLEDim: s.PLEDim, NgramRows: s.NgramRows, Experts: s.Experts, TieEmbeddings: s.TiedHead,
		Activation: s.Activation, QKNorm: s.QKNorm,
	}
}

// Rope lays out the rotary tables: cosines then sines, float32 [context_length, d/2] each.
func Rope(c *configs.Config) []float32 {
	cosines, sines := qat.Rotary(c.ContextLength, c.DModel/c.NHeads, c.RopeTheta)
	return append(cosines, sines...)
}

// Tensor is one tensor with its packed codes and scales, laid out as docs/image.md says.
type Tensor struct {
	Name      string
	Rows      int // 1 for a vector
	Cols      int
	Bits      int    // 2, 4, 8, or 32 for float32 values
	Group     int    // columns that share a scale; 0: the row
	ScaleType uint32 // ScaleNone, ScaleF32 or ScaleF16
	Tier      Tier
	Block     int    // 0: stored by rows; else transposed, a block of so many rows at a time
	Codes     []byte // StoredRows * Stride
	Scales    []byte // Rows * Groups * 4 or 2; none with 32 bits

	// Offsets from the start of the file: set by the reader, chosen by the writer.
	CodesOffset, ScalesOffset int64
}

// Parameters is the number of trained weights: none in the tensors of a clustered head, which are made at export.
func (t *Tensor) Parameters() int {
	if OfClusters(t.Name) {
		return 0
	}
	return t.Rows * t.Cols
}

// StoredRows is the number of runs of codes that start on a block: rows, or columns of each block when transposed.
func (t *Tensor) StoredRows() int {
	if t.Block > 0 {
		return t.Rows / t.Block * t.Cols
	}
	return t.Rows
}

// StoredCols is the number of codes in such a run.
func (t *Tensor) StoredCols() int {
	if t.Block > 0 {
		return t.Block
	}
	return t.Cols
}

// Stride is the number of bytes of such a run.
func (t *Tensor) Stride() int { return Stride(t.Bits, t.StoredCols()) }

// codesBytes is the number of bytes of the codes.
func (t *Tensor) codesBytes() int64 { return int64(t.StoredRows()) * int64(t.Stride()) }

// Groups is the number of scales per row.
func (t *Tensor) Groups() int {
	if t.ScaleType == ScaleNone {
		return 0
	}
	return Groups(t.Bits, t.Group, t.Cols)
}

// StoredBytes is what the tensor occupies: codes and scales.
func (t *Tensor) StoredBytes() int64 { return t.codesBytes() + t.scaleBytes() }

// PayloadBytes is what the codes need without the padding of each run.
func (t *Tensor) PayloadBytes() int64 {
	return int64(t.StoredRows()) * ((int64(t.StoredCols())*int64(t.Bits) + 7) / 8)
}

func (t *Tensor) scaleBytes() int64 {
	return int64(t.Rows) * int64(t.Groups()) * int64(scaleSize(t.ScaleType))
}

func scaleSize(scaleType uint32) int {
	switch scaleType {
	case ScaleF32:
		return 4
	case ScaleF16:
		return 2
	}
	return 0
}

// Stride is the number of bytes that the codes of a row of cols weights occupy.
func Stride(bits, cols int) int {
	perBlock := BlockBytes * 8 / bits
	return (cols + perBlock - 1) / perBlock * BlockBytes
}

// Groups is the number of scales of a row: 0 with 32 bits.
func Groups(bits, group, cols int) int {
	switch {
	case bits == 32:
		return 0
	case group == 0:
		return 1
	}
	return (cols + group - 1) / group
}

// ScaleTypeOf is the number of a scale type in the tensor table.
func ScaleTypeOf(q configs.WeightQuant) uint32 {
	switch {
	case q.Bits == 32, q.Scale == "":
		return ScaleNone
	case q.Scale == configs.ScaleF16:
		return ScaleF16
	}
	return ScaleF32
}

// Golden is a prompt with what the model must compute for it: the digest of numerics.md over all positions, and the
// best logits at the last one.
type Golden struct {
	Prompt []uint32 `json:"prompt"`
	Digest uint64   `json:"digest"`
	Top    []Scored `json:"top"`
}

// Scored is a token id with its logit.
type Scored struct {
	ID    uint32  `json:"id"`
	Logit float32 `json:"logit"`
}
