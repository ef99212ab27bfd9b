package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

// resume makes a run ready to go on from its newest checkpoint. What the person does not give is as the run was
// started; what is given and differs in a way that changes the weights is refused, all of it named at once.
func (s *session) resume(ctx context.Context, o Options, say note) (err error) {
	if s.dir, err = o.resumeDir(); err != nil {
		return err
	}
	if s.lock, err = checkpoints.Lock(s.dir); err != nil {
		return err
	}
	if s.from, err = checkpoints.Load(s.dir); err != nil {
		return err
	}
	for _, n := range s.from.Notes {
		say("%s", n)
	}
	if s.from.Moments == nil {
		return fmt.Errorf("%s holds weights alone, without the optimiser's state, so training cannot go on from it", s.from.Dir)
	}
	var changed changes
	if err := s.resumeConfig(o, &changed); err != nil {
		return err
	}
	if err := s.settle(o, say); err != nil {
		return err
	}
	if err := s.enter(ctx, "reading the corpus"); err != nil {
		return err
	}
	if err := s.resumeCorpora(ctx, o, &changed); err != nil {
		return err
	}
	s.clock.charge(opening)
	if err := s.resumeTokenizer(o, &changed); err != nil {
		return err
	}
	s.clock.charge(tokenizing)
	if err := s.resumeTeacher(ctx, o, &changed, say); err != nil {
		return err
	}
	return changed.check(s.dir, o.Force, say)
}

func (s *session) resumeConfig(o Options, changed *changes) (err error) {
	old := s.from.Config
	if o.Config != "" || o.Model != nil {
		s.cfg, err = o.model("")
	} else {
		var text []byte
		if text, err = old.YAML(); err != nil {
			return err
		}
		s.cfg, err = configs.Parse(filepath.Join(s.from.Dir, checkpoints.ConfigFile), text, o.Sets...)
	}
	if err != nil {
		return err
	}
	s.cfg.Name = old.Name // a run keeps its name, whatever the settings come from
	if !slices.EqualFunc(old.Tensors(), s.cfg.Tensors(), func(a, b configs.Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape)
	}) {
		return fmt.Errorf("%s: the configuration given is of another model, whose tensors differ from the run's: start a new "+
			"run with --name", s.dir)
	}
	if old.TrainHash() == s.cfg.TrainHash() {
		return nil
	}
	same := *s.cfg // apart from what a resume may change: see configs.Config.TrainHash
	same.Train.ValidEvery, same.Train.ValidTokens = old.Train.ValidEvery, old.Train.ValidTokens
	same.Train.SampleEvery, same.Train.SaveEvery, same.Train.KeepLast =
		old.Train.SampleEvery, old.Train.SaveEvery, old.Train.KeepLast
	differences, err := configs.Differences(old, &same)
	if err != nil {
		return err
	}
	for _, d := range differences {
		changed.add("%s was %s and is now %s", d.Key, orNone(d.A), orNone(d.B))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

func (s *session) resumeCorpora(ctx context.Context, o Options, changed *changes) (err error) {
	state := s.from.State
	if o.Corpus == "" {
		s.corpus, err = reopen(ctx, state.Corpus, "--corpus")
	} else {
		s.corpus, s.heldOut, err = matchCorpus(ctx, o.Corpus, state.CorpusHash)
	}
	if err != nil {
		return err
	}
	switch {
	case o.Valid != "":
		s.heldOut, err = data.OpenContext(ctx, o.Valid)
	case s.heldOut == nil:
		s.heldOut, err = reopen(ctx, state.Valid, "--valid")
	}
	if err != nil {
		return err
	}
	if info := s.corpus.Info(); info.SHA256 != state.CorpusHash {
		changed.add("the corpus %s is not the one trained on so far, %s (SHA-256 %.12s, was %.12s)", info.Path, state.Corpus,
			info.SHA256, state.CorpusHash)
	}
	if info := s.heldOut.Info(); info.SHA256 != state.ValidHash {
		changed.add("the held-out text %s is not the one scored so far, %s (SHA-256 %.12s, was %.12s)", info.Path, state.Valid,
			info.SHA256, state.ValidHash)
	}
	return nil
}

// reopen opens a corpus where it was when the run started.
func reopen(ctx context.Context, path, flag string) (data.Corpus, error) {
	c, err := data.OpenContext(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the run reads it; if it has moved, say where with %s", err, flag)
	}
	return c, err
}

// matchCorpus opens the corpus given for a run that was trained on the one of that hash: the whole of it, or the
// training part of a split, in which case the held-out part comes with it. Where neither matches it is the whole.
func matchCorpus(ctx context.Context, path, hash string) (corpus, heldOut data.Corpus, err error) {
	whole, err := data.OpenContext(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if part := data.Split(whole, false); part.Info().SHA256 == hash {
		return part, data.Split(whole, true), nil
	}
	return whole, nil, nil
}

// resumeTeacher opens the teacher that is given, or else that of the run so far, unless the settings no longer ask for one.
func (s *session) resumeTeacher(ctx context.Context, o Options, changed *changes, say note) (err error) {
	name, state := o.Teacher, s.from.State
	if name == "" && s.cfg.Train.Distill > 0 {
		name = taughtBy(&state)
	}
	s.teacher, err = openTeacher(ctx, o, name, s.cfg, say)
	if errors.Is(err, fs.ErrNotExist) && o.Teacher == "" {
		return fmt.Errorf("%w: the run learns from it; if it has moved, say where with --teacher", err)
	}
	if err != nil {
		return err
	}
	if s.teacher != nil && s.teacher.hash != state.TeacherHash {
		changed.add("the teacher %s at step %d has other weights than the one learned from so far, %s at step %d (SHA-256 %.12s, was %.12s)",
			s.teacher.path, s.teacher.step, orNone(state.Teacher), state.TeacherStep, s.teacher.hash, orNone(state.TeacherHash))
	}
	if err := s.teacher.check(s.tok); err != nil {
		return err
	}
	return checkTeacher(s.cfg, s.teacher, s.workers, freeMemory())
}

func (s *session) resumeTokenizer(o Options, changed *changes) (err error) {
	path := o.Tokenizer
	if path == "" {
		path = filepath.Join(s.from.Dir, checkpoints.TokenizerFile)
		s.tok, err = bpe.Parse(s.from.Tokenizer)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	} else if s.tok, err = bpe.Load(path); err != nil {
		return err
	}
	if hash := s.tok.Hash(); hash != s.from.State.TokenizerHash {
		changed.add("the tokenizer %s is another (SHA-256 %.12s, was %.12s)", path, hash, s.from.State.TokenizerHash)
	}
	o.Tokenizer = path
	return s.checkVocabulary(o)
}
