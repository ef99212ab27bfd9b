package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Version is the version of the protocol that this package speaks.
const Version = 1

// MostLine is the length of the longest request, in bytes without its end.
const MostLine = 4096

// MostTokens is how many tokens a request may ask for.
const MostTokens = 1_000_000

// Options of a client.
type Options struct {
	// Patience is how long a board may be silent within an answer; 0 is 30 seconds: reading a long prompt takes some.
	Patience time.Duration
	// Greeting is how long [Client.Hello] waits, in all; 0 is 15 seconds: a board that starts checks its model first, some seconds of a full partition.
	Greeting time.Duration
	// Remark is told of every line that is no answer, while one is awaited; nil: nobody is.
	Remark func(line string)
}

// Client is a conversation with a board. Its methods must not be called at the same time, but for Close.
type Client struct {
	rw      io.ReadWriteCloser
	in      *reader
	opt     Options
	synced  bool // the next line that arrives belongs to the next request
	closing sync.Once
	closed  chan struct{}
}

// New starts a conversation. The client owns rw, and closes it. Nothing is sent yet.
func New(rw io.ReadWriteCloser, opt Options) *Client {
	if opt.Patience <= 0 {
		opt.Patience = 30 * time.Second
	}
	if opt.Greeting <= 0 {
		opt.Greeting = 15 * time.Second
	}
	return &Client{rw: rw, in: newReader(rw), opt: opt, closed: make(chan struct{})}
}

// Close ends the conversation.
func (c *Client) Close() error {
	err := ErrClosed
	c.closing.Do(func() {
		close(c.closed)
		err = c.rw.Close()
	})
	return err
}

// ended says whether the client was closed.
func (c *Client) ended() error {
	select {
	case <-c.closed:
		return ErrClosed
	default:
		return nil
	}
}

// beat is the time between two attempts to greet.
const beat = time.Second

// Hello stops what the board may still be doing, and finds the start of a conversation. Errors: [ErrSilent], [ErrGone],
// [ErrVersion], that of ctx.
func (c *Client) Hello(ctx context.Context) error {
	c.synced = false
	c.in.listen(true)
	defer c.in.listen(false)
	end := time.Now().Add(c.opt.Greeting)
	for {
		// The first line end ends a line that was begun by somebody else.
		if err := c.write("\nX\nV\n"); err != nil {
			return err
		}
		err := c.greeted(ctx, min(beat, time.Until(end)))
		switch {
		case err == nil:
			err := c.settle(ctx, end)
			c.synced = err == nil
			return err
		case !errors.Is(err, ErrSilent):
			return err
		case !time.Now().Before(end):
			return fmt.Errorf("%w within %v: is chiplm's firmware on the board, and is this its port? chiplm flash puts it there; the reset button helps a board that hangs",
				ErrSilent, c.opt.Greeting)
		}
	}
}

// greeted waits for the answer to V.
func (c *Client) greeted(ctx context.Context, patience time.Duration) error {
	end := time.Now().Add(patience)
	for {
		line, err := c.in.next(ctx, time.Until(end))
		if err != nil {
			return err
		}
		if kind(line) != 'V' {
			if kind(line) == 0 {
				c.remark(line)
			}
			continue
		}
		switch line {
		case fmt.Sprintf("V %d", Version):
			return nil
		default:
			if v, ok := whole(line[min(2, len(line)):], 1<<31); ok {
				return fmt.Errorf("%w: the board speaks version %d and this program %d: flash the firmware that belongs to this program", ErrVersion, v, Version)
			}
		}
	}
}

// quiet is how long nothing arrives when a board has answered everything: what others asked before, and greetings that
// were sent again.
const quiet = 25 * time.Millisecond

// settle waits until nothing more arrives, or until end: a board may talk by itself.
func (c *Client) settle(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) {
		line, err := c.in.next(ctx, quiet)
		switch {
		case errors.Is(err, ErrSilent):
			return nil
		case err != nil:
			return err
		case kind(line) == 0:
			c.remark(line)
		}
	}
	return nil
}

func (c *Client) remark(line string) {
	if c.opt.Remark != nil && line != "" {
		c.opt.Remark(line)
	}
}

// taking is how long a port may take for a request: it holds a whole one.
const taking = 5 * time.Second

// write sends bytes. A port that does not take them fails it: after that the connection is of no use.
func (c *Client) write(s string) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c.rw, s)
		done <- err
	}()
	timer := time.NewTimer(taking)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%w: the cable was pulled, or the port was closed (%w)", ErrGone, err)
		}
		return nil
	case <-timer.C:
		c.Close()
		return fmt.Errorf("%w: the port has taken no request for %v: the reset button helps a board that hangs", ErrSilent, taking)
	}
}

// request sends a line and hands each line of its answer to take, until that says it is done. Remarks are passed over. A
// refusal of the board is an error of it. What the context of a request that is cancelled leads to is the caller's
// concern: stop is called once, and the answer goes on.
func (c *Client) request(ctx context.Context, line string, patience time.Duration, stop func() error, take func(line string) (bool, error)) error {
	if err := cmp.Or(c.ended(), ctx.Err()); err != nil {
		return err
	}
	if len(line) > MostLine {
		return fmt.Errorf("%w: %d bytes, of which a board takes %d: use a shorter prompt", ErrRequest, len(line), MostLine)
	}
	if !c.synced {
		if err := c.Hello(ctx); err != nil {
			return err
		}
	}
	c.synced = false // until the answer is complete
	c.in.listen(true)
	defer c.in.listen(false)
	if err := c.write(line + "\n"); err != nil {
		return err
	}
	wait := ctx
	for {
		if err := c.ended(); err != nil {
			return err
		}
		if wait.Err() != nil && stop != nil {
			if err := stop(); err != nil {
				return err
			}
			wait, stop = context.WithoutCancel(ctx), nil
		}
		answer, err := c.in.next(wait, patience)
		switch {
		case err == nil:
		case wait.Err() != nil && stop != nil:
			continue
		case errors.Is(err, ErrSilent):
			return fmt.Errorf("%w to %q for %v: the board hangs, or the cable was pulled", ErrSilent, shorten(line), patience)
		default:
			return err
		}
		switch kind(answer) {
		case 0:
			c.remark(answer)
			if started(answer) {
				return ErrRestarted
			}
			continue
		case 'V':
			continue // a greeting's, that came late
		case '!':
			err := parseRefusal(answer)
			var refusal *BoardError
			c.synced = errors.As(err, &refusal)
			return err
		}
		done, err := take(answer)
		if err != nil {
			return err
		}
		if done {
			c.synced = true
			return nil
		}
	}
}
