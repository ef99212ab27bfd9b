package line

import (
	"errors"
	"fmt"
)

var (
	// ErrSilent occurs when nothing answers.
	ErrSilent = errors.New("no answer")

	// ErrGone occurs when the connection ends: a cable was pulled, or a port was closed.
	ErrGone = errors.New("the board is gone")

	// ErrRestarted occurs when a board starts anew before its answer is complete.
	ErrRestarted = errors.New("the board restarted in the middle of an answer")

	// ErrAnswer occurs when an answer does not have the form of the protocol.
	ErrAnswer = errors.New("not an answer of the protocol")

	// ErrVersion occurs when a board speaks another version of the protocol.
	ErrVersion = errors.New("another version of the protocol")

	// ErrRequest occurs when a request cannot be written as a line.
	ErrRequest = errors.New("bad request")

	// ErrClosed occurs on a client that was closed.
	ErrClosed = errors.New("the connection was closed")
)

// BoardError is a refusal by the board.
type BoardError struct {
	Code    string `json:"code"` // such as "range"
	Message string `json:"message"`
}

// Error says what the board said, and what helps where that is not in it.
func (e *BoardError) Error() string {
	s := fmt.Sprintf("the board says: %s (%s)", e.Message, e.Code)
	if help, ok := advice[e.Code]; ok {
		s += ": " + help
	}
	return s
}

// advice for refusals that call for more than another request.
var advice = map[string]string{
	"model-missing": "the partition table has no partition for a model; flash firmware and model with chiplm flash",
	"model-empty":   "put one on it with chiplm flash",
	"model":         "flash an image of this version with chiplm flash",
	"golden":        "memory or clock of this board do not hold; the log before says more",
	"context":       "use a shorter prompt",
	"line-too-long": "use a shorter prompt",
	"profile":       "switch it on with Q 1, then let the board write",
}

func answerError(line string, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrAnswer, shorten(line), why)
}

// shorten cuts a line for a message.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
