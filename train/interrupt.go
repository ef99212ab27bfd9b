package train

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/usage"
)

// Interrupted says that a run was stopped from outside, and how to go on.
type Interrupted struct {
	Step   int    // steps taken
	Stage  string // what was under way before the first step of this session; "" in training
	Saved  string // the checkpoint to go on from; "" when there is none yet
	Resume string // the command to go on with; "" when there is no checkpoint
	cause  error
}

func (e *Interrupted) Error() string {
	switch {
	case e.Saved == "":
		return fmt.Sprintf("interrupted while %s; no checkpoint was written yet: start with the same command again", e.Stage)
	case e.Stage != "":
		return fmt.Sprintf("interrupted while %s; the run still stands at %s; go on with `%s`", e.Stage, e.Saved, e.Resume)
	}
	return fmt.Sprintf("interrupted after step %d; saved as %s; go on with `%s`", e.Step, e.Saved, e.Resume)
}

// Unwrap gives the context's error.
func (e *Interrupted) Unwrap() error { return e.cause }

// ExitCode is that of a program ended by an interrupt.
func (e *Interrupted) ExitCode() int { return 130 }

// EndsProgram marks the status as that of the program.
func (e *Interrupted) EndsProgram() {}

// interrupted says that making the session ready was cut short. Nothing of the run has changed.
func (s *session) interrupted(ctx context.Context) error {
	e := &Interrupted{Stage: s.stage, cause: ctx.Err()}
	if s.from != nil {
		e.Step, e.Saved, e.Resume = s.from.State.Step, s.from.Dir, resumeCommand(s.dir)
	}
	return e
}

// resumeCommand is the command that goes on with a run, as a shell takes it.
func resumeCommand(dir string) string {
	name := dir
	if filepath.Dir(dir) == filepath.Clean(checkpoints.DefaultRoot) {
		name = filepath.Base(dir)
	}
	return "chiplm train --resume " + usage.ShellWord(name)
}
