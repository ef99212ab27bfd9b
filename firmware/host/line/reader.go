package line

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	mostLine  = 1 << 16 // bytes of an answer; a longer one is noise
	mostLines = 1 << 14 // waiting to be looked at
)

// reader splits what arrives into lines. It reads all the time, so that a board need not drop anything; while nobody
// waits for an answer, lines are dropped here.
type reader struct {
	mu     sync.Mutex
	lines  []string
	open   bool // somebody waits for an answer
	err    error
	signal chan struct{} // there is something to look at
}

func newReader(r io.Reader) *reader {
	q := &reader{signal: make(chan struct{}, 1)}
	go q.run(r)
	return q
}

func (q *reader) run(r io.Reader) {
	var held []byte
	skip := false // the rest of a line that is too long
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			at := bytes.IndexByte(b, '\n')
			if at < 0 {
				if !skip {
					held = append(held, b...)
				}
				if len(held) > mostLine {
					held, skip = held[:0], true
				}
				break
			}
			if !skip {
				held = append(held, b[:at]...)
				q.add(string(bytes.TrimSuffix(held, []byte{'\r'})))
			}
			held, skip = held[:0], false
			b = b[at+1:]
		}
		if err != nil {
			q.fail(err)
			return
		}
	}
}

func (q *reader) add(line string) {
	q.mu.Lock()
	if q.open && len(line) <= mostLine {
		q.lines = append(q.lines, line)
		if len(q.lines) > mostLines {
			q.lines = q.lines[1:] // the oldest: an answer that nobody takes
		}
	}
	q.mu.Unlock()
	q.wake()
}

func (q *reader) fail(err error) {
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	q.wake()
}

func (q *reader) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// listen starts or ends waiting for an answer. What arrived before is dropped.
func (q *reader) listen(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.lines = on, nil
}

// next is the next line. It fails with the error of ctx, [ErrSilent] when patience ends, or [ErrGone].
func (q *reader) next(ctx context.Context, patience time.Duration) (string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		q.mu.Lock()
		if len(q.lines) > 0 {
			line := q.lines[0]
			q.lines = q.lines[1:]
			q.mu.Unlock()
			return line, nil
		}
		err := q.err
		q.mu.Unlock()
		if err != nil {
			return "", fmt.Errorf("%w: the cable was pulled, or the port was closed (%w)", ErrGone, err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-timer.C:
			return "", ErrSilent
		case <-q.signal:
		}
	}
}
