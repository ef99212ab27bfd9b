package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
)

// Trainer owns the weights, the optimiser and the team, and takes one optimiser step at a time.
type Trainer struct {
	cfg      *configs.Config
	plan     Plan
	builder  Builder
	teacher  Builder // or nil
	params   []*Parameter
	solver   *Optimizer
	schedule Schedule
	team     *Team
	float    bool    // the graphs at hand have quantisation off
	taught   float64 // the teacher's share in what they aim at
	built    bool

	pieces  []piece   // of the gradients: of elements, or of rows where most are zero
	squares []float64 // their sums of squares

	step      int   // steps taken
	sequences int64 // training sequences behind the weights: the number of the next one
}

// Plan is the arithmetic of a run.
type Plan struct {
	Steps            int   // in all
	MicroBatches     int   // of a step
	SequencesPerStep int64 //
	TokensPerStep    int64 //
}

// NewPlan works out the steps of a run. Tokens that fill no whole step are one more step.
func NewPlan(c *configs.Config) (Plan, error) {
	t := c.Train
	micro := t.MicroBatch * c.ContextLength
	if micro <= 0 || t.BatchTokens <= 0 || t.BatchTokens%micro != 0 {
		return Plan{}, fmt.Errorf("train.batch_tokens: %d is not a multiple of micro_batch x context_length = %d x %d",
			t.BatchTokens, t.MicroBatch, c.ContextLength)
	}
	if t.Tokens <= 0 {
		return Plan{}, fmt.Errorf("train.tokens: %d: must be at least 1", t.Tokens)
	}
	return Plan{
		Steps:            t.Steps(),
		MicroBatches:     t.BatchTokens / micro,
		SequencesPerStep: int64(t.BatchTokens / c.ContextLength),
		TokensPerStep:    int64(t.BatchTokens),
	}, nil
}

// StepResult is what a step tells about itself.
type StepResult struct {
	Step     int     // number of the step, from 1
	Loss     float64 // mean nats per token before the update
	AuxLoss  float64 // mean load-balancing loss of experts, without its weight; 0 without experts
	LR       float64
	GradNorm float64 // before clipping
	Elapsed  time.Duration
}

// NewTrainer makes a trainer over weights, in the order of cfg.Tensors(). Graphs are built at the first step.
func NewTrainer(cfg *configs.Config, weights [][]float32, builder Builder, seqs Sequences, workers int) (*Trainer, error) {
	plan, err := NewPlan(cfg)
	if err != nil {
		return nil, err
	}
	schedule, err := NewSchedule(cfg.Train, plan.Steps)
	if err != nil {
		return nil, err
	}
	t := &Trainer{cfg: cfg, plan: plan, builder: builder, schedule: schedule}
	for i, tensor := range cfg.Tensors() {
		if len(weights[i]) != tensor.Len() {
			return nil, fmt.Errorf("%s: %d weights, but the configuration asks for %d", tensor.Name, len(weights[i]), tensor.Len())
		}
		t.params = append(t.params, newParameter(tensor, weights[i]))
	}
	t.team = newTeam(workers, seqs, cfg.Train.MicroBatch, cfg.ContextLength, plan.MicroBatches, t.params)
	if t.solver, err = newOptimizer(cfg, t.params, workers); err != nil {
		return nil, err
	}
	return t, nil
}

// Learn gives the trainer a teacher, whose distributions have the share train.distill in what steps aim at. Its graphs are
// asked for batches of the trainer's own shape.
func (t *Trainer) Learn(teacher Builder) { t.teacher, t.built = teacher, false }

// Restore puts the trainer after a number of steps and sequences, with the optimiser's state of then, which it takes over:
// the moments of a checkpoint.
func (t *Trainer) Restore(state map[string][]float32, step int, sequences int64) error {
	if err := t.solver.restore(state, step); err != nil {
		return err
	}
	t.step, t.sequences = step, sequences
	return nil
}

// StepsTaken is the number of optimiser steps behind the weights.
func (t *Trainer) StepsTaken() int { return t.step }

// Sequences is the number of training sequences behind the weights.
func (t *Trainer) Sequences() int64 { return t.sequences }

// Tokens is the number of training tokens behind the weights.
func (t *Trainer) Tokens() int64 { return t.sequences * int64(t.cfg.ContextLength) }

// Float says whether the step with the given number, from 0, runs without quantisation (quant.start, quant.start_step).
func (t *Trainer) Float(step int) bool { return step < t.cfg.FloatSteps() }

// distill is the teacher's share in what the step with the given number, from 0, aims at (train.distill, train.distill_start).
func (t *Trainer) distill(step int) float64 {
	if step < t.cfg.UntaughtSteps() {
		return 0
	}
	return t.cfg.Train.Distill
}

// Step takes one optimiser step. On an error, the end of ctx included, the weights are those of before, unless the
// update itself made a weight infinite; the error then says so.
func (t *Trainer) Step(ctx context.Context) (StepResult, error) {
	start := time.Now()
	if float, share := t.Float(t.step), t.distill(t.step); !t.built || float != t.float || share != t.taught {
		opt := arch.Options{Batch: t.cfg.Train.MicroBatch, Seq: t.cfg.ContextLength, Train: true, Float: float, Distill: share}
		teacher := t.teacher
		if share == 0 {
			teacher = nil
		}
		if err := t.team.build(ctx, t.builder, teacher, opt); err != nil {
			return StepResult{}, err
		}
		t.built, t.float, t.taught = true, float, share
	}
	loss, aux, err := t.team.step(ctx, t.sequences)
	if err != nil {
		return StepResult{}, err
	}
	norm, err := t.gradNorm()
	if err != nil {
		return StepResult{}, err
	}
	r := StepResult{Step: t.step + 1, Loss: loss, AuxLoss: aux, LR: t.schedule.LR(t.step), GradNorm: norm}
	scale := clipScale(norm, t.cfg.Train.Clip) / float64(t.plan.MicroBatches)
	if err := t.solver.step(r.LR, r.LR/t.schedule.peak, scale); err != nil {
		return StepResult{}, err
	}
	t.step++
	t.sequences += t.plan.SequencesPerStep
	r.Elapsed = time.Since(start)
	return r, nil
}

// gradNorm is the norm of the mean gradient over all parameters. It is added up in pieces, in their order, however many
// goroutines share them.
func (t *Trainer) gradNorm() (float64, error) {
	t.pieces = t.pieces[:0]
	for i, p := range t.params {
		if p.dense() {
			t.pieces = cut(t.pieces, i, len(p.gradient), pieceSize)
		} else {
			t.pieces = cut(t.pieces, i, len(p.rows), max(1, pieceSize/p.cols))
		}
	}
	t.squares = slices.Grow(t.squares[:0], len(t.pieces))[:len(t.pieces)]
	t.team.idle()
	share(len(t.team.workers), len(t.pieces), func(thread, i int) {
		p := t.pieces[i]
		sum, values := t.params[p.param].squares(p.from, p.to)
		t.squares[i] = sum
		t.team.workers[thread].profile.Lap(profile.Memory(profile.Optimiser, values))
	})
	t.team.idle()
	sum := 0.0
	for i, s := range t.squares {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return 0, fmt.Errorf("the first tensor that is %w: the gradient of %s", errNotFinite, t.params[t.pieces[i].param].name)
		}
		sum += s
	}
	return math.Sqrt(sum) / float64(t.plan.MicroBatches), nil
}

// clipScale is the factor that brings a gradient of the given global norm down to clip; 0 never clips. The small term
// is the field's custom.
func clipScale(norm, clip float64) float64 {
	if clip <= 0 {
		return 1
	}
	return min(1, clip/(norm+1e-6))
}

// Profile has every worker keep a profile from the next step on, and returns them. They are read between steps only.
// A profile records, it changes no result.
func (t *Trainer) Profile() []*profile.Profile {
	var all []*profile.Profile
	for _, w := range t.team.workers {
		w.profile = &profile.Profile{}
		w.profile.Start(time.Now())
		all = append(all, w.profile)
	}
	t.solver.profile(all)
	t.built = false // graphs are built with their profile
	return all
}

// Close gives the graphs up.
func (t *Trainer) Close() { t.team.close(); t.built = false }
