package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval"
	"github.com/chiplm/chiplm/eval/results"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/train"
)

// DefaultOut is where sweeps are kept, relative to the working directory.
const DefaultOut = "checkpoints/sweeps"

// ResultsFile is the name of the results in a sweep's folder.
const ResultsFile = results.File

// Options is what a person asks of `chiplm sweep`.
type Options struct {
	Corpus  string // in place of the file's
	Valid   string // likewise
	Out     string // folder of sweeps
	Target  string // chip whose speed is predicted; empty: none
	Workers int    // in all; 0: one a processor
	Retry   bool   // try failed runs again
}

// sweep is a study being run.
type sweep struct {
	study   *Study
	options Options
	dir     string // of the sweep
	results string // file

	corpus  data.Corpus
	heldOut data.Corpus
	valid   string // the path of heldOut where it was given
	stories *eval.Stories
	chip    *targets.Target // nil: no speed is predicted

	jobs   []*job
	before []results.Run // lines that were there, failed runs included

	// A run moves to more workers when some are idle and it has at least so long to go.
	worthMoving time.Duration
	show        display
}

// open reads what a sweep needs and finds out what is done, without changing anything.
func open(ctx context.Context, study *Study, o Options) (*sweep, error) {
	if o.Workers < 0 {
		return nil, usage.Errorf("--workers: %d: give 1 or more, or leave it out for one a processor", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = runtime.NumCPU()
	}
	s := &sweep{study: study, options: o, dir: filepath.Join(o.Out, study.Name), worthMoving: time.Minute}
	s.results = filepath.Join(s.dir, ResultsFile)
	if o.Target != "" {
		chip, err := targets.Load(o.Target)
		if err != nil {
			return nil, err
		}
		s.chip = chip
	}
	corpus := study.Corpus
	if o.Corpus != "" {
		corpus = o.Corpus
	}
	if corpus == "" {
		return nil, usage.Errorf("the file names no corpus: add the key corpus, or give --corpus")
	}
	if s.valid = study.Valid; o.Valid != "" {
		s.valid = o.Valid
	}
	var err error
	if s.corpus, s.heldOut, err = train.OpenCorpora(ctx, corpus, s.valid); err != nil {
		return nil, err
	}
	s.options.Corpus = corpus
	if s.stories, err = eval.ReadStories(ctx, s.heldOut, study.Stories); err != nil {
		return nil, err
	}
	if err := s.readBefore(); err != nil {
		return nil, err
	}
	return s, s.plan()
}

// readBefore reads the lines that are there.
func (s *sweep) readBefore() error {
	done, err := results.Read(s.results)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	failed, err := results.Failures(s.results)
	if err != nil {
		return err
	}
	s.before = slices.Concat(done, failed)
	if err := results.ComparableWith(done, "this sweep", s.heldOutOf()); err != nil {
		return fmt.Errorf("%s: %w; for a sweep of its own, change its name in the file", s.results, err)
	}
	return nil
}

// heldOutOf says which stories are scored.
func (s *sweep) heldOutOf() results.HeldOut {
	return results.HeldOut{Name: s.heldOut.Info().Name, SHA256: s.stories.SHA256, Stories: int64(s.stories.Count), Bytes: s.stories.Bytes}
}

// fewStories says that fewer stories are held out than the file wants scored; empty: there are enough. What stands in no
// file is not told: there the default is as many as there are, up to so many.
func (s *sweep) fewStories() string {
	if !s.study.storiesGiven || s.stories.Count >= s.study.Stories {
		return ""
	}
	return fmt.Sprintf("the file says stories: %s, but %s holds %s; all are scored", digits.Comma(s.study.Stories), s.heldOut.Info().Name,
		digits.Comma(s.stories.Count))
}

// Outcome is how a sweep ended.
type Outcome struct {
	Name    string `json:"name"`
	Folder  string `json:"folder"`
	Results string `json:"results"`
	// Baseline is that of the file where the last line, written before it was changed, names another; empty: they agree.
	Baseline string   `json:"baseline_changed,omitempty"`
	Done     int      `json:"done"`   // runs that have a score, those of before included
	Failed   int      `json:"failed"` // runs that diverged
	Broken   int      `json:"broken"` // runs that an error ended, which the next sweep goes on with
	Runs     []Status `json:"runs"`
	Seconds  float64  `json:"seconds"`
}

// Run runs a study to its end. When ctx ends, half-trained runs are saved first. The outcome is there even when the error is
// not nil, unless nothing could be started; the error tells of runs without a score.
func Run(ctx context.Context, study *Study, o Options, show display) (*Outcome, error) {
	start := time.Now()
	dir := filepath.Join(o.Out, study.Name)
	lock, err := checkpoints.Lock(dir)
	if errors.Is(err, checkpoints.ErrLocked) {
		return nil, fmt.Errorf("another sweep is at work in %s (it holds %s): wait for it or stop it, or change the name in the file: %w",
			dir, filepath.Join(dir, ".lock"), checkpoints.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	s, err := open(ctx, study, o)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, show, start)
}

func (s *sweep) run(ctx context.Context, show display, start time.Time) (*Outcome, error) {
	s.show = show
	if few := s.fewStories(); few != "" {
		show.note("%s", few)
	}
	if s.left() > 0 {
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
		show.start(s.jobs)
		s.work(ctx)
		show.finish()
	}
	out := &Outcome{Name: s.study.Name, Folder: s.dir, Results: s.results, Seconds: time.Since(start).Seconds()}
	if runs, err := results.Read(s.results); err == nil && len(runs) > 0 && runs[len(runs)-1].Baseline != s.study.Baseline {
		out.Baseline = s.study.Baseline
	}
	var errs []error
	for _, j := range s.jobs {
		status := j.status()
		out.Runs = append(out.Runs, status)
		switch status.State {
		case done:
			out.Done++
		case failed:
			out.Failed++
		case broken:
			out.Broken++
			errs = append(errs, fmt.Errorf("%s: %w", j.name, j.err))
		}
	}
	if err := ctx.Err(); err != nil {
		return out, fmt.Errorf("stopped with %d of %d runs done; what was half-trained is saved: %w", out.Done, len(s.jobs), err)
	}
	if out.Failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d runs diverged; --retry tries them again", out.Failed, len(s.jobs)))
	}
	return out, errors.Join(errs...)
}

// left counts the runs that are not settled.
func (s *sweep) left() int {
	n := 0
	for _, j := range s.jobs {
		if !j.settled() {
			n++
		}
	}
	return n
}
