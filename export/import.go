package export

import (
	"context"
	"fmt"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export/esp32ai"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/reference"
)

// importedEOT is the token that starts a text of a model without a tokenizer: esp32-ai trains its tokenizers with
// end-of-text first.
const importedEOT = 0

// ImportImage makes the image of a model of esp32-ai under a name. tok is its tokenizer; with nil the image has none. It
// writes nothing. The weights keep their codes and scales, so the options' overrides do not apply. The golden is computed
// by the plain reference of docs/numerics.md. Errors wrap those of package esp32ai, [placement.ErrFit], or name the tensor
// at fault.
func ImportImage(ctx context.Context, f *esp32ai.File, name string, tok *bpe.Tokenizer, opt Options) (*Built, error) {
	b, err := newBuilt(opt)
	if err != nil {
		return nil, err
	}
	entries := 0
	if tok != nil {
		entries = tok.Size()
	}
	m, err := f.Model(name, entries)
	if err != nil {
		return nil, err
	}
	b.Config, b.Tokenizer, b.Notes = m.Config, tok, m.Notes
	b.PostTraining = true // nothing was trained with the 8-bit activations of the engine
	if b.Model, err = importedModel(m, tok); err != nil {
		return nil, err
	}
	b.Model.Sizes.ModelHash = f.SHA256
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.Model.Golden, err = referenceGolden(&m.Model, tok); err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	head := func() (*qat.Matrix, error) {
		if m.Config.TieEmbeddings {
			return m.Matrices[configs.TokenEmbedding], nil
		}
		return m.Matrices[configs.Head], nil
	}
	if err := b.place(ctx, opt, head); err != nil {
		return nil, err
	}
	return b, nil
}

// importedModel lays the tensors out as an image stores them; golden and tiers are missing.
func importedModel(m *esp32ai.Model, tok *bpe.Tokenizer) (*image.Model, error) {
	text, err := m.Config.YAML()
	if err != nil {
		return nil, err
	}
	out := &image.Model{Sizes: image.SizesOf(m.Config), Config: text, Rope: image.Rope(m.Config)}
	if tok == nil {
		out.Tokenizer = bpe.AppendNone(nil, importedEOT)
	} else {
		out.Tokenizer = tok.AppendImage(nil)
		if out.Sizes.TokenizerHash, err = sha256Of("tokenizer", tok.Hash()); err != nil {
			return nil, err
		}
	}
	for _, t := range m.Config.Tensors() {
		x := emptyTensor(t)
		if t.Quant.Bits == 32 {
			if x.Codes, err = packFloats(m.Floats[t.Name], x.Rows, x.Cols); err != nil {
				return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
			}
		} else {
			packInto(&x, m.Matrices[t.Name])
		}
		out.Tensors = append(out.Tensors, x)
	}
	return out, nil
}

// referenceGolden runs a prompt through the plain reference. Without a tokenizer the prompt is ids from the whole
// vocabulary.
func referenceGolden(m *reference.Model, tok *bpe.Tokenizer) (image.Golden, error) {
	c := m.Config
	var ids []int32
	if tok != nil {
		ids = goldenPrompt(c, tok)
	} else {
		n := min(goldenIDs, c.ContextLength)
		for i := range n {
			ids = append(ids, int32(i*c.VocabSize/n))
		}
	}
	logits := m.Forward(ids)
	if i := notFinite(logits); i >= 0 {
		return image.Golden{}, fmt.Errorf("position %d, token %d: the logit is %v: the file is damaged, or of another model", i/c.VocabSize, i%c.VocabSize, logits[i])
	}
	return goldenOf(ids, logits), nil
}
