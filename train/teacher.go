package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
)

// Trainable makes a checkpoint for the training graph of a released model, as export.Trainable does.
type Trainable func(*released.Model) (*checkpoints.Checkpoint, error)

// teacher is a trained model whose distributions over the next token a run aims at, beside the text itself (train.distill).
type teacher struct {
	path    string // the run, the checkpoint or the released model, as the user named it
	hash    string // SHA-256 of its weights
	step    int    // that it was trained to
	cfg     *configs.Config
	tok     *bpe.Tokenizer
	tokPath string // where its tokenizer is; empty for a released model that the program carries
	weights *arch.Weights
}

// openTeacher loads the teacher of a run, nil where the settings ask for none. A name that is no path and no run under o.Out
// may be that of a released model.
func openTeacher(ctx context.Context, o Options, name string, cfg *configs.Config, say note) (*teacher, error) {
	switch {
	case cfg.Train.Distill == 0 && name == "":
		return nil, nil
	case cfg.Train.Distill == 0:
		return nil, usage.Errorf("--teacher: train.distill is 0, so %s would teach nothing: give --set train.distill=0.5, or leave --teacher out", name)
	case name == "":
		return nil, usage.Errorf("train.distill is %g: name the run or released model to learn from with --teacher", cfg.Train.Distill)
	}
	path, ck, err := o.loadTeacher(ctx, name, say)
	if err != nil {
		return nil, fmt.Errorf("--teacher: %w", err)
	}
	t := &teacher{path: path, hash: ck.ModelSHA256, step: ck.State.Step, cfg: ck.Config}
	if all := ck.Config.Train.Steps(); t.step < all {
		say("the teacher %s is at step %s of %s, not trained to its end", path, digits.Comma(int64(t.step)), digits.Comma(int64(all)))
	}
	if checkpoints.Kind(ck.Dir) != "" {
		t.tokPath = filepath.Join(ck.Dir, checkpoints.TokenizerFile)
	}
	if t.tok, err = bpe.Parse(ck.Tokenizer); err != nil {
		return nil, fmt.Errorf("--teacher: the tokenizer of %s: %w", path, err)
	}
	if ck.Config.ContextLength < cfg.ContextLength {
		return nil, fmt.Errorf("--teacher: %s has a context_length of %d, shorter than the %d of this run", path, ck.Config.ContextLength, cfg.ContextLength)
	}
	if t.weights, err = arch.WeightsOf(ck.Config, ck.Tensors); err != nil {
		return nil, fmt.Errorf("--teacher: %s: %w", path, err)
	}
	return t, nil
}

// loadTeacher finds the model that a user names as a teacher, and says how it is called from now on.
func (o Options) loadTeacher(ctx context.Context, name string, say note) (path string, ck *checkpoints.Checkpoint, err error) {
	found, err := released.Find(ctx, o.Out, name, noteWriter{say})
	switch {
	case err != nil:
		return "", nil, err
	case found.Model == nil:
		ck, err = checkpoints.LoadModel(found.Path)
		return found.Path, ck, err
	case o.Released == nil:
		return "", nil, errors.New("released models teach no run here")
	}
	ck, err = o.Released(found.Model)
	return found.Model.Source, ck, err
}

// check holds a teacher's tokenizer against that of the run.
func (t *teacher) check(tok *bpe.Tokenizer) error {
	if t == nil || t.tok.Hash() == tok.Hash() {
		return nil
	}
	advice := "leave --tokenizer out to have the teacher's"
	if t.tokPath != "" {
		advice = "give its own with --tokenizer " + usage.ShellWord(t.tokPath)
	}
	return fmt.Errorf("--teacher: %s has another tokenizer than this run (SHA-256 %.12s and %.12s), so its distributions are of other tokens: %s",
		t.path, t.tok.Hash(), tok.Hash(), advice)
}

// builder builds the teacher's graphs.
func (t *teacher) builder() Builder { return ArchBuilder(t.cfg, t.weights) }

// record puts the teacher into the state of its pupil.
func (t *teacher) record(state *checkpoints.State) {
	if t != nil {
		state.Teacher, state.TeacherHash, state.TeacherStep = t.path, t.hash, t.step
	}
}

// taughtBy is the checkpoint of a run that taught so far, where the run still has it, though it may have been trained on since;
// else what the user named.
func taughtBy(state *checkpoints.State) string {
	if checkpoints.Kind(state.Teacher) == "run" {
		if step := filepath.Join(state.Teacher, checkpoints.StepName(state.TeacherStep)); checkpoints.Kind(step) == "checkpoint" {
			return step
		}
	}
	return state.Teacher
}
