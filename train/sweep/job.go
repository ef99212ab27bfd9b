package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/eval/results"
	"github.com/chiplm/chiplm/train"
)

// State is where a run stands.
type State string

// The states of a run.
const (
	fresh    State = "new"      // nothing is there
	half     State = "begun"    // it has a checkpoint to go on from
	trained  State = "trained"  // it lacks its score
	training State = "training" //
	scoring  State = "scoring"  //
	done     State = "done"     // its line is written
	failed   State = "failed"   // it diverged, and its line says so
	broken   State = "broken"   // an error ended it; the next sweep goes on with it
)

// job is one run of the sweep.
type job struct {
	arm   *Arm
	wise  *job // its teacher; nil: none
	order int
	seed  int64
	name  string
	dir   string
	cfg   *configs.Config
	plan  train.Plan
	steps int // taken when the sweep began

	mu      sync.Mutex
	state   State
	workers int
	step    int
	loss    float64
	speed   float64       // tokens/s
	left    time.Duration // of training
	score   float64       // bits per byte
	model   string        // SHA-256 of the weights that have it
	why     string        // of a failure
	err     error         // that broke it
	move    func()        // ends its training so that it goes on with more workers; nil: it does not train
	moved   bool
}

// Status is what a sweep tells of a run.
type Status struct {
	Arm           string  `json:"arm"`
	Seed          int64   `json:"seed"`
	Folder        string  `json:"folder"`
	State         State   `json:"state"`
	Parameters    int     `json:"parameters"`
	BytesPerToken int64   `json:"bytes_per_token"`
	TokensPerSec  float64 `json:"tokens_per_second,omitempty"` // predicted on the target before training; 0: none
	Step          int     `json:"step"`
	Steps         int     `json:"steps"`
	BitsPerByte   float64 `json:"bits_per_byte,omitempty"`
	Why           string  `json:"why,omitempty"` // it failed, or broke

	workers     int
	loss, speed float64
	left        time.Duration
}

func (j *job) status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Status{Arm: j.arm.Name, Seed: j.seed, Folder: j.dir, State: j.state, Parameters: j.cfg.Parameters(),
		BytesPerToken: j.cfg.Budget().Total.TokenRead, Step: j.step, Steps: j.plan.Steps, BitsPerByte: j.score, Why: j.why,
		workers: j.workers, loss: j.loss, speed: j.speed, left: j.left}
	if j.err != nil {
		s.Why = j.err.Error()
	}
	return s
}

// settled says whether nothing is left to do.
func (j *job) settled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state == done || j.state == failed || j.state == broken
}

// ready says whether the run can begin: it has no teacher, or one that is done.
func (j *job) ready() bool {
	if j.wise == nil {
		return true
	}
	j.wise.mu.Lock()
	defer j.wise.mu.Unlock()
	return j.wise.state == done
}

// lost says why the run has come to an end without a score, and is nil while it may have one.
func (j *job) lost() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.state {
	case failed:
		return fmt.Errorf("its teacher %s diverged: %s", j.name, j.why)
	case broken:
		return fmt.Errorf("its teacher %s was ended by an error", j.name)
	}
	return nil
}

// checkTeacher refuses to go on where what lies in the teacher's folder is not what its line tells of, for then nobody could say
// who taught.
func (j *job) checkTeacher(results string) error {
	if j.wise == nil {
		return nil
	}
	j.wise.mu.Lock()
	want, is := j.wise.model, j.wise.state
	j.wise.mu.Unlock()
	if is != done {
		return nil
	}
	ck, err := checkpoints.LoadModel(j.wise.dir)
	if err == nil && ck.ModelSHA256 != want {
		err = fmt.Errorf("%s holds other weights than those that were scored (SHA-256 %.12s, its line says %.12s)", ck.Dir, ck.ModelSHA256, want)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s learns from %s, but %w; put the run back, or remove its line from %s and its folder to have it trained anew",
		j.name, j.wise.name, err, results)
}

// memory is about how many bytes the run takes with that many workers.
func (j *job) memory(workers int) float64 {
	if j.wise == nil {
		return train.Memory(j.cfg, nil, workers)
	}
	return train.Memory(j.cfg, j.wise.cfg, workers)
}

// set changes the job under its lock.
func (j *job) set(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// plan lists the runs and finds out where each stands. It refuses a sweep in which a name would come to stand for two
// things.
func (s *sweep) plan() error {
	var changed []string
	for order := range s.study.Arms {
		arm := &s.study.Arms[order]
		for _, seed := range s.study.Seeds {
			j := &job{arm: arm, order: order, seed: seed, name: runName(arm.Name, seed)}
			j.dir = filepath.Join(s.dir, "runs", j.name)
			cfg := *arm.Config
			cfg.Name, cfg.Train.Seed = j.name, seed
			j.cfg = &cfg
			if arm.Teacher != "" { // it stands before this one
				j.wise = s.jobs[slices.IndexFunc(s.jobs, func(other *job) bool { return other.arm.Name == arm.Teacher && other.seed == seed })]
			}
			var err error
			if j.plan, err = train.NewPlan(&cfg); err != nil {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			why, err := s.look(j)
			if err != nil {
				return err
			}
			if why != "" {
				changed = append(changed, why)
			}
			if j.state == fresh || j.state == half {
				if err := j.checkTeacher(s.results); err != nil {
					return err
				}
			}
			j.steps = j.step
			s.jobs = append(s.jobs, j)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("runs that are there are not those of this file:\n  %s\ngive such an arm another name (what is there stays), "+
		"or the sweep; to throw them away, remove their lines from %s and their folders from %s",
		strings.Join(changed, "\n  "), s.results, filepath.Join(s.dir, "runs"))
}

// look finds out where a run stands. It says why what is there is not this run, if so.
func (s *sweep) look(j *job) (changed string, err error) {
	line := slices.IndexFunc(s.before, func(r results.Run) bool { return r.Arm == j.arm.Name && r.Seed == j.seed })
	if line >= 0 {
		r := s.before[line]
		if changed, err := s.otherLine(j, &r); changed != "" || err != nil {
			return changed, err
		}
		j.step = j.plan.Steps
		switch {
		case r.Failure == "":
			j.state, j.score, j.model = done, r.Quality.BitsPerByte, r.ModelSHA256
			return "", nil
		case !s.options.Retry:
			j.state, j.why, j.step = failed, r.Failure, 0
			return "", nil
		}
		j.state, j.step = fresh, 0
		return "", nil
	}
	return s.lookAtFolder(j)
}

// otherLine says why a line is not of this run, if so.
func (s *sweep) otherLine(j *job, r *results.Run) (string, error) {
	old, err := configs.Parse(r.Config, []byte(r.Config))
	if err != nil {
		return "", fmt.Errorf("%s: the configuration of %s: %w; it may be of another version of the program: change the name of the sweep", s.results, j.name, unplaced(err))
	}
	if why, err := otherSettings(j, old); why != "" || err != nil {
		return why, err
	}
	if r.Teacher != j.arm.Teacher {
		return fmt.Sprintf("%s: its teacher was %s and is now %s", j.name, orNone(r.Teacher), orNone(j.arm.Teacher)), nil
	}
	if j.wise != nil && j.wise.state == done && r.TeacherSHA256 != "" && r.TeacherSHA256 != j.wise.model {
		return fmt.Sprintf("%s learned from a run of %s with other weights (SHA-256 %.12s) than its line tells of (%.12s)", j.name, r.Teacher,
			r.TeacherSHA256, j.wise.model), nil
	}
	if info := s.corpus.Info(); r.CorpusSHA256 != info.SHA256 {
		return fmt.Sprintf("%s was trained on %s (SHA-256 %.12s), not on %s (%.12s)", j.name, r.Corpus, r.CorpusSHA256, info.Name, info.SHA256), nil
	}
	return "", nil
}

// unplaced takes the source off an error in a configuration, which would be all of its text.
func unplaced(err error) error {
	var e *configs.Error
	if errors.As(err, &e) {
		return fmt.Errorf("line %d: %s: %s", e.Line, e.Key, e.Problem)
	}
	return err
}

// otherSettings says which settings that decide the weights are others than those of this run.
func otherSettings(j *job, old *configs.Config) (string, error) {
	if old.TrainHash() == j.cfg.TrainHash() {
		return "", nil
	}
	differences, err := configs.Differences(old, j.cfg)
	if err != nil {
		return "", err
	}
	var list []string
	for _, d := range differences {
		if d.Key != "name" {
			list = append(list, fmt.Sprintf("%s was %s and is now %s", d.Key, orNone(d.A), orNone(d.B)))
		}
	}
	return fmt.Sprintf("%s: %s", j.name, strings.Join(list, ", ")), nil
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// lookAtFolder finds out how far the training of a run without a line has come.
func (s *sweep) lookAtFolder(j *job) (changed string, err error) {
	ck, err := checkpoints.LoadModel(j.dir)
	switch {
	case errors.Is(err, checkpoints.ErrNone), errors.Is(err, fs.ErrNotExist):
		j.state = fresh
		return "", nil
	case err != nil:
		j.state, j.err = broken, fmt.Errorf("%w; or remove the folder %s to train it anew", err, j.dir)
		return "", nil
	}
	if why, err := otherSettings(j, ck.Config); why != "" || err != nil {
		return why, err
	}
	if info := s.corpus.Info(); ck.State.CorpusHash != info.SHA256 {
		return fmt.Sprintf("%s was begun on %s (SHA-256 %.12s), not on %s (%.12s)", j.name, ck.State.Corpus, ck.State.CorpusHash, info.Name, info.SHA256), nil
	}
	if j.wise != nil && j.wise.state == done && ck.State.TeacherHash != j.wise.model {
		return fmt.Sprintf("%s was begun with a teacher %s of other weights (SHA-256 %.12s) than its line tells of (%.12s)", j.name, j.wise.name,
			ck.State.TeacherHash, j.wise.model), nil
	}
	j.step, j.state, j.loss = ck.State.Step, half, ck.State.LastLoss
	if !hasMoments(ck) {
		j.state = trained // they are dropped only then
	}
	return "", nil
}

func hasMoments(ck *checkpoints.Checkpoint) bool {
	_, err := os.Stat(filepath.Join(ck.Dir, checkpoints.MomentsFile))
	return err == nil
}

// tracker hears how the training of a job goes.
type tracker struct{ job *job }

// Step implements [train.Reporter].
func (t tracker) Step(e train.Event, _, tokensPerSecond float64, left time.Duration) {
	t.job.set(func() {
		t.job.step, t.job.loss, t.job.speed, t.job.left = e.Step, e.Result.Loss, tokensPerSecond, left
	})
}

// Note implements [train.Reporter].
func (t tracker) Note(string, ...any) {}

// Finish implements [train.Reporter].
func (t tracker) Finish() {}

// train trains a run to its end, from the state that it is in.
func (s *sweep) train(ctx context.Context, j *job, workers int, from State) error {
	o := train.Options{Model: j.cfg, Corpus: s.options.Corpus, Valid: s.valid, Tokenizer: s.tokenizerFile(j.cfg.VocabSize),
		Out: filepath.Dir(j.dir), Name: j.name, Workers: workers}
	if from == fresh {
		// There may be a save that was cut off, or a run that failed.
		if err := os.RemoveAll(j.dir); err != nil {
			return err
		}
	} else {
		o.Resume, o.Run, o.Name = true, j.dir, ""
	}
	if j.wise != nil {
		if err := j.checkTeacher(s.results); err != nil { // it may have changed since the sweep began
			return err
		}
		o.Teacher = j.wise.dir
	}
	_, err := train.RunWith(ctx, o, tracker{j})
	return err
}
