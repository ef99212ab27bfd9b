package eval

import (
	"context"
	"io"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
)

// Script is a model and real text for it to read: what a measurement of speed feeds. How many neurons are silent, and so
// what is read, depends on the text.
type Script struct {
	Model   string
	Path    string
	Image   *engine.Image
	Windows [][]int32 // each starts with end-of-text and fits the context
	Source  string    // where the text is from

	subject *subject
}

// Close lets go of the model.
func (s *Script) Close() error { return s.subject.close() }

// OpenScript opens a model as `chiplm eval bpb` does, with at least n tokens of text in windows: of the stories of a file,
// or if that is "" of stories that the model writes itself, at temperature 0.7 among its 40 likeliest tokens. A window
// longer than multiple tokens is cut to a multiple of it. notes gets what a person should know about the model.
func OpenScript(ctx context.Context, model, runs, stories string, n, multiple int, notes io.Writer) (*Script, error) {
	s, err := openAny(ctx, model, runs, notes, export.Options{})
	if err != nil {
		return nil, err
	}
	script := &Script{Model: s.name, Path: s.path, Image: s.image, subject: s}
	left := n
	add := func(ids []int32) bool {
		if len(ids) > multiple {
			ids = ids[:len(ids)/multiple*multiple]
		}
		script.Windows = append(script.Windows, append([]int32(nil), ids...))
		left -= len(ids)
		return left > 0
	}
	switch {
	case stories == "":
		script.Source = "its own stories"
		err = ownWindows(ctx, s.image, add)
	case s.tokenizer == nil:
		err = s.noText()
	default:
		script.Source, err = stories, storyWindows(ctx, s, stories, add)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return script, nil
}

// ownWindows lets a model write stories until add wants no more. It works on ids alone: an image may have no tokenizer.
func ownWindows(ctx context.Context, im *engine.Image, add func(ids []int32) bool) error {
	e, err := engine.New(im, engine.Options{})
	if err != nil {
		return err
	}
	defer e.Close()
	logits := make([]float32, im.Model().VocabSize)
	for seed := uint64(1); ; seed++ {
		e.Reset()
		rng := engine.RNG(seed)
		story := []int32{im.EndOfText()}
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := e.ForwardLast(story[len(story)-1:], logits); err != nil {
				return err
			}
			id, err := engine.Sample(logits, 0.7, 40, &rng)
			if err != nil {
				return err
			}
			if id == im.EndOfText() || e.Position() == im.Model().ContextLength {
				break
			}
			story = append(story, id)
		}
		if !add(story) {
			return nil
		}
	}
}

// storyWindows cuts the stories of a file until add wants no more.
func storyWindows(ctx context.Context, s *subject, path string, add func(ids []int32) bool) error {
	corpus, err := data.Open(path)
	if err != nil {
		return err
	}
	var ids []int32
	return corpus.Stories(ctx, func(text []byte) error {
		ids = s.tokenizer.Encode(ids[:0], text)
		return windows.Cut(ids, s.tokenizer.EOT(), s.config.ContextLength, func(inputs, _ []int32) error {
			if !add(inputs) {
				return data.ErrStop
			}
			return nil
		})
	})
}
