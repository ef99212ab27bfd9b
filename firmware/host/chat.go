package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// Answer is what a board wrote to a prompt.
type Answer struct {
	Port            string  `json:"port"`
	Prompt          string  `json:"prompt"`
	Text            string  `json:"text"`
	Tokens          int     `json:"tokens"`
	IDs             []int32 `json:"ids"`
	Stopped         string  `json:"stopped"` // "end", "length", "context" or "stopped"
	PromptMs        float64 `json:"prompt_ms"`
	MsPerToken      float64 `json:"ms_per_token"` // by the board, the first token left out
	TokensPerSecond float64 `json:"tokens_per_second"`
	BytesPerSecond  float64 `json:"bytes_per_second"` // of text
	Lost            int     `json:"lost_tokens"`      // that did not arrive
}

// chat is a conversation: prompts to a board, and its answers.
type chat struct {
	client *line.Client
	port   string
	model  *engine.Image // not nil: prompts are encoded here
	how    line.Sampling
	out    io.Writer // of the text
	errs   io.Writer // of figures and notes
	stops  *interrupts
}

// ErrLost is wrapped when tokens of an answer did not arrive.
var ErrLost = errors.New("the text has holes")

// errInterrupted is the second interrupt, which ends the program.
var errInterrupted = errors.New("interrupted")

// write lets the board go on from a prompt. What is to stand before its text is written when the board has taken the prompt. An interrupt stops it: the answer then says so, and that is no error. A
// second interrupt gives errInterrupted.
func (c *chat) write(prompt, before string) (*Answer, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.stops.ctx))
	defer cancel()
	answer := &Answer{Port: c.port, Prompt: prompt}
	stream := bpe.NewStream(nil) // of bytes alone
	var text strings.Builder
	each := func(t line.Token) error {
		answer.IDs = append(answer.IDs, t.ID)
		text.Write(t.Text)
		if before != "" {
			if _, err := io.WriteString(c.out, before); err != nil {
				return err
			}
			before = ""
		}
		_, err := io.WriteString(c.out, stream.PushBytes(t.Text))
		return err
	}
	var done line.Done
	finished, failure := make(chan struct{}), error(nil)
	go func() {
		defer close(finished)
		done, failure = c.ask(ctx, prompt, each)
	}()
	if c.stops.next(finished) {
		cancel()
		if c.stops.next(finished) {
			return nil, errInterrupted
		}
	}
	if errors.Is(failure, context.Canceled) && done.Why != "" {
		failure = nil
	}
	rest := stream.Flush()
	if failure == nil {
		rest = before + rest // there was no token
	}
	if _, err := io.WriteString(c.out, rest); failure == nil {
		failure = err
	}
	answer.Text, answer.Tokens, answer.Stopped, answer.Lost = text.String(), done.Tokens, done.Why, done.Lost
	answer.PromptMs, answer.MsPerToken = done.PromptMs, done.MsPerToken
	if done.MsPerToken > 0 {
		answer.TokensPerSecond = 1000 / done.MsPerToken
		if n := len(answer.IDs); n > 0 {
			answer.BytesPerSecond = answer.TokensPerSecond * float64(text.Len()) / float64(n)
		}
	}
	return answer, onPort(c.port, failure)
}

func (c *chat) ask(ctx context.Context, prompt string, each func(line.Token) error) (line.Done, error) {
	if c.model == nil {
		return c.client.Say(ctx, prompt, c.how, each)
	}
	ids, err := encode(c.model, prompt)
	if err != nil {
		return line.Done{}, err
	}
	return c.client.Generate(ctx, ids, c.how, true, each)
}

// once answers one prompt, with the figures after it.
func (c *chat) once(prompt string) (*Answer, error) {
	a, err := c.write(prompt, prompt)
	if a != nil && (err == nil || len(a.IDs) > 0) { // also when the board went away in the middle
		if _, e := io.WriteString(c.out, "\n"); err == nil {
			err = e
		}
	}
	if err != nil {
		return a, err
	}
	if err := c.figures(a); err != nil {
		return a, err
	}
	return a, a.lost()
}

// lost is an error when tokens did not arrive: then text and ids are not what the board wrote.
func (a *Answer) lost() error {
	if a.Lost == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %d of %d tokens did not arrive; the board drops what is not read in time, and other programs that read this port take what they get: end those and ask again",
		a.Port, ErrLost, a.Lost, a.Tokens)
}

// figures prints how fast an answer was.
func (c *chat) figures(a *Answer) error {
	end := map[string]string{"end": "the end of the text", "length": "as many as asked for", "context": "the context is full", "stopped": "stopped"}[a.Stopped]
	line := fmt.Sprintf("prompt %.1f ms, %d tokens (%s)", a.PromptMs, a.Tokens, end)
	if a.TokensPerSecond > 0 {
		line += fmt.Sprintf(", %.2f ms a token, %.1f tokens/s, %.0f bytes of text/s", a.MsPerToken, a.TokensPerSecond, a.BytesPerSecond)
	}
	if _, err := fmt.Fprintln(c.errs, line); err != nil {
		return err
	}
	return nil
}

// talk answers prompts line by line until in ends, or an interrupt comes while nothing is written. A prompt that the
// board refuses, or an answer with holes, is told, and the next one asked for; holes are the error in the end too.
func (c *chat) talk(in io.Reader) error {
	var holes error
	lines, broken := make(chan string), make(chan error, 1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-over:
				return
			}
		}
		broken <- s.Err()
	}()
	fmt.Fprintf(c.errs, "%s: write the start of a text; Ctrl-C stops an answer, Ctrl-D ends\n", c.port)
	for {
		fmt.Fprint(c.errs, "> ")
		prompt, more, err := c.prompt(lines)
		if err != nil || !more {
			fmt.Fprintln(c.errs)
			if err == nil {
				select {
				case err = <-broken:
				default:
				}
			}
			if err == nil {
				err = holes
			}
			return err
		}
		if strings.TrimSpace(prompt) == "" {
			continue
		}
		_, err = c.once(prompt)
		var refused *line.BoardError
		switch {
		case errors.Is(err, ErrLost):
			holes = err
			fmt.Fprintf(c.errs, "note: %v\n", err)
		case errors.As(err, &refused) || errors.Is(err, line.ErrRequest):
			fmt.Fprintf(c.errs, "note: %v\n", err)
		case err != nil:
			return err
		}
	}
}

// prompt waits for a line; more is false when there are none, or at an interrupt.
func (c *chat) prompt(lines <-chan string) (prompt string, more bool, err error) {
	for {
		select {
		case prompt, more = <-lines:
			return prompt, more, nil
		case <-c.stops.done():
			c.stops.onDone()
			return "", false, nil
		case <-c.stops.signals:
			if c.stops.onSignal() {
				return "", false, nil
			}
		}
	}
}

// readPrompt reads a prompt from a file or a pipe, without the line end that closes it.
func readPrompt(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, line.MostLine+1))
	if err != nil {
		return "", fmt.Errorf("read the prompt from standard input: %w", err)
	}
	if len(b) > line.MostLine {
		return "", fmt.Errorf("the prompt on standard input has more than the %d bytes that a board takes", line.MostLine)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}
