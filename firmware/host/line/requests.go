package line

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sampling says how a board writes.
type Sampling struct {
	Tokens      int     // at most
	Temperature float64 // in steps of a thousandth; 0: always the likeliest token
	TopK        int     // choose among so many likeliest tokens; 0: among all
	Seed        uint64
}

func (s *Sampling) fields() (string, error) {
	if s.Tokens < 0 || s.TopK < 0 || !(s.Temperature >= 0 && s.Temperature <= 1e6) {
		return "", fmt.Errorf("%w: %d tokens, temperature %g, top-k %d: none may be negative", ErrRequest, s.Tokens, s.Temperature, s.TopK)
	}
	return fmt.Sprintf("%d %d %d %d", s.Tokens, int64(math.Round(s.Temperature*1000)), s.TopK, s.Seed), nil
}

// Say lets a board continue a text, which it encodes itself. Each token is handed to each as it comes, with its bytes.
// When ctx ends, the board stops: then the error is that of ctx, and Done says how far it was. An error of each stops
// the board too and is returned.
func (c *Client) Say(ctx context.Context, text string, s Sampling, each func(Token) error) (Done, error) {
	fields, err := s.fields()
	if err != nil {
		return Done{}, err
	}
	return c.generate(ctx, "S "+fields+" "+escape(text), true, each)
}

// Generate lets a board continue a sequence of ids, which starts with end-of-text where a text starts. With text each
// token carries its bytes. Else as [Client.Say].
func (c *Client) Generate(ctx context.Context, ids []int32, s Sampling, text bool, each func(Token) error) (Done, error) {
	fields, err := s.fields()
	if err != nil {
		return Done{}, err
	}
	if len(ids) == 0 {
		return Done{}, fmt.Errorf("%w: no ids", ErrRequest)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "G %s %d %d", fields, map[bool]int{true: 1}[text], len(ids))
	for _, id := range ids {
		fmt.Fprintf(&b, " %d", id)
	}
	return c.generate(ctx, b.String(), text, each)
}

func (c *Client) generate(ctx context.Context, line string, text bool, each func(Token) error) (Done, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done Done
	prompt, end, taken := false, false, 0
	err := c.request(ctx, line, c.opt.Patience, c.stop, func(answer string) (bool, error) {
		switch kind(answer) {
		case 'P':
			ms, err := parsePrompt(answer)
			if err != nil || prompt || taken > 0 {
				return false, errors.Join(err, answerErrorIf(err == nil, answer, "the prompt was read before"))
			}
			prompt, done.PromptMs = true, ms
		case 'T':
			t, err := parseToken(answer, text)
			if err != nil {
				return false, nil // a line that was cut; the end tells how many there were
			}
			taken++
			if ctx.Err() == nil {
				if err := each(t); err != nil {
					cancel(err)
				}
			}
		case 'E':
			d, err := parseEnd(answer)
			if err != nil {
				return false, err
			}
			if taken > d.Tokens {
				return false, answerError(answer, fmt.Sprintf("%d tokens came", taken))
			}
			d.PromptMs, d.Lost = done.PromptMs, d.Tokens-taken
			done, end = d, true
			return true, nil
		default:
			return false, answerError(answer, "not a part of a text")
		}
		return false, nil
	})
	if err == nil && ctx.Err() != nil && end {
		err = context.Cause(ctx)
	}
	return done, err
}

func answerErrorIf(yes bool, line, why string) error {
	if !yes {
		return nil
	}
	return answerError(line, why)
}

// stop asks the board to stop. It answers with the end of what it is doing.
func (c *Client) stop() error {
	return c.write("X\n")
}

// one asks for an answer of one line, of a kind.
func (c *Client) one(ctx context.Context, line string, patience time.Duration, want byte) (string, error) {
	var got string
	err := c.request(ctx, line, patience, nil, func(answer string) (bool, error) {
		if kind(answer) != want {
			return false, answerError(answer, fmt.Sprintf("the answer to %q starts with %c", shorten(line), want))
		}
		got = answer
		return true, nil
	})
	return got, err
}

// object asks for one JSON object.
func (c *Client) object(ctx context.Context, line string, patience time.Duration) (json.RawMessage, error) {
	answer, err := c.one(ctx, line, patience, '{')
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(answer)) {
		c.synced = false
		return nil, answerError(answer, "not JSON: it was cut, or the firmware is wrong")
	}
	return json.RawMessage(answer), nil
}

// Info is what the board and its model are: a JSON object.
func (c *Client) Info(ctx context.Context) (json.RawMessage, error) {
	return c.object(ctx, "I", c.opt.Patience)
}

// Benchmark measures memories, kernels and hand-over: a JSON object. It takes some seconds.
func (c *Client) Benchmark(ctx context.Context) (json.RawMessage, error) {
	return c.object(ctx, "M", 4*c.opt.Patience)
}

// Profile is the mean time of each operation in the last request that was profiled: a JSON object.
func (c *Client) Profile(ctx context.Context) (json.RawMessage, error) {
	return c.object(ctx, "Q", c.opt.Patience)
}

// SetProfiling switches the profile of later requests on or off.
func (c *Client) SetProfiling(ctx context.Context, on bool) error {
	line := map[bool]string{true: "Q 1", false: "Q 0"}[on]
	answer, err := c.one(ctx, line, c.opt.Patience, 'Q')
	if err == nil && answer != line {
		c.synced = false
		err = answerError(answer, "want "+line)
	}
	return err
}

// The ways in which a board can compute a digest.
const (
	ModeFast   = 0 // both cores, the fastest kernels
	ModeOne    = 1 // one core, the fastest kernels
	ModePlain  = 2 // one core, plain C
	ModesCount = 3
)

// Digest is the digest of n tokens, the likeliest each, computed in a mode.
func (c *Client) Digest(ctx context.Context, n, mode int) (uint64, error) {
	if n < 1 || mode < 0 || mode >= ModesCount {
		return 0, fmt.Errorf("%w: a digest of %d tokens in mode %d", ErrRequest, n, mode)
	}
	patience := c.opt.Patience + time.Duration(n)*time.Second // it is silent until the end, and plain C is slow
	answer, err := c.one(ctx, "D "+strconv.Itoa(n)+" "+strconv.Itoa(mode), patience, 'D')
	if err != nil {
		return 0, err
	}
	digest, err := parseDigest(answer, n, mode)
	if err != nil {
		c.synced = false
	}
	return digest, err
}

// Restart restarts the board. The next request waits until it greets, for which a board over USB must be opened anew.
func (c *Client) Restart(ctx context.Context) error {
	answer, err := c.one(ctx, "R", c.opt.Patience, 'R')
	c.synced = false
	if err == nil && answer != "R" {
		err = answerError(answer, "want R")
	}
	return err
}
