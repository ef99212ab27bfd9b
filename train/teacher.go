package train

import (
	"fmt"
	"path/filepath"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/usage"
)

// teacher is a trained model whose distributions over the next token a run aims at, beside the text itself (train.distill).
type teacher struct {
	path    string // the run or checkpoint, as the user named it
	hash    string // SHA-256 of its weights
	cfg     *configs.Config
	weights *arch.Weights
}

// openTeacher loads the teacher of a run, nil where the settings ask for none. root is where runs are kept.
func openTeacher(root, name string, cfg *configs.Config, tok *bpe.Tokenizer) (*teacher, error) {
	switch {
	case cfg.Train.Distill == 0 && name == "":
		return nil, nil
	case cfg.Train.Distill == 0:
		return nil, usage.Errorf("--teacher: train.distill is 0, so %s would teach nothing: give --set train.distill=0.5, or leave --teacher out", name)
	case name == "":
		return nil, usage.Errorf("train.distill is %g: name the run to learn from with --teacher", cfg.Train.Distill)
	}
	path, err := checkpoints.Resolve(root, name)
	if err != nil {
		return nil, fmt.Errorf("--teacher: %w", err)
	}
	ck, err := checkpoints.LoadModel(path)
	if err != nil {
		return nil, fmt.Errorf("--teacher: %w", err)
	}
	other, err := bpe.Parse(ck.Tokenizer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--teacher: the tokenizer of %s: %w", path, err)
	case other.Hash() != tok.Hash():
		return nil, fmt.Errorf("--teacher: %s has another tokenizer than this run (SHA-256 %.12s and %.12s), so its distributions are of other tokens: "+
			"give its own with --tokenizer %s", path, other.Hash(), tok.Hash(), shellWord(filepath.Join(ck.Dir, checkpoints.TokenizerFile)))
	case ck.Config.ContextLength < cfg.ContextLength:
		return nil, fmt.Errorf("--teacher: %s has a context_length of %d, shorter than the %d of this run", path, ck.Config.ContextLength, cfg.ContextLength)
	}
	weights, err := arch.WeightsOf(ck.Config, ck.Tensors)
	if err != nil {
		return nil, fmt.Errorf("--teacher: %s: %w", path, err)
	}
	return &teacher{path: path, hash: ck.ModelSHA256, cfg: ck.Config, weights: weights}, nil
}

// builder builds the teacher's graphs.
func (t *teacher) builder() Builder { return ArchBuilder(t.cfg, t.weights) }

// source is where the teacher is and the hash of its weights, both empty without one.
func (t *teacher) source() (path, hash string) {
	if t == nil {
		return "", ""
	}
	return t.path, t.hash
}
