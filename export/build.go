package export

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/qat"
)

// ErrNotQuantised is wrapped when a model has weights or activations that no image can hold.
var ErrNotQuantised = errors.New("the model is not quantised")

// Options say how a checkpoint becomes an image. The zero value keeps the checkpoint's quantisation and places
// everything in the one memory of a host.
type Options struct {
	Target    *targets.Target // nil: the built-in host
	Overrides Overrides       // quantise otherwise than trained
	Clusters  int             // of the head's rows, so that it can be read in part: NoClusters, AutoClusters or a number
	Measure   bool            // plan by what the model's own text reads, not by everything; clusters imply it
}

// Built is an image in memory with what was learnt on the way.
type Built struct {
	Bytes        []byte // the file
	Model        *image.Model
	Config       *configs.Config // as in the image: with the overrides
	Tokenizer    *bpe.Tokenizer  // nil: none is known, the tokens stand for no text
	Target       *targets.Target
	Firmware     *parts.Firmware // to lie beside the image, for the caller to give; nil: none
	Layout       *placement.Layout
	Measured     *placement.Measured // what the model's own text reads; nil if that was not asked for
	PostTraining bool                // the weights were not trained with this quantisation
	Notes        []string            // one sentence each, for the user
}

// BuildImage makes the image of a checkpoint. It writes nothing. The golden is computed by the training graph in exact
// mode; the engine only says how much memory it needs. Errors wrap [ErrNotQuantised], [placement.ErrFit], or name the
// tensor at fault.
func BuildImage(ctx context.Context, ck *checkpoints.Checkpoint, opt Options) (*Built, error) {
	b, err := newBuilt(opt)
	if err != nil {
		return nil, err
	}
	if b.Config, err = opt.Overrides.apply(ck.Config); err != nil {
		return nil, err
	}
	b.PostTraining, b.Notes = trainedOtherwise(ck, b.Config)
	if err := Exportable(b.Config); err != nil {
		return nil, err
	}
	if b.Tokenizer, err = tokenizerOf(ck); err != nil {
		return nil, err
	}
	if b.Model, err = modelOf(ck, b.Config, b.Tokenizer); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.Model.Golden, err = golden(b.Config, ck.Tensors, b.Tokenizer); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	head := func() (*qat.Matrix, error) { return headMatrix(b.Config, ck.Tensors) }
	if err := b.place(ctx, opt, head); err != nil {
		return nil, err
	}
	return b, nil
}

// place clusters the head if that is asked for, plans the placement and encodes the image; all else of the model is there.
func (b *Built) place(ctx context.Context, opt Options, head func() (*qat.Matrix, error)) error {
	var err error
	if b.Bytes, err = image.Encode(b.Model); err != nil {
		return err
	}
	if opt.Clusters != NoClusters || opt.Measure {
		if err := b.study(ctx, head, opt.Clusters); err != nil {
			return err
		}
		if b.Bytes, err = image.Encode(b.Model); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	buffers, err := engineBuffers(b.Bytes, b.Target, b.Config.VocabSize)
	if err != nil {
		return err
	}
	if b.Layout, err = placement.Plan(b.Config, b.Target, buffers, int64(len(b.Bytes)), b.Measured); err != nil {
		return err
	}
	for i := range b.Model.Tensors {
		b.Model.Tensors[i].Tier = b.Layout.Tensors[i].Tier
	}
	// The tiers change no offset and no size, so the plan stays right.
	b.Bytes, err = image.Encode(b.Model)
	return err
}

// newBuilt starts an image for the target of the options.
func newBuilt(opt Options) (*Built, error) {
	b := &Built{Target: opt.Target}
	if b.Target != nil {
		return b, nil
	}
	var err error
	b.Target, err = targets.Load("host")
	return b, err
}

// engineBuffers asks the engine what it needs beside the image.
func engineBuffers(file []byte, t *targets.Target, vocab int) (placement.Buffers, error) {
	im, err := engine.NewImage(file)
	if err != nil {
		return placement.Buffers{}, fmt.Errorf("the engine refuses the image: %w", err)
	}
	defer im.Close()
	arena, cache, err := engine.MemoryNeed(im, engine.Options{Batch: t.Buffers.Batch, Path: engine.PathPIE, Threads: min(t.Cores, engine.MaxThreads)})
	if err != nil {
		return placement.Buffers{}, err
	}
	return placement.Buffers{Arena: arena, Cache: cache, Logits: 4 * int64(vocab)}, nil
}

// tokenizerOf reads the checkpoint's tokenizer and holds it against the model.
func tokenizerOf(ck *checkpoints.Checkpoint) (*bpe.Tokenizer, error) {
	tok, err := bpe.Parse(ck.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("tokenizer of %s: %w", ck.Dir, err)
	}
	if tok.Size() > ck.Config.VocabSize {
		return nil, fmt.Errorf("tokenizer of %s has %d entries, the model only %d (vocab_size): the checkpoint mixes two runs; train again",
			ck.Dir, tok.Size(), ck.Config.VocabSize)
	}
	return tok, nil
}

// Exportable refuses what no image can hold. The error wraps [ErrNotQuantised] where that is the reason.
func Exportable(c *configs.Config) error {
	if c.Quant.Activations.Bits != 8 {
		return fmt.Errorf("%w: quant.activations.bits is %d, the engine computes with 8: chiplm export --bits 4 quantises after training, or train with 8",
			ErrNotQuantised, c.Quant.Activations.Bits)
	}
	for _, t := range c.Tensors() {
		if t.Quant.Bits == 32 && t.Class != configs.ClassNorm && t.Class != configs.ClassRouter {
			return fmt.Errorf("%w: %s has 32 bits (class %s): chiplm export --bits 4 quantises after training, or train with fewer",
				ErrNotQuantised, t.Name, t.Class)
		}
	}
	return nil
}

// modelOf quantises the weights and fills in everything but golden and tiers.
func modelOf(ck *checkpoints.Checkpoint, c *configs.Config, tok *bpe.Tokenizer) (*image.Model, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	m := &image.Model{Sizes: image.SizesOf(c), Config: text, Rope: image.Rope(c), Tokenizer: tok.AppendImage(nil)}
	for _, h := range []struct {
		what string
		hex  string
		dst  *[32]byte
	}{{"model", ck.ModelSHA256, &m.Sizes.ModelHash}, {"tokenizer", tok.Hash(), &m.Sizes.TokenizerHash}} {
		if h.hex == "" {
			continue // weights that were never saved have no hash
		}
		if *h.dst, err = sha256Of(h.what, h.hex); err != nil {
			return nil, err
		}
	}
	for _, t := range c.Tensors() {
		w := ck.Tensors[t.Name]
		if len(w) != t.Len() {
			return nil, fmt.Errorf("checkpoint %s: tensor %s has %d weights, the configuration asks for %d", ck.Dir, t.Name, len(w), t.Len())
		}
		packed, err := pack(t, w)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		m.Tensors = append(m.Tensors, packed)
	}
	return m, nil
}

// sha256Of reads the hash of something.
func sha256Of(what, text string) (out [32]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(out) {
		return out, fmt.Errorf("%s hash %q is no SHA-256", what, text)
	}
	copy(out[:], b)
	return out, nil
}
