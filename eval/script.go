package eval

import (
	"context"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/windows"
	"github.com/chiplm/chiplm/engine"
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
	s, err := openSubject(ctx, model, runs, notes)
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
	if stories == "" {
		script.Source = "its own stories"
		err = ownWindows(ctx, s, add)
	} else {
		script.Source, err = stories, storyWindows(ctx, s, stories, add)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return script, nil
}

// ownWindows lets a model write stories until add wants no more.
func ownWindows(ctx context.Context, s *subject, add func(ids []int32) bool) error {
	for seed := uint64(1); ; seed++ {
		e, err := engine.New(s.image, engine.Options{})
		if err != nil {
			return err
		}
		r := &listening{Engine: e}
		w, err := newWriter(r, s, SampleOptions{Temperature: 0.7, TopK: 40, Seed: seed}, io.Discard)
		if err == nil {
			err = w.write(ctx, &story{})
		}
		if e := e.Close(); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("%s writes a story: %w", s.path, err)
		}
		if !add(r.fed) {
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

// listening is an engine that keeps what it is fed.
type listening struct {
	*engine.Engine
	fed []int32
}

// ForwardLast is [engine.Engine.ForwardLast].
func (l *listening) ForwardLast(ids []int32, logits []float32) error {
	l.fed = append(l.fed, ids...)
	return l.Engine.ForwardLast(ids, logits)
}
