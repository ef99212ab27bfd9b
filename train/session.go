package train

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/shards"
)

// session is a run made ready: what training needs, at a fresh start or from a checkpoint.
type session struct {
	dir     string
	cfg     *configs.Config
	corpus  data.Corpus // to train on
	heldOut data.Corpus
	tok     *bpe.Tokenizer
	teacher *teacher // or nil
	shard   *shards.Shard
	lock    *checkpoints.RunLock
	from    *checkpoints.Checkpoint // nil at a fresh start
	plan    Plan
	workers int
	stage   string // what is being done, for the person who interrupts it
	clock   *clock
}

// note tells the person a line.
type note func(format string, args ...any)

// noteWriter tells what is written to it, a line at each call and without a "note: " before it.
type noteWriter struct{ say note }

func (w noteWriter) Write(b []byte) (int, error) {
	w.say("%s", strings.TrimPrefix(strings.TrimSuffix(string(b), "\n"), "note: "))
	return len(b), nil
}

// openSession makes a run ready, on the time of a clock. The caller closes it.
func openSession(ctx context.Context, o Options, clock *clock, say note) (*session, error) {
	s := &session{stage: "reading the settings", clock: clock}
	open := s.fresh
	if o.Resume {
		open = s.resume
	}
	err := open(ctx, o, say)
	if err == nil {
		err = s.tokenise(ctx, say)
	}
	if err != nil {
		s.close()
		if ctx.Err() != nil {
			err = s.interrupted(ctx)
		}
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	if s.shard != nil {
		s.shard.Close()
	}
	if s.lock != nil {
		_ = s.lock.Unlock()
	}
}

// fresh makes a new run ready.
func (s *session) fresh(ctx context.Context, o Options, say note) (err error) {
	if s.cfg, err = o.model(DefaultConfig); err != nil {
		return err
	}
	if o.Name != "" { // images and scores of a run carry its name
		s.cfg.Name = o.Name
		if err := s.cfg.Validate(); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	s.dir = filepath.Join(o.Out, s.cfg.Name)
	if err := refuseExisting(s.dir); err != nil {
		return err
	}
	if err := s.settle(o, say); err != nil {
		return err
	}
	if err := s.enter(ctx, "reading the corpus"); err != nil {
		return err
	}
	corpus := o.Corpus
	if corpus == "" {
		corpus = DefaultCorpus
	}
	if s.corpus, s.heldOut, err = OpenCorpora(ctx, corpus, o.Valid); err != nil {
		return err
	}
	if s.teacher, err = openTeacher(ctx, o, o.Teacher, s.cfg, say); err != nil {
		return err
	}
	s.clock.charge(opening)
	switch {
	case o.Tokenizer != "":
		s.tok, err = bpe.Load(o.Tokenizer)
	case s.teacher != nil:
		s.tok = s.teacher.tok
		say("tokenizer: %d entries, that of the teacher %s", s.tok.Size(), s.teacher.path)
	default:
		if err := s.enter(ctx, "training the tokenizer"); err != nil {
			return err
		}
		s.tok, err = trainTokenizer(ctx, s.corpus, s.cfg.VocabSize, say)
	}
	if err != nil {
		return err
	}
	s.clock.charge(tokenizing)
	if err := s.checkVocabulary(o); err != nil {
		return err
	}
	if err := s.teacher.check(s.tok); err != nil {
		return err
	}
	if err := checkTeacher(s.cfg, s.teacher, s.workers, freeMemory()); err != nil {
		return err
	}
	if s.lock, err = checkpoints.Lock(s.dir); err != nil {
		return err
	}
	return refuseExisting(s.dir) // again, now that nobody else writes there
}

// enter begins a stage, unless ctx has ended.
func (s *session) enter(ctx context.Context, stage string) error {
	s.stage = stage
	return ctx.Err()
}

// settle works out steps and workers, tells what the model costs, and refuses what does not fit into memory: all from
// the settings, before anything large is made.
func (s *session) settle(o Options, say note) (err error) {
	if s.plan, err = NewPlan(s.cfg); err != nil {
		return err
	}
	if s.workers, err = Workers(o.Workers, s.plan.MicroBatches); err != nil {
		return err
	}
	printBudget(say, s.cfg, s.plan, s.workers)
	return CheckMemory(s.cfg, s.workers)
}

// refuseExisting refuses to start a run where checkpoints are, be they readable or not: they are not this run's to
// replace.
func refuseExisting(dir string) error {
	some, err := checkpoints.HasCheckpoints(dir)
	if err != nil || !some {
		return err
	}
	return fmt.Errorf("%s holds a run already: go on with `%s`, start another with --name, or delete the folder", dir,
		resumeCommand(dir))
}

// OpenCorpora opens what to train on and what to hold out, as a new run does. An empty valid is the file beside the
// corpus, or a part of it.
func OpenCorpora(ctx context.Context, corpus, valid string) (train, heldOut data.Corpus, err error) {
	whole, err := data.OpenContext(ctx, corpus)
	if err != nil {
		return nil, nil, err
	}
	if valid == "" {
		return data.WithHeldOut(ctx, whole)
	}
	if heldOut, err = data.OpenContext(ctx, valid); err != nil {
		return nil, nil, err
	}
	if whole.Info().SHA256 == heldOut.Info().SHA256 {
		return nil, nil, fmt.Errorf("--valid: %s holds the same stories as the corpus: give others, or leave it out", valid)
	}
	return whole, heldOut, nil
}

func trainTokenizer(ctx context.Context, c data.Corpus, size int, say note) (*bpe.Tokenizer, error) {
	start := time.Now()
	tok, err := bpe.Train(ctx, func(yield func([]byte) error) error { return c.Stories(ctx, yield) }, size)
	if err != nil {
		return nil, err
	}
	say("tokenizer: %d entries, trained on %s in %.1f s", tok.Size(), c.Info().Name, time.Since(start).Seconds())
	return tok, nil
}

// checkVocabulary holds the tokenizer against the model.
func (s *session) checkVocabulary(o Options) error {
	size := s.tok.Size()
	switch {
	case size == s.cfg.VocabSize:
		return nil
	case s.teacher != nil && (o.Tokenizer == "" || s.teacher.tok.Hash() == s.tok.Hash()):
		return fmt.Errorf("the teacher %s has %d tokens, but the model's vocab_size is %d, and a run learns from models with its own tokens "+
			"alone: give --set vocab_size=%d, or another teacher", s.teacher.path, size, s.cfg.VocabSize, size)
	}
	return fmt.Errorf("tokenizer %s has %d entries, but the model's vocab_size is %d: give --set vocab_size=%d, or leave "+
		"--tokenizer out to have one trained", o.Tokenizer, size, s.cfg.VocabSize, size)
}

// tokenise opens the token shard of the corpus, or makes it, and leaves the tokenizer in the run's folder.
func (s *session) tokenise(ctx context.Context, say note) (err error) {
	if err := s.enter(ctx, "turning the corpus into tokens"); err != nil {
		return err
	}
	s.clock.charge(opening)
	defer s.clock.charge(encoding)
	path := filepath.Join(s.dir, checkpoints.TokenizerFile)
	if old, err := regular.ReadFile(path, 1<<30); err != nil || string(old) != string(s.tok.JSON()) {
		if err := regular.WriteFile(path, s.tok.JSON()); err != nil {
			return fmt.Errorf("save the tokenizer: %w", err)
		}
	}
	if s.shard, err = shards.Build(ctx, s.corpus, s.tok, "", nil); err != nil {
		return err
	}
	h := s.shard.Header()
	say("corpus: %s, %s stories, %.1f MB; held out: %s", s.corpus.Info().Name, digits.Comma(h.Stories),
		float64(h.RawBytes)/1e6, s.heldOut.Info().Name)
	say("tokens: %s, %.2f bytes of text per token", digits.Comma(h.Tokens), float64(h.RawBytes)/float64(h.Tokens-h.Stories))
	tokens := int64(s.plan.Steps) * s.plan.TokensPerStep
	say("training: %s tokens, which is %.2f passes over the corpus", digits.Comma(tokens), float64(tokens)/float64(h.Tokens))
	return nil
}

// bytesPerToken is the mean over the corpus, the closing end-of-text tokens counted.
func (s *session) bytesPerToken() float64 {
	h := s.shard.Header()
	return float64(h.RawBytes) / float64(h.Tokens)
}

// changes collects what differs between a run and what it is to go on with.
type changes []string

func (c *changes) add(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

// check refuses the changes unless they are forced; then it tells them.
func (c changes) check(dir string, force bool, say note) error {
	if len(c) == 0 {
		return nil
	}
	list := strings.Join(c, "; ")
	if !force {
		return fmt.Errorf("%s was started otherwise: %s. Leave that as it was to go on with the run, start a new run with "+
			"--name, or give --force to go on with the change (the result is then that of neither)", dir, list)
	}
	say("forced: %s", list)
	return nil
}
