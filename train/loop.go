package train

import (
	"context"
	"fmt"
)

// Event is what a hook is told.
type Event struct {
	Result StepResult // of the step just taken; empty when this session took none
	Step   int        // steps taken in all
	Steps  int        // steps of the whole run
}

// Last says whether no step is left.
func (e Event) Last() bool { return e.Step >= e.Steps }

// Hook is called after steps. An error ends the run.
type Hook func(context.Context, Event) error

// Loop takes steps until none is left, and calls hooks in the order in which they were added.
type Loop struct {
	trainer *Trainer
	hooks   []everyHook
	atEnd   []Hook
}

type everyHook struct {
	name  string
	every int
	hook  Hook
}

// NewLoop makes a loop without hooks.
func NewLoop(t *Trainer) *Loop { return &Loop{trainer: t} }

// Every has a hook called after each n-th step and after the last one. n of 0 or less is never.
func (l *Loop) Every(n int, name string, h Hook) {
	if n > 0 {
		l.hooks = append(l.hooks, everyHook{name: name, every: n, hook: h})
	}
}

// AtEnd has a hook called once when no step is left, after all others.
func (l *Loop) AtEnd(h Hook) { l.atEnd = append(l.atEnd, h) }

// Run takes the steps that are left. When ctx ends it gives up the step under way, which leaves the weights as they
// were, and returns ctx's error. An error of a step says which one.
func (l *Loop) Run(ctx context.Context) error {
	e := Event{Step: l.trainer.StepsTaken(), Steps: l.trainer.plan.Steps}
	for !e.Last() {
		result, err := l.trainer.Step(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("step %d: %w", e.Step+1, err)
		}
		e.Step, e.Result = result.Step, result
		if err := l.callDue(ctx, e, nil); err != nil {
			return err
		}
	}
	for _, h := range l.atEnd {
		if err := h(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// CatchUp calls the hooks due after the step that the trainer stands at, for a run stopped between a step and its hooks;
// those in done, by name, have been called.
func (l *Loop) CatchUp(ctx context.Context, done map[string]bool) error {
	if l.trainer.StepsTaken() == 0 {
		return nil
	}
	return l.callDue(ctx, Event{Step: l.trainer.StepsTaken(), Steps: l.trainer.plan.Steps}, done)
}

// callDue calls the hooks that are due, in their order, but for those in done.
func (l *Loop) callDue(ctx context.Context, e Event, done map[string]bool) error {
	for _, h := range l.hooks {
		if done[h.name] || e.Step%h.every != 0 && !e.Last() {
			continue
		}
		if err := h.hook(ctx, e); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s after step %d: %w", h.name, e.Step, err)
		}
	}
	return nil
}
