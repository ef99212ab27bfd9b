package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/shards"
)

// session is a run made ready: what training needs, at a fresh start or from a checkpoint.
type session struct {
	dir     string
	cfg     *configs.Config
	corpus  data.Corpus // to train on
	heldOut data.Corpus
	tok     *bpe.Tokenizer
	shard   *shards.Shard
	lock    *checkpoints.RunLock
	from    *checkpoints.Checkpoint // nil at a fresh start
}

// note tells the person a line.
type note func(format string, args ...any)

// openSession makes a run ready. The caller closes it.
func openSession(ctx context.Context, o Options, say note) (*session, error) {
	s := &session{}
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
	name := o.Config
	if name == "" {
		name = DefaultConfig
	}
	if s.cfg, err = configs.Load(name, o.Sets...); err != nil {
		return err
	}
	run := o.Name
	if run == "" {
		run = s.cfg.Name
	}
	if s.dir, err = o.runDir(run); err != nil {
		return err
	}
	if err := refuseExisting(s.dir, run); err != nil {
		return err
	}
	corpus := o.Corpus
	if corpus == "" {
		corpus = DefaultCorpus
	}
	if s.corpus, s.heldOut, err = openCorpora(ctx, corpus, o.Valid); err != nil {
		return err
	}
	if o.Tokenizer != "" {
		s.tok, err = bpe.Load(o.Tokenizer)
	} else {
		s.tok, err = trainTokenizer(ctx, s.corpus, s.cfg.VocabSize, say)
	}
	if err != nil {
		return err
	}
	if err := s.checkVocabulary(o.Tokenizer); err != nil {
		return err
	}
	if s.lock, err = checkpoints.Lock(s.dir); err != nil {
		return err
	}
	return refuseExisting(s.dir, run) // again, now that nobody else writes there
}

// refuseExisting refuses to start a run where one is already.
func refuseExisting(dir, name string) error {
	newest, err := checkpoints.Newest(dir)
	if errors.Is(err, checkpoints.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s holds a run already (newest checkpoint %s): go on with `chiplm train --resume %s`, "+
		"start another with --name, or delete the folder", dir, filepath.Base(newest), resumeName(dir, name))
}

// resumeName is what to give to --resume for a run.
func resumeName(dir, name string) string {
	if filepath.Dir(dir) == filepath.Clean(checkpoints.DefaultRoot) {
		return name
	}
	return dir
}

// openCorpora opens what to train on and what to hold out.
func openCorpora(ctx context.Context, corpus, valid string) (train, heldOut data.Corpus, err error) {
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
func (s *session) checkVocabulary(path string) error {
	if s.tok.Size() != s.cfg.VocabSize {
		return fmt.Errorf("tokenizer %s has %d entries, but the model's vocab_size is %d: give --set vocab_size=%d, or leave "+
			"--tokenizer out to have one trained", path, s.tok.Size(), s.cfg.VocabSize, s.tok.Size())
	}
	return nil
}

// tokenise opens the token shard of the corpus, or makes it, and leaves the tokenizer in the run's folder.
func (s *session) tokenise(ctx context.Context, say note) (err error) {
	path := filepath.Join(s.dir, checkpoints.TokenizerFile)
	if old, err := os.ReadFile(path); err != nil || string(old) != string(s.tok.JSON()) {
		if err := replaceFile(path, s.tok.JSON()); err != nil {
			return fmt.Errorf("save the tokenizer: %w", err)
		}
	}
	if s.shard, err = shards.Build(ctx, s.corpus, s.tok, "", nil); err != nil {
		return err
	}
	h := s.shard.Header()
	say("corpus: %s, %s stories, %.1f MB; held out: %s", s.corpus.Info().Name, thousands(h.Stories),
		float64(h.RawBytes)/1e6, s.heldOut.Info().Name)
	say("tokens: %s, %.2f bytes of text per token", thousands(h.Tokens), float64(h.RawBytes)/float64(h.Tokens-h.Stories))
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
