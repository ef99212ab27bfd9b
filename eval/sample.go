package eval

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/chiplm/chiplm/engine"
)

// SampleOptions say how a model writes.
type SampleOptions struct {
	Prompt      string
	Template    *Template // to be filled after the prompt; nil: a story
	Tokens      int       // of a story, at most so many new ones; 0: until the story or the context ends
	Hole        int       // tokens that each hole of a template may have
	Temperature float64   // 0: always the likeliest token
	TopK        int       // choose among so many likeliest tokens; 0: among all
	Seed        uint64
	Batch       int  // tokens that go through the weights together, when they are known
	Count       bool // hold the bytes read against the planner's prediction
}

// Text is what a model wrote.
type Text struct {
	Model   string  `json:"model"`
	Path    string  `json:"path"`
	Prompt  string  `json:"prompt"`
	Text    string  `json:"text"`    // without the prompt
	Tokens  int     `json:"tokens"`  // that the model drew
	Given   int     `json:"forced"`  // that were fed without being drawn: end-of-text, the prompt, a template
	Passes  int64   `json:"passes"`  // through the weights
	Bytes   int64   `json:"bytes"`   // read, counted by the engine
	Fed     int64   `json:"fed"`     // tokens that the engine was given; what nothing is drawn after is not
	Stopped string  `json:"stopped"` // "end-of-text", "tokens", "context" or "template"
	Seconds float64 `json:"seconds"`

	Started bool `json:"-"` // something was written, if only the prompt

	Holes map[string]string `json:"holes,omitempty"`     // what fills each hole of a template
	Ended map[string]string `json:"holes_end,omitempty"` // before what: "text", "end-of-text", "tokens" or "context"
	Count *Count            `json:"count,omitempty"`
}

// choices is how many of the likeliest tokens one is drawn from.
func (o *SampleOptions) choices() int {
	if o.Temperature == 0 {
		return 1
	}
	if o.TopK == 0 {
		return math.MaxInt
	}
	return o.TopK
}

// sample lets the engine write from a prompt. The text goes to out as it comes, in whole UTF-8 characters.
func sample(ctx context.Context, s *subject, opt SampleOptions, out io.Writer) (Text, error) {
	r, err := newRunner(s, engine.Options{Batch: opt.Batch}, opt.Count)
	if err != nil {
		return Text{}, err
	}
	defer r.Close()
	start := time.Now()
	w, err := newWriter(r, s, opt, out)
	if err != nil {
		return Text{}, err
	}
	text := Text{Model: s.name, Path: s.path, Prompt: opt.Prompt}
	var c Constraint = &story{tokens: opt.Tokens}
	if opt.Template != nil {
		if c, err = opt.Template.fill(s.tokenizer, opt.Prompt, opt.Hole, w.context); err != nil {
			return Text{}, err
		}
	} else if search := s.image.SearchFor(opt.choices()); !search.Full {
		w.search = &search
	}
	text.Started = true // nothing is refused any more
	if _, err := io.WriteString(out, opt.Prompt); err != nil {
		return text, err
	}
	if err := w.write(ctx, c); err != nil {
		return text, err
	}
	switch c := c.(type) {
	case *story:
		text.Stopped = c.stopped
	case *filling:
		text.Stopped, text.Holes, text.Ended = "template", c.filled, c.ended
	}
	text.Text, text.Tokens, text.Given = string(w.text), w.drawn, w.given
	text.Seconds = math.Round(time.Since(start).Seconds()*1000) / 1000
	reads, err := r.Reads()
	if err != nil {
		return Text{}, err
	}
	text.Passes, text.Bytes, text.Fed = reads.Blocks, reads.Total(), reads.Positions
	if m, ok := r.(*meter); ok {
		text.Count = newCount(s.config, s.image.Tensors(), reads, m.conditions())
	}
	return text, nil
}

// newRunner makes an engine, watched if its reads are to be predicted.
func newRunner(s *subject, opt engine.Options, watched bool) (runner, error) {
	if watched {
		return newMeter(s.image, s.config, opt)
	}
	return engine.New(s.image, opt)
}
