package train

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/checkpoints"
)

// saver writes checkpoints of a run while training goes on: it copies what a checkpoint holds, and a goroutine writes the
// copy. One is written at a time.
type saver struct {
	session *session
	trainer *Trainer
	say     note

	best, last float64 // lowest validation loss, last training loss
	savedBest  float64 // best in the newest checkpoint
	saved      int     // step of the newest checkpoint, the one being written included; -1 before the first
	dir, sum   string  // of the newest that is written: its folder, and the SHA-256 of its weights

	copied  map[string][]float32 // weights and moments of the checkpoint being written
	pending chan written         // holds its outcome as soon as there is one; nil when none is being written
}

// written is the outcome of a save: the checkpoint is safe unless dir is empty.
type written struct {
	dir, sum string
	err      error
}

func newSaver(s *session, t *Trainer, say note) *saver {
	v := &saver{session: s, trainer: t, say: say, best: math.Inf(1), last: math.NaN(), saved: -1, copied: map[string][]float32{}}
	if s.from != nil {
		v.best, v.last = s.from.State.BestValid, s.from.State.LastLoss
		v.savedBest = v.best
		v.saved, v.dir, v.sum = s.from.State.Step, s.from.Dir, s.from.ModelSHA256
	}
	return v
}

// save begins to write a checkpoint of now, unless the newest one is of this step and knows of its validation. It fails
// when the one before could not be written.
func (v *saver) save() error {
	t, s := v.trainer, v.session
	if v.saved == t.StepsTaken() && v.savedBest == v.best {
		return nil
	}
	if err := v.wait(); err != nil {
		return err
	}
	c := &checkpoints.Checkpoint{Config: s.cfg, Tokenizer: s.tok.JSON(),
		Tensors: map[string][]float32{}, Moments: map[string][]float32{},
		State: checkpoints.State{Step: t.StepsTaken(), Tokens: t.Tokens(), Sequences: t.Sequences(),
			Corpus: s.corpus.Info().Path, CorpusHash: s.corpus.Info().SHA256,
			Valid: s.heldOut.Info().Path, ValidHash: s.heldOut.Info().SHA256,
			BestValid: v.best, LastLoss: v.last, Workers: s.workers, CreatedBy: checkpoints.ProgramVersion()}}
	s.teacher.record(&c.State)
	for _, p := range t.params {
		c.Tensors[p.name] = v.copy("w."+p.name, p.weights)
	}
	for _, m := range t.solver.moments() {
		c.Moments[m.name] = v.copy(m.name, m.data)
	}
	done := make(chan written, 1)
	go func() {
		dir, err := checkpoints.Save(s.dir, c, s.cfg.Train.KeepLast)
		done <- written{dir, c.ModelSHA256, err}
	}()
	v.pending, v.saved, v.savedBest = done, t.StepsTaken(), v.best
	return nil
}

// copy keeps a copy of values, in the place of the one before.
func (v *saver) copy(name string, values []float32) []float32 {
	v.copied[name] = append(v.copied[name][:0], values...)
	return v.copied[name]
}

// wait lets the checkpoint being written come to its end, and says whether that went well.
func (v *saver) wait() error {
	if v.pending == nil {
		return nil
	}
	return v.finish(<-v.pending)
}

// failed is the error of the checkpoint being written, if there is one by now.
func (v *saver) failed() error {
	select {
	case w := <-v.pending: // never, when pending is nil
		return v.finish(w)
	default:
		return nil
	}
}

func (v *saver) finish(w written) error {
	v.pending = nil
	if w.dir == "" {
		v.saved = -1 // so that another try is made, should somebody ask
		return w.err
	}
	if w.err != nil {
		v.say("saved %s, but could not clear older checkpoints away: %v", w.dir, w.err)
	}
	v.dir, v.sum = w.dir, w.sum
	return nil
}

// restore puts weights and optimiser where a checkpoint found them.
func restore(t *Trainer, c *checkpoints.Checkpoint) error {
	for _, p := range t.params {
		copy(p.weights, c.Tensors[p.name])
	}
	if err := t.Restore(c.Moments, c.State.Step, c.State.Sequences); err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	return nil
}
