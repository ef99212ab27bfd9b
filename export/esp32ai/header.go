package esp32ai

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
)

// The reasons for which a file is refused.
var (
	// ErrMagic: the file is none of esp32-ai.
	ErrMagic = errors.New("not a model file of esp32-ai")
	// ErrVersion: the version, the header's size or a flag is unknown.
	ErrVersion = errors.New("unknown version of an esp32-ai model file")
	// ErrSizes: the header's sizes are no model that chiplm can run.
	ErrSizes = errors.New("impossible sizes in the header")
	// ErrLength: the file ends too early, or goes on after its last tensor.
	ErrLength = errors.New("wrong length")
	// ErrTensor: a tensor holds what no image of chiplm can hold.
	ErrTensor = errors.New("tensor cannot be imported")
	// ErrVocabulary: input and output vocabulary differ in a way that chiplm's models have no place for.
	ErrVocabulary = errors.New("vocabularies cannot be imported")
)

const (
	magic       = 0x00454C50 // PLE and a zero byte
	olderMagic  = 0x504C4531
	version     = 1
	headerBytes = 56
	olderBytes  = 40
	flagTied    = 1
)

var le = binary.LittleEndian

// Header is what a file says of its model.
type Header struct {
	Older        bool // written before the format had a version
	Tied         bool // the output layer is the token embedding; always so in older files
	InVocab      int  // rows of the token embedding
	OutVocab     int  // rows of the output layer; when tied, the first so many rows of the embedding
	DModel       int
	Layers       int
	Heads        int
	FFN          int
	PLEDim       int
	Context      int
	Group        int // of the quantiser; each tensor says its own
	RopeTheta    float32
	headerLength int
}

// HeaderBytes is how much of a file [ParseHeader] wants to see.
const HeaderBytes = headerBytes

// ParseHeader reads the start of a file: at least [HeaderBytes] of it, or all of a shorter file. Errors wrap [ErrMagic],
// [ErrVersion], [ErrLength], [ErrVocabulary] or [ErrSizes].
func ParseHeader(b []byte) (*Header, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrMagic, len(b))
	}
	word := func(at int) int { return int(le.Uint32(b[at:])) }
	signed := func(at int) int { return int(int32(le.Uint32(b[at:]))) }
	h := &Header{}
	var at int // of the sizes that both forms have
	switch m := le.Uint32(b); m {
	case olderMagic:
		if h.headerLength = olderBytes; len(b) < olderBytes {
			return nil, short("the header", olderBytes, len(b))
		}
		h.Older, h.Tied = true, true
		h.InVocab = signed(4)
		h.OutVocab = h.InVocab
		at = 8
	case magic:
		if h.headerLength = headerBytes; len(b) < headerBytes {
			return nil, short("the header", headerBytes, len(b))
		}
		switch v, n, flags := word(4), word(8), word(12); {
		case v != version:
			return nil, fmt.Errorf("%w: version %d, this chiplm reads version %d", ErrVersion, v, version)
		case n != headerBytes:
			return nil, fmt.Errorf("%w: a header of %d bytes, version %d has %d", ErrVersion, n, version, headerBytes)
		case flags&^flagTied != 0:
			return nil, fmt.Errorf("%w: flags %#x, this chiplm knows bit 0 (tied output layer)", ErrVersion, flags)
		default:
			h.Tied = flags&flagTied != 0
		}
		h.InVocab, h.OutVocab = word(16), word(20)
		at = 24
	default:
		return nil, fmt.Errorf("%w: it starts with % x, such a file with 50 4c 45 00, or 31 45 4c 50 in its older form", ErrMagic, b[:4])
	}
	for i, p := range []*int{&h.DModel, &h.Layers, &h.Heads, &h.FFN, &h.PLEDim, &h.Context, &h.Group} {
		*p = signed(at + 4*i)
	}
	h.RopeTheta = math.Float32frombits(le.Uint32(b[at+28:]))
	return h, h.check()
}

func short(what string, need, have int) error {
	return fmt.Errorf("%w: the file ends inside %s, which needs %d bytes, at byte %d: copy it again", ErrLength, what, need, have)
}

// check refuses sizes that are no model of chiplm, before anything is allocated by them.
func (h *Header) check() error {
	if h.Group < 1 {
		return fmt.Errorf("%w: group is %d, must be 1 or more", ErrSizes, h.Group)
	}
	if h.PLEDim < 1 {
		return fmt.Errorf("%w: the width of the per-layer embeddings is %d, must be 1 or more", ErrSizes, h.PLEDim)
	}
	if err := h.config("esp32-ai").Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrSizes, err)
	}
	switch {
	case h.OutVocab < 1:
		return fmt.Errorf("%w: the output vocabulary is %d, must be 1 or more", ErrSizes, h.OutVocab)
	case h.OutVocab > h.InVocab:
		return fmt.Errorf("%w: the model writes %d tokens and reads only %d; it cannot go on from what it wrote", ErrVocabulary, h.OutVocab, h.InVocab)
	case h.OutVocab < h.InVocab && !h.Tied:
		return fmt.Errorf("%w: the output layer of %d rows has a vocabulary of its own, %d tokens are read; "+
			"a model of chiplm writes the tokens that it reads", ErrVocabulary, h.OutVocab, h.InVocab)
	}
	return nil
}

// config is the model's configuration, but for the quantisation of its weights. The section train has no meaning but that
// it is in order: a file says nothing of its training.
func (h *Header) config(name string) *configs.Config {
	c := configs.Defaults()
	c.Name = name
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF = h.InVocab, h.DModel, h.Layers, h.Heads, h.FFN
	c.ContextLength, c.PLEDim, c.TieEmbeddings = h.Context, h.PLEDim, h.Tied
	c.Activation, c.QKNorm, c.Experts = configs.SwiGLU, false, 0
	c.RopeTheta, c.NormEps = float64(h.RopeTheta), 1e-6
	c.Quant.Weights = configs.WeightQuant{Bits: 4, Group: 0, Scale: configs.ScaleF16, Clip: 1}
	c.Train.MicroBatch, c.Train.BatchTokens = 1, max(h.Context, 1)
	c.Train.Tokens = int64(c.Train.BatchTokens)
	c.Train.ZeroInitProj = false
	return c
}
