package train

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
)

// saver writes checkpoints of a run.
type saver struct {
	session *session
	trainer *Trainer
	say     note

	best, last float64 // lowest validation loss, last training loss
	savedBest  float64 // best in the newest checkpoint
	saved      int     // step of the newest checkpoint; -1 before the first
	dir, sum   string  // of the newest checkpoint: its folder, and the SHA-256 of its weights
}

func newSaver(s *session, t *Trainer, say note) *saver {
	v := &saver{session: s, trainer: t, say: say, best: math.Inf(1), last: math.NaN(), saved: -1}
	if s.from != nil {
		v.best, v.last = s.from.State.BestValid, s.from.State.LastLoss
		v.savedBest = v.best
		v.saved, v.dir, v.sum = s.from.State.Step, s.from.Dir, s.from.ModelSHA256
	}
	return v
}

// save writes a checkpoint of now, unless the newest one is of this step and knows of its validation.
func (v *saver) save() error {
	t, s := v.trainer, v.session
	if v.saved == t.StepsTaken() && v.savedBest == v.best {
		return nil
	}
	c := &checkpoints.Checkpoint{Config: s.cfg, Tokenizer: s.tok.JSON(),
		Tensors: map[string][]float32{}, Moments: map[string][]float32{},
		State: checkpoints.State{Step: t.StepsTaken(), Tokens: t.Tokens(), Sequences: t.Sequences(),
			Corpus: s.corpus.Info().Path, CorpusHash: s.corpus.Info().SHA256,
			Valid: s.heldOut.Info().Path, ValidHash: s.heldOut.Info().SHA256,
			BestValid: v.best, LastLoss: v.last, Workers: s.workers, CreatedBy: checkpoints.ProgramVersion()}}
	m, vv, _ := t.solver.Moments()
	for i, p := range t.params {
		c.Tensors[p.name] = p.weights
		c.Moments["m."+p.name], c.Moments["v."+p.name] = m[i], vv[i]
	}
	dir, err := checkpoints.Save(s.dir, c, s.cfg.Train.KeepLast)
	if dir == "" {
		return err
	}
	if err != nil {
		v.say("saved %s, but could not clear older checkpoints away: %v", dir, err)
	}
	v.saved, v.savedBest, v.dir, v.sum = t.StepsTaken(), v.best, dir, c.ModelSHA256
	return nil
}

// restore puts weights and optimiser where a checkpoint found them.
func restore(t *Trainer, c *checkpoints.Checkpoint) error {
	var m, v [][]float32
	for _, p := range t.params {
		copy(p.weights, c.Tensors[p.name])
		mi, vi := c.Moments["m."+p.name], c.Moments["v."+p.name]
		if len(mi) != len(p.weights) || len(vi) != len(p.weights) {
			return fmt.Errorf("%s: the optimiser's state of %s is missing or of another size", c.Dir, p.name)
		}
		m, v = append(m, mi), append(v, vi)
	}
	return t.Restore(m, v, c.State.Step, c.State.Sequences)
}

// zeroMoments is the optimiser's state before the first step.
func zeroMoments(cfg *configs.Config) (m, v [][]float32) {
	for _, t := range cfg.Tensors() {
		m, v = append(m, make([]float32, t.Len())), append(v, make([]float32, t.Len()))
	}
	return m, v
}
