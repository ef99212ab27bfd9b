package export

import (
	"fmt"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export/image"
)

// goldenInfo is a golden in readable form: golden.json, and part of `chiplm image info`.
type goldenInfo struct {
	Text   string       `json:"text"` // of the prompt, end-of-text left out
	Prompt []uint32     `json:"prompt"`
	Digest string       `json:"digest"` // FNV-1a-64 over all positions, hex
	Top    []scoredText `json:"top"`    // the best at the last position
}

type scoredText struct {
	image.Scored
	Text string `json:"text"`
}

// describeGolden tells the texts of a golden; a nil tokenizer has none.
func describeGolden(g *image.Golden, tok *bpe.Tokenizer) goldenInfo {
	text := func(id uint32) []byte {
		if tok == nil || int64(id) >= int64(tok.Size()) {
			return nil // a model may have more rows than its tokenizer has entries
		}
		return tok.Bytes(int32(id))
	}
	out := goldenInfo{Prompt: g.Prompt, Digest: fmt.Sprintf("%016x", g.Digest)}
	var prompt []byte
	for _, id := range g.Prompt {
		prompt = append(prompt, text(id)...)
	}
	out.Text = string(prompt)
	for _, t := range g.Top {
		out.Top = append(out.Top, scoredText{t, string(text(t.ID))})
	}
	return out
}

// ids are those of the best tokens.
func (g *goldenInfo) ids() []uint32 {
	var out []uint32
	for _, t := range g.Top {
		out = append(out, t.ID)
	}
	return out
}
