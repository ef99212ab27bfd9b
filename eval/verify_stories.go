package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/windows"
)

// groupedWindows is how many windows are looked at together when groups for the graph are made: enough that they fill
// it, few enough to keep memory small.
const groupedWindows = 128

// stretches cuts stories into windows and puts these into groups of at most room positions.
type stretches struct {
	tokenizer     *bpe.Tokenizer
	context, room int
	yield         func(group []*stretch) error

	windows int   // so far
	tokens  int64 // so far: their positions
	waiting []*stretch
}

// read takes whole stories until their windows have at least that many positions, or the corpus ends.
func (s *stretches) read(ctx context.Context, corpus data.Corpus, tokens int64) (*Stories, error) {
	stories := newStories(corpus)
	var ids []int32
	err := corpus.Stories(ctx, func(story []byte) error {
		if s.tokens >= tokens {
			return data.ErrStop
		}
		stories.add(story)
		var err error
		if ids, err = windows.Encode(s.tokenizer, ids[:0], story); err != nil {
			return fmt.Errorf("story %d of %s %w", stories.Count, stories.Path, err)
		}
		first := 0
		return windows.Cut(ids, s.tokenizer.EOT(), s.context, func(inputs, targets []int32) error {
			s.waiting = append(s.waiting, &stretch{index: s.windows, story: stories.Count, first: first,
				inputs: slices.Clone(inputs), targets: slices.Clone(targets)})
			s.windows++
			s.tokens += int64(len(targets))
			first += len(targets)
			if len(s.waiting) < groupedWindows {
				return nil
			}
			return s.flush()
		})
	})
	if err == nil {
		err = s.flush()
	}
	stories.done()
	return stories, err
}

// flush gives the windows that wait to yield.
func (s *stretches) flush() error {
	lengths := make([]int, len(s.waiting))
	for i, w := range s.waiting {
		lengths[i] = len(w.inputs)
	}
	for _, places := range windows.Pack(lengths, s.room) {
		group := make([]*stretch, len(places))
		for i, at := range places {
			group[i] = s.waiting[at]
		}
		if err := s.yield(group); err != nil {
			return err
		}
	}
	s.waiting = s.waiting[:0]
	return nil
}
