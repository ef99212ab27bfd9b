package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/qat/simd"
)

// Summary is what a finished run tells, also as JSON.
type Summary struct {
	Run             string   `json:"run"`        // its folder
	Checkpoint      string   `json:"checkpoint"` // the newest
	Step            int      `json:"step"`
	Tokens          int64    `json:"tokens"`            // trained on, in all
	Loss            *float64 `json:"loss"`              // of the last step, nats per token
	ValidLoss       *float64 `json:"valid_loss"`        // of the last validation, nats per token
	ValidBPB        *float64 `json:"valid_bpb"`         // the same in bits per byte
	ValidTokens     int64    `json:"valid_tokens"`      // that validation scores
	ValidStories    int      `json:"valid_stories"`     // from the first held-out story on
	ValidAll        bool     `json:"valid_all"`         // that is all of the held-out stories
	TokensPerSecond float64  `json:"tokens_per_second"` // of the training steps of this session
	Seconds         float64  `json:"seconds"`           // of this session, everything included
	Time            Times    `json:"time"`              // where the seconds went
	Workers         int      `json:"workers"`
	Path            string   `json:"simd"` // the path of the loops, such as avx2
	Corpus          string   `json:"corpus"`
	ModelSHA256     string   `json:"model_sha256"`
	ConfigHash      string   `json:"config_hash"`
	TokenizerHash   string   `json:"tokenizer_hash"`
	CorpusHash      string   `json:"corpus_hash"`
	LossCurve       string   `json:"loss_curve"`
}

// Run trains a model: a new run, or one to go on with. Notes and progress go to log. When ctx ends it saves a checkpoint
// and returns an [*Interrupted].
func Run(ctx context.Context, o Options, log io.Writer, quiet bool) (*Summary, error) {
	return RunWith(ctx, o, newReporter(log, quiet))
}

// RunWith is [Run] with a reporter of the caller's own, which it calls from one goroutine. Several runs of different
// folders may be under way at the same time.
func RunWith(ctx context.Context, o Options, rep Reporter) (*Summary, error) {
	clock := newClock()
	s, err := openSession(ctx, o, clock, rep.Note)
	if err != nil {
		return nil, err
	}
	defer s.close()

	weights := arch.InitWeights(s.cfg, s.cfg.Train.Seed)
	sequences, err := shards.New(s.shard, s.cfg.ContextLength, uint64(s.cfg.Train.Seed), s.cfg.Train.StoriesApart)
	if err != nil {
		return nil, err
	}
	build := ArchBuilder(s.cfg, weights)
	t, err := NewTrainer(s.cfg, weights.Data, build, sequences, s.workers)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if s.teacher != nil {
		t.Learn(s.teacher.builder())
	}
	save := newSaver(s, t, rep.Note)
	defer save.wait() // in an error's way out: nothing is written behind the caller's back
	if s.from != nil {
		err = restore(t, s.from)
		rep.Note("resuming %s after step %d of %d", s.dir, t.StepsTaken(), s.plan.Steps)
	} else {
		clock.charge(opening)
		if err = save.save(); err == nil {
			err = save.wait() // so that from here on there is always something to resume
		}
		clock.charge(saving)
	}
	if err != nil {
		return nil, err
	}
	if t.StepsTaken() >= s.plan.Steps {
		rep.Note("nothing is left to train: to go on for longer, raise train.tokens with --set train.tokens=... --force")
	}

	r := &runner{session: s, trainer: t, build: build, save: save, rep: rep, clock: clock}
	if err := r.prepare(ctx); err != nil {
		return nil, r.interrupted(ctx, err)
	}
	defer r.close()
	clock.charge(opening)
	loop := r.loop()
	if err = r.catchUp(ctx, loop); err == nil {
		err = loop.Run(ctx)
	}
	rep.Finish()
	clock.charge(other)
	if waitErr := save.wait(); err == nil {
		err = waitErr
	}
	clock.charge(saving)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, r.interrupted(ctx, ctx.Err())
	case Diverged(err):
		return nil, fmt.Errorf("%w. Training stopped; nothing of this was saved, and the last good checkpoint is %s. "+
			"Try a lower train.lr or train.clip in a new run", err, save.dir)
	case err != nil:
		return nil, fmt.Errorf("%w (the last checkpoint is %s)", err, save.dir)
	}
	return r.summary()
}

// Diverged says whether a run ended because a loss, a gradient or a weight was no longer finite. Another try would end the
// same way.
func Diverged(err error) bool {
	return errors.Is(err, errNotFinite) || errors.Is(err, errWeightNotFinite)
}

// runner holds what the hooks of a run share.
type runner struct {
	session *session
	trainer *Trainer
	build   Builder
	save    *saver
	rep     Reporter
	clock   *clock

	metrics   *Metrics
	validator *Validator
	sampler   *Sampler
	pace      *pace

	seconds float64 // spent in the training steps of this session
	tokens  int64   // trained on in this session
}

func (r *runner) prepare(ctx context.Context) (err error) {
	cfg := r.session.cfg
	if r.validator, err = NewValidator(ctx, r.session.heldOut, r.session.tok, cfg.Train.MicroBatch, cfg.ContextLength,
		cfg.Train.ValidTokens); err != nil {
		return err
	}
	r.sampler = NewSampler(cfg.VocabSize, cfg.ContextLength)
	r.pace = newPace(r.trainer.StepsTaken())
	r.metrics, err = OpenMetrics(r.session.dir, r.trainer.StepsTaken())
	return err
}

func (r *runner) close() {
	r.validator.Close()
	r.sampler.Close()
	r.metrics.Close()
}

// loop adds the hooks. A checkpoint comes last, so that it is of a step whose metrics are written.
func (r *runner) loop() *Loop {
	t := r.session.cfg.Train
	l := NewLoop(r.trainer)
	l.Every(1, "metrics", r.onStep)
	l.Every(1, "writing a checkpoint", func(context.Context, Event) error { return r.save.failed() })
	l.Every(orLast(t.ValidEvery), "validation", r.timed(validating, r.onValidate))
	l.Every(t.SampleEvery, "sample", r.timed(sampling, r.onSample))
	l.Every(orLast(t.SaveEvery), "checkpoint", r.timed(saving, func(context.Context, Event) error { return r.save.save() }))
	l.AtEnd(r.onEnd)
	return l
}

// timed charges the time of a hook to a use.
func (r *runner) timed(u use, h Hook) Hook {
	return func(ctx context.Context, e Event) error {
		r.clock.charge(other)
		defer r.clock.charge(u)
		return h(ctx, e)
	}
}

// orLast turns "never" into "after the last step only".
func orLast(every int) int {
	if every <= 0 {
		return math.MaxInt
	}
	return every
}

func (r *runner) onStep(_ context.Context, e Event) error {
	r.clock.charge(training)
	defer r.clock.charge(other)
	plan := r.trainer.plan
	r.save.last = e.Result.Loss
	r.seconds += e.Result.Elapsed.Seconds()
	r.tokens += plan.TokensPerStep
	loss, tokensPerSecond, left := r.pace.add(e, plan.TokensPerStep)
	bitsPerByte := 1 / math.Ln2 / r.session.bytesPerToken()
	err := r.metrics.Step(e.Result, r.trainer.Tokens(), e.Result.Loss*bitsPerByte,
		float64(plan.TokensPerStep)/e.Result.Elapsed.Seconds())
	e.Result.Loss = loss
	r.rep.Step(e, loss*bitsPerByte, tokensPerSecond, left)
	return err
}

func (r *runner) onValidate(ctx context.Context, e Event) error {
	score, err := r.validator.Run(ctx, r.build, r.session.workers, r.trainer.Float(e.Step-1))
	if err != nil {
		return err
	}
	r.save.best = min(r.save.best, score.Loss)
	r.rep.Note("valid step=%d loss=%.4f bpb=%.4f", e.Step, score.Loss, score.BPB)
	return r.metrics.Write(Record{Step: e.Step, Tokens: r.trainer.Tokens(), ValidLoss: &score.Loss, ValidBPB: &score.BPB,
		ValidTokens: r.validator.Tokens})
}

func (r *runner) onSample(ctx context.Context, e Event) error {
	text, err := r.sampler.Story(ctx, r.build, r.session.tok, r.trainer.Float(e.Step-1), uint64(e.Step))
	if err != nil {
		return err
	}
	r.rep.Note("sample step=%d %q", e.Step, text)
	return r.metrics.Write(Record{Step: e.Step, Tokens: r.trainer.Tokens(), Sample: &text})
}

// catchUp calls the hooks of the step resumed from that an interrupt cut off: those that are due and have left no line
// in the metrics. The checkpoint of that step is written again if a validation has changed what it records.
func (r *runner) catchUp(ctx context.Context, l *Loop) error {
	if r.session.from == nil {
		return nil
	}
	records, err := ReadMetrics(r.session.dir)
	if err != nil {
		return err
	}
	done := map[string]bool{"metrics": true}
	for _, rec := range records {
		if rec.Step == r.trainer.StepsTaken() {
			done["validation"] = done["validation"] || rec.ValidBPB != nil
			done["sample"] = done["sample"] || rec.Sample != nil
		}
	}
	return l.CatchUp(ctx, done)
}

// onEnd draws the loss curve.
func (r *runner) onEnd(context.Context, Event) error {
	records, err := ReadMetrics(r.session.dir)
	if err != nil {
		return err
	}
	return PlotLoss(r.session.dir, filepath.Base(r.session.dir), records)
}

// lastScores finds the last training step and the last validation.
func lastScores(records []Record) (step, valid *Record) {
	for i := range records {
		if records[i].Loss != nil {
			step = &records[i]
		}
		if records[i].ValidBPB != nil {
			valid = &records[i]
		}
	}
	return step, valid
}

// notSaved is the failure of the save that an interrupt asks for. It is a failure like any other.
type notSaved struct{ error }

// Unwrap gives the error that is marked.
func (n notSaved) Unwrap() error { return n.error }

// ExitCode is the program's status.
func (n notSaved) ExitCode() int { return 1 }

// EndsProgram marks the status as that of the program.
func (n notSaved) EndsProgram() {}

// interrupted saves what there is and says how to go on.
func (r *runner) interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	saveErr := r.save.save()
	if saveErr == nil {
		saveErr = r.save.wait()
	}
	if saveErr != nil {
		return notSaved{fmt.Errorf("interrupted after step %d, and saving failed; go on from the last checkpoint, %s, with `%s`: %w",
			r.trainer.StepsTaken(), r.save.dir, resumeCommand(r.session.dir), saveErr)}
	}
	return &Interrupted{Step: r.trainer.StepsTaken(), Saved: r.save.dir, cause: ctx.Err(),
		Resume: resumeCommand(r.session.dir)}
}

func (r *runner) summary() (*Summary, error) {
	records, err := ReadMetrics(r.session.dir)
	if err != nil {
		return nil, err
	}
	s := r.session
	sum := &Summary{Run: s.dir, Checkpoint: r.save.dir, Step: r.trainer.StepsTaken(), Tokens: r.trainer.Tokens(),
		Workers: s.workers, Path: simd.Current().String(),
		Corpus: s.corpus.Info().Path, CorpusHash: s.corpus.Info().SHA256, ModelSHA256: r.save.sum,
		ConfigHash: s.cfg.Hash(), TokenizerHash: s.tok.Hash(), LossCurve: filepath.Join(s.dir, PlotFile),
		ValidTokens: r.validator.Tokens, ValidStories: r.validator.Stories, ValidAll: r.validator.All}
	if r.seconds > 0 {
		sum.TokensPerSecond = float64(r.tokens) / r.seconds
	}
	step, valid := lastScores(records)
	if step != nil {
		sum.Loss = step.Loss
	}
	if valid != nil {
		sum.ValidLoss, sum.ValidBPB = valid.ValidLoss, valid.ValidBPB
	}
	r.clock.charge(other)
	sum.Seconds, sum.Time = r.clock.seconds(), r.clock.times()
	runtime.KeepAlive(s.shard) // mapped memory is read until here
	return sum, nil
}
