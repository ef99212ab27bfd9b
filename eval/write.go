package eval

import (
	"context"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
)

// Constraint shapes a text while a model writes it. It sees bytes: how they become tokens is the writer's concern. A
// template is one; a grammar would be another.
type Constraint interface {
	// Next says what may follow text, all that stands after the prompt. room is the number of tokens that the context
	// still holds when everything in text has been fed; below 0 not even all of that fits, and nothing can be drawn.
	Next(text []byte, room int) Move

	// Keep is told of a token that was drawn to follow text, and says how many of its bytes stand. When that is not all
	// of them the token is never fed: what is kept is tokenised anew, together with what Next wants to follow.
	// End-of-text has no bytes.
	Keep(text, token []byte, room int) int
}

// Move is what may follow a text: the first of these that is set.
type Move struct {
	End     bool    // nothing
	Text    []byte  // this text and no other
	Allowed []int32 // one of these tokens, ascending; of one there is no need to draw

	// None of them: any token.
}

// writer lets an engine write. What is known in advance is collected and fed together, in as few passes through the
// weights as the batch allows, and only once a token is drawn after it.
type writer struct {
	run       runner
	tokenizer *bpe.Tokenizer
	context   int
	opt       SampleOptions
	rng       engine.RNG
	logits    []float32 // after all that was fed; not with a search

	search *engine.Search // nil, or how the best tokens are found; only for a constraint that allows every token
	best   []engine.TokenLogit

	ids  []int32 // to be fed next
	tail []byte  // and after them this text
	text []byte  // after the prompt

	stream *bpe.Stream
	out    io.Writer

	drawn, given int                            // tokens that were drawn, and those that were fed without
	own          bool                           // the first of ids was drawn
	saw          func(position int, last int32) // if not nil: told of every time that logits are there
}

// newWriter makes a writer that stands after end-of-text and the prompt. The text that follows goes to out as it comes, in
// whole UTF-8 characters.
func newWriter(r runner, s *subject, opt SampleOptions, out io.Writer) (*writer, error) {
	w := &writer{run: r, tokenizer: s.tokenizer, context: s.config.ContextLength, opt: opt, rng: engine.RNG(opt.Seed),
		logits: make([]float32, s.config.VocabSize), ids: []int32{s.tokenizer.EOT()}, tail: []byte(opt.Prompt),
		stream: bpe.NewStream(s.tokenizer), out: out}
	w.settle()
	if len(w.ids) > w.context {
		return nil, fmt.Errorf("the prompt is %d tokens with its leading end-of-text, and %s has a context of %d; shorten the prompt",
			len(w.ids), s.name, w.context)
	}
	w.ids, w.tail = w.ids[:1], []byte(opt.Prompt) // what follows may join the last word of the prompt
	return w, nil
}

// write writes until the constraint ends the text.
func (w *writer) write(ctx context.Context, c Constraint) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		move := c.Next(w.text, w.room())
		switch {
		case move.End:
			_, err := io.WriteString(w.out, w.stream.Flush())
			return err
		case len(move.Text) > 0:
			w.tail = append(w.tail, move.Text...)
			if err := w.add(move.Text); err != nil {
				return err
			}
		case len(move.Allowed) == 1:
			w.settle()
			w.ids = append(w.ids, move.Allowed[0])
			if err := w.add(w.tokenizer.Bytes(move.Allowed[0])); err != nil {
				return err
			}
		default:
			if err := w.draw(c, move.Allowed); err != nil {
				return err
			}
		}
	}
}

// draw feeds what is known, draws a token, and adds what the constraint keeps of it.
func (w *writer) draw(c Constraint, allowed []int32) error {
	if err := w.feed(); err != nil {
		return err
	}
	id, err := w.choose(allowed)
	if err != nil {
		return err
	}
	token := w.tokenizer.Bytes(id)
	if id != w.tokenizer.EOT() {
		w.drawn++
	}
	keep := c.Keep(w.text, token, w.room())
	if keep == len(token) && keep > 0 {
		w.ids, w.own = append(w.ids, id), true
	} else {
		w.tail = append(w.tail, token[:keep]...)
	}
	return w.add(token[:keep])
}

// choose draws one of the allowed tokens, or of all if there is none.
func (w *writer) choose(allowed []int32) (int32, error) {
	if w.search != nil {
		drawn, err := engine.Draw(w.best, float32(w.opt.Temperature), &w.rng)
		return drawn.ID, err
	}
	if len(allowed) == 0 {
		return engine.Sample(w.logits, float32(w.opt.Temperature), w.opt.TopK, &w.rng)
	}
	logits := make([]float32, len(allowed))
	for i, id := range allowed {
		logits[i] = w.logits[id]
	}
	i, err := engine.Sample(logits, float32(w.opt.Temperature), w.opt.TopK, &w.rng)
	if err != nil {
		return 0, err
	}
	return allowed[i], nil
}

// feed feeds all that is known. When that is nothing, the logits are there already.
func (w *writer) feed() error {
	w.settle()
	if len(w.ids) == 0 {
		return nil
	}
	if n := w.run.Position() + len(w.ids); n > w.context {
		return fmt.Errorf("the text has come to %d tokens, and the context holds %d", n, w.context)
	}
	var err error
	if w.search == nil {
		err = w.run.ForwardLast(w.ids, w.logits)
	} else {
		w.best, err = w.run.ForwardBest(w.ids, *w.search, w.opt.choices())
	}
	if err != nil {
		return err
	}
	if w.given += len(w.ids); w.own {
		w.given--
	}
	if w.saw != nil {
		w.saw(w.run.Position()-1, w.ids[len(w.ids)-1])
	}
	w.ids, w.own = w.ids[:0], false
	return nil
}

// settle makes tokens of the text that has none yet.
func (w *writer) settle() {
	w.ids = w.tokenizer.Encode(w.ids, w.tail)
	w.tail = w.tail[:0]
}

// room is the number of tokens that the context holds beyond all that is known.
func (w *writer) room() int {
	return w.context - w.run.Position() - len(w.ids) - len(w.tokenizer.Encode(nil, w.tail))
}

// add appends to the text.
func (w *writer) add(b []byte) error {
	w.text = append(w.text, b...)
	_, err := io.WriteString(w.out, w.stream.PushBytes(b))
	return err
}

// story is a text without constraint: it ends with end-of-text, after so many tokens, or with the context.
type story struct {
	tokens  int // 0: no limit
	drawn   int
	stopped string
}

// Next ends the story when it has to.
func (s *story) Next(_ []byte, room int) Move {
	switch {
	case s.stopped != "":
	case s.drawn > 0 && s.drawn == s.tokens:
		s.stopped = "tokens"
	case room < 0:
		s.stopped = "context"
	}
	return Move{End: s.stopped != ""}
}

// Keep keeps every token but end-of-text.
func (s *story) Keep(_, token []byte, _ int) int {
	if len(token) == 0 {
		s.stopped = "end-of-text"
	} else {
		s.drawn++
	}
	return len(token)
}
